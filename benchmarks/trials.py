"""One trial of ours through the real worker: a fresh process that loads, warms up and measures as `weigh run` does."""

from __future__ import annotations

import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.artifacts import ModelFile
from harness.errors import NotDone
from harness.folders import cache_dir
from harness.judgement.summary import loadgen_percentile
from harness.models.store import ModelStore
from harness.runner.steadiness import samples_of
from harness.runner.trial_process import run_worker
from harness.tasks.base import Sample
from harness.worker.job import Job, JobModel
from harness.worker.pack import worker_archive


def model_file(name: str, model_format: str, offline: bool = False) -> ModelFile:
    """The fp32 file of a catalogued model, fetched or built where the cache lacks it."""
    return ModelStore(cache_dir(), offline=offline).ensure(name, model_format)


def trial(
    backend: str,
    model: ModelFile,
    scenario: str,
    options: Mapping[str, Any],
    limits: Mapping[str, Any],
    started: Callable[[int], None] | None = None,
) -> Mapping[str, Any]:
    """Run one timing trial on the CPU in batches of one, with one random input, as the peers have; return its figures.

    The figures are p50, min and mean in microseconds (of a single stream) and per_s, with the raw latencies. `report` is
    what really ran. `started` is told the worker's process. Raises NotDone with the worker's reason.
    """
    job = Job(
        trial_id=str(uuid.uuid4()),
        kind="timing",
        backend=backend,
        out_dir="",
        timeout_s=300,
        target="cpu",
        model=JobModel(str(model.path), model.artifact.format, model.inputs, model.outputs),
        options=options,
        task="random_inputs",
        task_parameters={"ports": [asdict(port) for port in model.inputs]},
        samples=(Sample("seed-1", (), None, {"seed": 1}),),
        scenario=scenario,
        scenario_parameters=limits,
    )
    with tempfile.TemporaryDirectory(prefix="weighbridge-benchmark-") as folder:
        outcome = run_worker(worker_archive(cache_dir()), Path(sys.executable), job, Path(folder), started)
    if outcome.status != "ok":
        raise NotDone(f"Our own trial on {backend} ended with: {outcome.reason}")
    found: dict[str, Any] = {
        "per_s": float(outcome.document["throughput_per_s"]),
        "report": outcome.document["report"],
    }
    latencies = samples_of(outcome, "latency_ns")
    if len(latencies):
        found.update(percentiles(latencies), latency_ns=latencies, window_start_ns=outcome.document["window_start_ns"])
    return found


def percentiles(query_ns: npt.NDArray[np.int64]) -> dict[str, float]:
    """Microseconds of the percentiles that LoadGen prints too, by its rule, and the extremes. Takes at least one query."""
    ordered = np.sort(query_ns)
    found = {
        name: loadgen_percentile(ordered, mille) / 1e3 for name, mille in (("p50", 500), ("p90", 900), ("p99", 990))
    }
    return {**found, "min": float(ordered[0]) / 1e3, "mean": float(ordered.mean()) / 1e3}
