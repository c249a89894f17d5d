"""Our own cost per query: single_stream around a session that does nothing, beside LoadGen and beside a bare loop.

Two costs count. The recorded one is part of every latency (the call and the clock); the wall time per query is what
the loop takes from the machine between queries, which no latency contains.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from backends.base import Array, Report, TensorInfo
from benchmarks import loadgen
from benchmarks.rounds import Goal, compare, header, interleave, line, load
from benchmarks.trials import model_file, percentiles, trial
from harness.errors import WeighbridgeError
from harness.scenarios import single_stream
from harness.scenarios.window import Limits, Pool

ROUNDS = 11
QUERIES = 100_000
GOAL_RECORDED_US = 0.2
GOAL = Goal(times_less=5.0)
WORKLOADS = ("silero-vad", "minilm-l6", "efficientnet-lite0", "centerface", "basic-pitch", "resnet50-seeded")
SHORT = {"duration_s": 1.0, "warmup_s": 0.3, "min_queries": 20}


class NullSession:
    """A session that answers with its inputs. See backends.base.Session."""

    inputs: tuple[TensorInfo, ...] = (TensorInfo("x", "float32", (1, 4)),)
    outputs: tuple[TensorInfo, ...] = (TensorInfo("x", "float32", (1, 4)),)
    load_ms: float | None = 0.0
    compile_ms: float | None = None
    preferred_slots = 1

    def prepare(self, slots: int) -> None:
        """Nothing to allocate."""

    def infer(self, slot: int, inputs: Sequence[Array]) -> Sequence[Array]:
        """Answer at once."""
        return inputs

    def submit(self, slot: int, inputs: Sequence[Array]) -> None:
        """Single stream never asks this."""
        raise NotImplementedError

    def next_done(self) -> int:
        """Single stream never asks this."""
        raise NotImplementedError

    def done_within(self, timeout_s: float) -> int | None:
        """Single stream never asks this."""
        raise NotImplementedError

    def wait(self, slot: int) -> Sequence[Array]:
        """Single stream never asks this."""
        raise NotImplementedError

    def report(self) -> Report:
        """Nothing ran."""
        return Report("null", "0", "cpu")

    def close(self) -> None:
        """Nothing to release."""


def pool() -> Pool:
    """As many inputs as LoadGen has samples here."""
    return [(np.zeros((1, 4), np.float32),) for _ in range(loadgen.POOL)]


def ours(queries: int = QUERIES) -> dict[str, float]:
    """Recorded percentiles and wall microseconds per query of our scenario."""
    limits = Limits(duration_s=0, min_queries=queries, max_queries=queries, warmup_s=0.01)
    window = single_stream.run(NullSession(), pool(), limits)
    return {**percentiles(window.query_ns), "wall": 1e6 / window.queries_per_s}


def bare(queries: int = QUERIES) -> dict[str, float]:
    """The least that Python can do: read the clock, call, read the clock, keep the difference."""
    times = np.zeros(queries, np.int64)
    store, clock, infer, inputs = times.data, time.perf_counter_ns, NullSession().infer, pool()[0]
    begin = clock()
    for number in range(queries):
        start = clock()
        infer(0, inputs)
        store[number] = clock() - start
    return {**percentiles(times), "wall": (clock() - begin) / queries / 1e3}


def peer(fast: bool) -> dict[str, float]:
    """LoadGen's SingleStream with the same system."""
    return loadgen.figures(loadgen.null_single_stream(QUERIES, fast))


def main(rounds: int = ROUNDS) -> None:
    """Print recorded and wall microseconds per query beside each peer, and the share in real workloads."""
    print(
        f"overhead: single stream with a session that does nothing, {QUERIES} queries a round, {rounds} rounds; {load()}"
    )
    print("  recorded: what stands in each latency; wall: one query, with the loop's own work between queries")
    against_bare = interleave(rounds, ours, bare)
    recorded = compare(against_bare, "p50")
    print(header("bare loop"))
    print(line("recorded p50", "us", recorded))
    print(line("wall per query", "us", compare(against_bare, "wall")))
    said = "met" if recorded.ours <= GOAL_RECORDED_US else "not met"
    print(f"  goal: recorded p50 at most {GOAL_RECORDED_US} us: {said} in this run")
    _shares(recorded.ours, compare(against_bare, "wall").ours)
    for name, fast in (("LoadGen", False), ("LoadGen fast", True)):
        found = interleave(rounds, ours, lambda fast=fast: peer(fast))  # type: ignore[misc]
        print(header(name) if not fast else f"  its {name.split()[1]} binding (ConstructFastSUT):")
        print(line("recorded p50", "us", compare(found, "p50"), GOAL))
        print(line("wall per query", "us", compare(found, "wall")))


def _shares(recorded_us: float, wall_us: float) -> None:
    """Print both costs as shares of each workload's latency here, on onnxruntime with one thread."""
    print("  share of a workload's p50 (onnxruntime, one thread; files that are in the cache):")
    for name in WORKLOADS:
        try:
            model = model_file(name, "onnx", offline=True)
            p50 = trial("onnxruntime", model, "single_stream", {"threads": 1}, SHORT)["p50"]
        except WeighbridgeError as error:
            print(f"    {name:<20} not measured: {error}")
            continue
        print(f"    {name:<20}{p50 / 1e3:>9.3f} ms   recorded {recorded_us / p50:.5%}   wall {wall_us / p50:.5%}")
