"""Sustained load: one query after the other for minutes. It shows what heat, power limits and neighbours do over time."""

from __future__ import annotations

import time

import numpy as np

from backends.base import Session
from harness.scenarios.single_stream import warm_up
from harness.scenarios.window import Carry, Limits, Played, Pool, Window, expected_queries, no_collector, touched


def run(session: Session, pool: Pool, limits: Limits, carry: Carry = ()) -> Played:
    """Warm up, then load the system for `duration_s`; `latency_ns` and `started_ns` (from the window's start) are kept.

    A fast model has more queries in minutes than need be kept: then only every k-th one is (`every`), all are counted.
    """
    warmup_queries, warmup_ns = warm_up(session, pool, limits.warmup_s, carry)
    expected = expected_queries(limits, warmup_queries, warmup_ns)
    every = -(-expected // limits.max_queries)
    room = min(limits.max_queries, -(-expected // every))
    times, started = touched(room), touched(room)
    with no_collector():
        start, end, kept, queries = _play(session, pool, limits, carry, every, times.data, started.data)
    window = Window(start, end, warmup_queries, times[:kept])
    return Played(
        window,
        {"latency_ns": times[:kept], "started_ns": started[:kept]},
        requests=queries,
        requests_per_s=queries / ((end - start) / 1e9),
        facts={"every": every, "queries": queries},
    )


def _play(
    session: Session, pool: Pool, limits: Limits, carry: Carry, every: int, times: memoryview, started: memoryview
) -> tuple[int, int, int, int]:
    """Fill `times` and `started`; return the window's start and end, how many queries were kept, and how many there were."""
    clock = time.perf_counter_ns
    infer = session.infer
    different, room, kept, queries = len(pool), len(times), 0, 0
    left = every
    window_start = time.monotonic_ns()
    begin = clock()
    final_end = begin + int(limits.duration_s * 1e9)
    while True:
        inputs = pool[queries % different]
        start = clock()
        outputs = infer(0, inputs)
        end = clock()
        queries += 1
        left -= 1
        if not left:
            times[kept] = end - start
            started[kept] = start - begin
            kept += 1
            left = every
        for taking, giving in carry:
            np.copyto(inputs[taking], outputs[giving])
        if (end >= final_end and kept) or kept == room:
            return window_start, time.monotonic_ns(), kept, queries
