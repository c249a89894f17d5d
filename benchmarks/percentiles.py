"""Our percentiles beside LoadGen's SingleStream on the same onnxruntime session, in one process, in turns.

Both take the sample at floor(n p), so the rule cannot differ. LoadGen's own latency holds, beside the inference, its way
into Python and back: the binding makes a list of the query, calls, makes a response, and tells LoadGen. With a system that
does nothing that is about a microsecond; between real queries, whose data have pushed the binding's code out of the caches,
it is some. So the same boundary is compared too: the clock is read inside LoadGen's call, just around the inference, as our
scenario reads it.
"""

from __future__ import annotations

import gc
import time

import numpy as np

import backends
from backends.base import LoadOptions, Session
from benchmarks import loadgen
from benchmarks.inputs import random_pool
from benchmarks.rounds import Figures, Goal, compare, header, interleave, line, load
from benchmarks.trials import model_file, percentiles
from harness.scenarios import single_stream
from harness.scenarios.window import Inputs, Limits

GOAL = Goal(within=0.02)
FIGURES = ("p50", "p90", "p99")
# name, queries a round (enough for a p99), rounds
NETWORKS = (("silero-vad", 2000, 25), ("efficientnet-lite0", 120, 25))


def main(rounds: int | None = None) -> None:
    """Print the ratio of each percentile, for a short and for a longer network."""
    for name, queries, usual in NETWORKS:
        model = model_file(name, "onnx")
        session = backends.create("onnxruntime").load(model.path, "onnx", "cpu", LoadOptions(threads=1))
        try:
            _compare(name, session, random_pool(model, session, loadgen.POOL), queries, rounds or usual)
        finally:
            session.close()


def _compare(name: str, session: Session, pool: list[Inputs], queries: int, rounds: int) -> None:
    session.prepare(1)
    sides = Sides(session, pool, queries)
    found = interleave(rounds, sides.ours, sides.peer)
    print(
        f"percentiles: {name}, one onnxruntime session, one thread, {queries} queries a round, {rounds} rounds; {load()}"
    )
    print(
        "  the same boundary: the clock just around Session.infer (write, run, read), the peer's inside LoadGen's call"
    )
    print(header("LoadGen"))
    for figure in FIGURES:
        print(line(figure, "us", compare(found, f"inner {figure}"), GOAL))
    print("  what LoadGen records: the same, with its binding's way into Python and back")
    for figure in FIGURES:
        print(line(figure, "us", compare(found, figure), GOAL))
    ways = [peer["way"] for _, peer in found]
    print(
        f"  that way, between real queries: {np.median(ways):.2f} us, {np.median(ways) / sides.p50_us:.2%} of our p50"
    )


class Sides:
    """Both sides of one network: our scenario, and LoadGen's around the same calls."""

    def __init__(self, session: Session, pool: list[Inputs], queries: int) -> None:
        self._infer, self._pool, self._queries = session.infer, pool, queries
        self._session = session
        self._limits = Limits(duration_s=0, min_queries=queries, max_queries=queries, warmup_s=0.05, limit_s=600)
        self.p50_us = self.ours()["p50"]

    def ours(self) -> Figures:
        """Percentiles of our scenario, under both names."""
        found = percentiles(single_stream.run(self._session, self._pool, self._limits).query_ns)
        return {**found, **{f"inner {name}": value for name, value in found.items()}}

    def peer(self) -> Figures:
        """LoadGen's own percentiles, of a pass without further clocks, and those inside its call, of another pass."""
        infer, pool = self._infer, self._pool
        recorded = self._loadgen(lambda index: infer(0, pool[index]))
        inner = np.zeros(self._queries, np.int64)
        store, clock = inner.data, time.perf_counter_ns
        number = 0

        def timed(index: int) -> None:
            nonlocal number
            start = clock()
            infer(0, pool[index])
            store[number] = clock() - start
            number += 1

        both = self._loadgen(timed)
        inside = percentiles(inner)
        return {
            **recorded,
            **{f"inner {name}": value for name, value in inside.items()},
            "way": both["p50"] - inside["p50"],
        }

    def _loadgen(self, call: loadgen.Call) -> Figures:
        for inputs in self._pool:  # LoadGen counts from its first query; ours has a warm-up
            self._infer(0, inputs)
        gc.collect()
        return loadgen.figures(loadgen.single_stream(call, self._queries, int(self.p50_us * 1e3)))
