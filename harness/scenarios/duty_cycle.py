"""Duty cycle: one request every T seconds, and real idleness between. What sleeping cores and idle clocks cost, it shows.

Beside it, in the same process, a short window of one request after the other: the ratio of the two medians is the price of
having been idle. The latency counts from the request's own start; how late the system woke us is kept apart.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from backends.base import Session
from harness.scenarios.single_stream import back_to_back, warm_up
from harness.scenarios.window import Carry, Limits, Played, Pool, Window, no_collector, touched

PERIOD_S = 1.0
BESIDE_S = 2.0  # of the window without idleness, at most
BESIDE_SHARE = 0.25  # of the duration
BESIDE_QUERIES = 20


def run(session: Session, pool: Pool, limits: Limits, parameters: Mapping[str, Any], carry: Carry = ()) -> Played:
    """Warm up, run without pause for a little, then ask once in each period.

    `latency_ns` are the requests of the duty cycle, `late_ns` how much later than planned each began, and
    `back_to_back_ns` those without a pause.
    """
    period_s = float(parameters.get("period_s", PERIOD_S))
    warmup_queries, warmup_ns = warm_up(session, pool, limits.warmup_s, carry)
    beside_s = min(BESIDE_S, BESIDE_SHARE * limits.duration_s)
    beside = replace(limits, duration_s=beside_s, min_queries=BESIDE_QUERIES, limit_s=max(beside_s, limits.limit_s / 4))
    busy = back_to_back(session, pool, beside, carry, warmup_queries, warmup_ns)
    planned = max(1, min(limits.max_queries, max(limits.min_queries, int(limits.duration_s / period_s))))
    times, late = touched(planned), touched(planned)
    with no_collector():
        start, end, done = _play(session, pool, limits, carry, int(period_s * 1e9), times.data, late.data)
    window = Window(start, end, warmup_queries + len(busy.query_ns), times[:done])
    return Played(
        window,
        {"latency_ns": times[:done], "late_ns": late[:done], "back_to_back_ns": busy.query_ns},
        requests=done,
        requests_per_s=None,
        facts={"period_s": period_s, "longer_than_period": int(np.count_nonzero(times[:done] > period_s * 1e9))},
    )


def _play(
    session: Session,
    pool: Pool,
    limits: Limits,
    carry: Carry,
    period_ns: int,
    times: memoryview,
    late: memoryview,
) -> tuple[int, int, int]:
    """Fill `times` and `late`; return the window's start and end, and how many requests there were.

    A request that took longer than its period moves all later ones: they are spaced, not caught up with.
    """
    clock, sleep = time.perf_counter_ns, time.sleep
    infer = session.infer
    different, room, done = len(pool), len(times), 0
    window_start = time.monotonic_ns()
    due = clock()
    hard_end = due + int(limits.hard_s * 1e9)
    while done < room:
        due += period_ns
        inputs = pool[done % different]
        pause = due - clock()
        if pause > 0:
            sleep(pause / 1e9)  # no spinning at the end: a core that is kept awake is not idle
        start = clock()
        outputs = infer(0, inputs)
        end = clock()
        times[done] = end - start
        late[done] = start - due
        done += 1
        for taking, giving in carry:
            np.copyto(inputs[taking], outputs[giving])
        if end >= hard_end:
            break
        if end > due + period_ns:
            due = end - period_ns
    return window_start, time.monotonic_ns(), done
