"""Our own cost per query: the scenarios around a session that does nothing, beside LoadGen and beside a bare loop.

Two costs count. The recorded one is part of every latency (the call and the clock); the wall time per query is what
the loop takes from the machine between queries, which no latency contains. Each run stores both (harness.worker.self_cost).

A tight loop runs out of the processor's first cache. Behind a real query the same few instructions have been pushed out of
it, so the recorded cost is also taken there: the null session is timed right after each query of a real one.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np

import backends
from backends.base import LoadOptions
from benchmarks import loadgen
from benchmarks.inputs import random_pool
from benchmarks.rounds import Goal, compare, header, interleave, line, load
from benchmarks.trials import model_file, percentiles, trial
from harness.artifacts import ModelFile
from harness.errors import WeighbridgeError
from harness.scenarios import run, single_stream
from harness.worker.self_cost import NullSession, limits, pool

ROUNDS = 11
QUERIES = 100_000
GOAL_RECORDED_US = 0.2
GOAL = Goal(times_less=5.0)
WORKLOADS = ("silero-vad", "minilm-l6", "efficientnet-lite0", "centerface", "basic-pitch", "resnet50-seeded")
BEHIND, BEHIND_S = 2000, 2  # queries and seconds, whichever ends first
SHORT = {"duration_s": 1.0, "warmup_s": 0.3, "min_queries": 20}


def ours(queries: int = QUERIES) -> dict[str, float]:
    """Recorded percentiles and wall microseconds per query of our scenario."""
    window = single_stream.run(NullSession(), pool(), limits(queries))
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
    _other_scenarios()
    _shares(recorded.ours, compare(against_bare, "wall").ours)
    for name, fast in (("LoadGen", False), ("LoadGen fast", True)):
        found = interleave(rounds, ours, partial(peer, fast))
        print(header(name) if not fast else f"  its {name.split()[1]} binding (ConstructFastSUT):")
        print(line("recorded p50", "us", compare(found, "p50"), GOAL))
        print(line("wall per query", "us", compare(found, "wall")))


def _other_scenarios() -> None:
    """Print the wall time per request of the loops that keep several in flight, with a session that answers at once."""
    print("  wall time per request of other scenarios, the same session:")
    for name, slots, parameters in (
        ("offline", 1, {}),
        ("offline", 2, {}),
        ("multi_stream", 1, {"samples_per_query": 8}),
        ("multi_stream", 2, {"samples_per_query": 8}),
    ):
        played = run(name, NullSession(), pool(), limits(20_000), {**parameters, "batch": 1, "seed": 1}, (), slots)
        window = played.window
        each = (window.end_ns - window.start_ns) / played.requests / 1e3
        print(f"    {name:<14}{slots} in flight {each:>8.3f} us")


def _shares(recorded_us: float, wall_us: float) -> None:
    """Print both costs as shares of each workload's latency here, on onnxruntime with one thread."""
    print("  share of a workload's p50 (onnxruntime, one thread; files that are in the cache):")
    for name in WORKLOADS:
        try:
            model = model_file(name, "onnx", offline=True)
            p50 = trial("onnxruntime", model, "single_stream", {"threads": 1}, SHORT)["p50"]
            behind = recorded_behind(model)
        except WeighbridgeError as error:
            print(f"    {name:<20} not measured: {error}")
            continue
        print(
            f"    {name:<20}{p50 / 1e3:>9.3f} ms   recorded {recorded_us / p50:.4%}"
            f"   behind a real query {behind:.2f} us, {behind / p50:.3%}   wall {wall_us / p50:.4%}"
        )


def recorded_behind(model: ModelFile) -> float:
    """The recorded cost in microseconds where it really falls: right after a query, with the caches as that left them."""
    session = backends.create("onnxruntime").load(model.path, "onnx", "cpu", LoadOptions(threads=1))
    try:
        session.prepare(1)
        real = random_pool(model, session, loadgen.POOL)
        null, clock, inputs = NullSession().infer, time.perf_counter_ns, pool()[0]
        times = np.zeros(BEHIND, np.int64)
        store = times.data
        end = clock() + BEHIND_S * 1_000_000_000
        for number in range(BEHIND):
            session.infer(0, real[number % len(real)])
            start = clock()
            null(0, inputs)
            store[number] = now = clock() - start
            if now + start > end:
                break
        return float(np.median(times[: number + 1])) / 1e3
    finally:
        session.close()
