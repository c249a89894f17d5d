"""Multi-stream: queries of N samples, the next one starts when the last is answered whole. Its latency is what it measures.

As LoadGen's MultiStream. How a query is cut is the system's choice: N requests of one sample, N / b of batch b, or one
of batch N; with several slots they are in flight together.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from backends.base import OptionUnsupported, Session
from harness.scenarios.window import Limits, Played, Pool, Window, no_collector, room_for

SAMPLES_PER_QUERY = 8  # as MLPerf's


def requests_per_query(parameters: Mapping[str, Any]) -> int:
    """Return how many requests make one query. Raises OptionUnsupported where the batch does not divide it."""
    samples, batch = int(parameters.get("samples_per_query", SAMPLES_PER_QUERY)), int(parameters.get("batch", 1))
    if samples % batch:
        raise OptionUnsupported(
            f"A query of {samples} samples cannot be made of batches of {batch}.",
            f"Choose a batch that divides {samples}, or 1.",
        )
    return samples // batch


def run(session: Session, pool: Pool, limits: Limits, parameters: Mapping[str, Any], slots: int) -> Played:
    """Warm up, then answer one query after the other. Latency is from its first request until all its answers are there."""
    requests = requests_per_query(parameters)
    slots = min(slots, requests)
    warm = Limits(limits.warmup_s, 1, limits.max_queries, 0.0, limits.warmup_s)
    begin = time.perf_counter_ns()
    warmup_queries, _, _ = _play(session, pool, warm, np.zeros(1_000_000, np.int64).data, requests, slots)
    times = room_for(limits, warmup_queries, time.perf_counter_ns() - begin)
    with no_collector():
        done, start, end = _play(session, pool, limits, times.data, requests, slots)
    window = Window(start, end, warmup_queries, times[:done])
    return Played(
        window,
        {"latency_ns": times[:done]},
        requests=done * requests,
        requests_per_s=window.queries_per_s * requests,
        facts={"requests_per_query": requests, "slots": slots},
    )


def _play(
    session: Session, pool: Pool, limits: Limits, store: memoryview, requests: int, slots: int
) -> tuple[int, int, int]:
    """Fill `store` with nanoseconds per query; return how many there were, and when the first began and the last ended."""
    clock = time.perf_counter_ns
    infer, submit, next_done, wait = session.infer, session.submit, session.next_done, session.wait
    different, room = len(pool), min(len(store), limits.max_queries)
    enough, done, asked = min(limits.min_queries, room), 0, 0
    window_start = time.monotonic_ns()
    begin = clock()
    soft_end, hard_end = begin + int(limits.duration_s * 1e9), begin + int(limits.hard_s * 1e9)
    while True:
        if slots == 1:
            last = asked + requests
            start = clock()
            while asked < last:
                infer(0, pool[asked % different])
                asked += 1
            end = clock()
        else:
            ahead = requests - slots
            answers = requests
            start = clock()
            for slot in range(slots):
                submit(slot, pool[asked % different])
                asked += 1
            while answers:
                slot = next_done()
                wait(slot)
                answers -= 1
                if ahead:
                    submit(slot, pool[asked % different])
                    asked += 1
                    ahead -= 1
            end = clock()
        store[done] = end - start
        done += 1
        if done == room or (end >= soft_end and done >= enough) or end >= hard_end:
            return done, window_start, time.monotonic_ns()
