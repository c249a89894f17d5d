"""An accuracy trial: every labelled sample once, one prediction each; the parent, which has the labels, judges them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backends.base import Array
from harness.tasks import carried, create
from harness.worker.fidelity import keep_outputs
from harness.worker.finite import require_finite
from harness.worker.job import Job
from harness.worker.loading import load
from harness.worker.memory import peak_rss_bytes

PREDICTIONS = "predictions"


def run_accuracy(job: Job) -> dict[str, Any]:
    """Run all samples with batch 1 and write one JSON line {"id", "prediction"} for each.

    Raises NotFinite at the first output that holds NaN or infinity. Where the job asks for it, the fidelity pass follows in
    the same session.
    """
    loaded = load(job)
    session = loaded.session
    session.prepare(1)
    task = create(job.task, job.task_parameters)
    previous: Mapping[str, Array] | None = None
    start = time.monotonic_ns()
    with (Path(job.out_dir) / PREDICTIONS).open("w", encoding="utf-8") as lines:
        for sample in job.samples:
            inputs = carried(task, sample, task.preprocess(task.decode(sample)), previous)
            outputs = loaded.outputs.to_canonical(session.infer(0, loaded.inputs.to_file([inputs])))
            require_finite(outputs, sample.id)
            for prediction in task.postprocess(outputs)[:1]:
                lines.write(json.dumps({"id": sample.id, "prediction": prediction}, allow_nan=False) + "\n")
            previous = outputs if task.carry else None
    end = time.monotonic_ns()
    files = [{"what": PREDICTIONS, "count": len(job.samples)}]
    if job.fidelity is not None:
        files.append(keep_outputs(job, loaded))
    return {
        "window_start_ns": start,
        "window_end_ns": end,
        "report": asdict(session.report()),
        "files": files,
        "peak_rss_bytes": peak_rss_bytes(),
    }
