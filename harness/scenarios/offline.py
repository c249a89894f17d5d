"""Offline: all samples are there from the start, several requests are in flight. Throughput is what it measures.

The time from a request's start to its answer contains waiting in the runtime's queue; it is kept, but it is no latency.
"""

from __future__ import annotations

import time

import numpy as np

from backends.base import Session
from harness.scenarios.window import Limits, Pool, Window, no_collector, room_for


def run(session: Session, pool: Pool, limits: Limits, slots: int) -> Window:
    """Warm up, then keep `slots` requests in flight until the window ends, and wait for all of them.

    Throughput is samples over the wall time of the whole window, the last answers included.
    """
    begin = time.perf_counter_ns()
    warmup_queries = keep_busy(session, pool, limits.warmup_s, limits.warmup_s, slots, np.zeros(1_000_000, np.int64), 1)
    times = room_for(limits, warmup_queries, time.perf_counter_ns() - begin)
    with no_collector():
        start = time.monotonic_ns()
        done = keep_busy(session, pool, limits.duration_s, limits.limit_s, slots, times, limits.min_queries)
        end = time.monotonic_ns()
    return Window(start, end, warmup_queries, times[:done])


def keep_busy(
    session: Session,
    pool: Pool,
    duration_s: float,
    limit_s: float,
    slots: int,
    times: np.ndarray[tuple[int], np.dtype[np.int64]],
    min_queries: int,
) -> int:
    """Fill `times` with nanoseconds per query, in the order of answers; return how many queries were answered."""
    if slots == 1:
        return _one_by_one(session, pool, duration_s, limit_s, times, min_queries)
    clock = time.perf_counter_ns
    submit, next_done, wait = session.submit, session.next_done, session.wait
    store = times.data
    different, room = len(pool), len(times)
    started = [0] * slots
    begin = clock()
    soft_end = begin + int(duration_s * 1e9)
    hard_end = begin + int(max(limit_s, duration_s) * 1e9)
    asked = answered = 0
    for slot in range(min(slots, room)):
        started[slot] = clock()
        submit(slot, pool[asked % different])
        asked += 1
    while answered < asked:
        slot = next_done()
        wait(slot)
        now = clock()
        store[answered] = now - started[slot]
        answered += 1
        if asked < room and now < hard_end and (now < soft_end or asked < min_queries):
            started[slot] = now
            submit(slot, pool[asked % different])
            asked += 1
    return answered


def _one_by_one(
    session: Session,
    pool: Pool,
    duration_s: float,
    limit_s: float,
    times: np.ndarray[tuple[int], np.dtype[np.int64]],
    min_queries: int,
) -> int:
    clock = time.perf_counter_ns
    infer = session.infer
    store = times.data
    different, room, done = len(pool), len(times), 0
    end = begin = clock()
    soft_end = begin + int(duration_s * 1e9)
    hard_end = begin + int(max(limit_s, duration_s) * 1e9)
    while True:
        start = end
        infer(0, pool[done % different])
        end = clock()
        store[done] = end - start
        done += 1
        if done == room or end >= hard_end or (end >= soft_end and done >= min_queries):
            return done
