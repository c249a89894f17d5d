"""Our percentiles beside LoadGen's SingleStream on the same onnxruntime session, in one process, in turns.

Both count from just before the call to just after it; LoadGen's latency also holds its way into Python and back (about a
microsecond), which shows on the shortest network only. Both take the sample at floor(n p), so the rule cannot differ.
"""

from __future__ import annotations

import gc

import numpy as np

import backends
from backends.base import LoadOptions, Session
from benchmarks import loadgen
from benchmarks.rounds import Goal, compare, header, interleave, line, load
from benchmarks.trials import model_file, percentiles
from harness.artifacts import ModelFile
from harness.scenarios import single_stream
from harness.scenarios.window import Inputs, Limits
from harness.tasks import create
from harness.tasks.base import Sample
from harness.worker.tensors import TensorMap

GOAL = Goal(within=0.02)
# name, queries a round (enough for a p99), rounds
NETWORKS = (("silero-vad", 2000, 25), ("efficientnet-lite0", 120, 25))


def main(rounds: int | None = None) -> None:
    """Print the ratio of each percentile, for a short and for a longer network."""
    for name, queries, usual in NETWORKS:
        model = model_file(name, "onnx")
        session = backends.create("onnxruntime").load(model.path, "onnx", "cpu", LoadOptions(threads=1))
        try:
            _compare(name, session, _pool(model, session), queries, rounds or usual)
        finally:
            session.close()


def _compare(name: str, session: Session, pool: list[Inputs], queries: int, rounds: int) -> None:
    session.prepare(1)
    limits = Limits(duration_s=0, min_queries=queries, max_queries=queries, warmup_s=0.05, limit_s=600)
    expected_ns = int(percentiles(single_stream.run(session, pool, limits).query_ns)["p50"] * 1e3)

    def ours() -> dict[str, float]:
        return percentiles(single_stream.run(session, pool, limits).query_ns)

    def peer() -> dict[str, float]:
        for inputs in pool:  # LoadGen counts from its first query; ours has a warm-up
            session.infer(0, inputs)
        gc.collect()
        return loadgen.figures(loadgen.single_stream(lambda index: session.infer(0, pool[index]), queries, expected_ns))

    found = interleave(rounds, ours, peer)
    print(
        f"percentiles: {name}, one onnxruntime session, one thread, {queries} queries a round, {rounds} rounds; {load()}"
    )
    print("  boundary of both: around Session.infer (write, run, read); LoadGen's holds its binding as well")
    print(header("LoadGen"))
    for figure in ("p50", "p90", "p99"):
        print(line(figure, "us", compare(found, figure), GOAL))


def _pool(model: ModelFile, session: Session) -> list[Inputs]:
    """As many seeded inputs as LoadGen has samples."""
    ports = [{"role": port.role, "dtype": port.dtype, "shape": port.shape} for port in model.inputs]
    task = create("random_inputs", {"ports": ports})
    to_file = TensorMap(model.inputs, session.inputs).to_file
    drawn = (task.preprocess(task.decode(Sample(str(seed), (), None, {"seed": seed}))) for seed in range(loadgen.POOL))
    return [tuple(np.ascontiguousarray(array) for array in to_file([arrays])) for arrays in drawn]
