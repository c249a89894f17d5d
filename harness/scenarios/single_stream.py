"""Single stream: the next query starts when the last answer is there. Latency is what it measures."""

from __future__ import annotations

import time

import numpy as np

from backends.base import Session
from harness.scenarios.window import Carry, Limits, Pool, Window, no_collector, room_for


def run(session: Session, pool: Pool, limits: Limits, carry: Carry = ()) -> Window:
    """Warm up, then time each query alone, host to host. The timed loop allocates nothing.

    State that goes from call to call is copied between two queries, outside what is timed.
    """
    warmup_queries, warmup_ns = warm_up(session, pool, limits.warmup_s, carry)
    return back_to_back(session, pool, limits, carry, warmup_queries, warmup_ns)


def back_to_back(
    session: Session, pool: Pool, limits: Limits, carry: Carry, warmup_queries: int, warmup_ns: int
) -> Window:
    """Time one query after the other. The pace of the warm-up says how much memory their times may take."""
    times = room_for(limits, warmup_queries, warmup_ns)
    slots = times.data  # assigning to a memoryview is twice as fast as to an array
    clock = time.perf_counter_ns
    infer = session.infer
    different, room = len(pool), len(times)
    enough, done = min(limits.min_queries, room), 0
    with no_collector():
        window_start = time.monotonic_ns()
        begin = clock()
        soft_end = begin + int(limits.duration_s * 1e9)
        hard_end = begin + int(limits.hard_s * 1e9)
        while True:
            inputs = pool[done % different]
            start = clock()
            outputs = infer(0, inputs)
            end = clock()
            slots[done] = end - start
            done += 1
            for taking, giving in carry:
                np.copyto(inputs[taking], outputs[giving])
            if done == room or (end >= soft_end and done >= enough) or end >= hard_end:
                break
        window_end = time.monotonic_ns()
    del slots
    return Window(window_start, window_end, warmup_queries, times[:done])


def warm_up(session: Session, pool: Pool, warmup_s: float, carry: Carry = ()) -> tuple[int, int]:
    """Run for `warmup_s`, at least one query; return how many and how many nanoseconds they took."""
    start = time.perf_counter_ns()
    done = 0
    while True:
        inputs = pool[done % len(pool)]
        outputs = session.infer(0, inputs)
        for taking, giving in carry:
            np.copyto(inputs[taking], outputs[giving])
        done += 1
        elapsed = time.perf_counter_ns() - start
        if elapsed >= warmup_s * 1e9:
            return done, elapsed
