"""A fidelity pass: a fixed set of inputs once through the session, its raw outputs kept. It needs no labels."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backends.base import Array
from harness.tasks import carried, create
from harness.worker.job import Job
from harness.worker.loading import Loaded, load
from harness.worker.memory import peak_rss_bytes
from harness.worker.outputs import OUTPUTS, SampleOutputs, inputs_digest, write_outputs

OUTPUT_BYTES = 8 * 1024 * 1024  # no further sample once so much is kept
BUDGET_NS = 10_000_000_000  # nor after ten seconds, on a slow device; the parent compares what both have
LEAST_SAMPLES = 4


def run_fidelity(job: Job) -> dict[str, Any]:
    """Run the pass in a process of its own."""
    loaded = load(job)
    loaded.session.prepare(1)
    start = time.monotonic_ns()
    files = [keep_outputs(job, loaded)]
    return {
        "window_start_ns": start,
        "window_end_ns": time.monotonic_ns(),
        "report": asdict(loaded.session.report()),
        "files": files,
        "peak_rss_bytes": peak_rss_bytes(),
    }


def keep_outputs(job: Job, loaded: Loaded) -> dict[str, Any]:
    """Run the job's fidelity inputs in their order, as one stream where the task has state, and write the outputs."""
    plan = job.fidelity
    if plan is None or not plan.samples:
        raise ValueError("the job has no fidelity inputs")
    task = create(plan.task, plan.task_parameters)
    previous: Mapping[str, Array] | None = None
    kept: list[SampleOutputs] = []
    held, deadline = 0, time.monotonic_ns() + BUDGET_NS
    for sample in plan.samples:
        fresh = task.preprocess(task.decode(sample))
        inputs = carried(task, sample, fresh, previous)
        outputs = loaded.outputs.to_canonical(loaded.session.infer(0, loaded.inputs.to_file([inputs])))
        kept.append(SampleOutputs(sample.id, inputs_digest(fresh), outputs))
        previous = outputs if task.carry else None
        held += sum(array.nbytes for array in outputs.values())
        if held >= OUTPUT_BYTES or (time.monotonic_ns() > deadline and len(kept) >= LEAST_SAMPLES):
            break
    write_outputs(Path(job.out_dir) / OUTPUTS, kept)
    return {"what": OUTPUTS, "count": len(kept)}
