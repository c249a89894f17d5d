"""A probe job: which targets of one backend work in this interpreter, seen by making real sessions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import backends
from harness.worker.job import Job


def run_probe(job: Job) -> dict[str, Any]:
    """Probe each of the job's targets; all that the backend names where the job names none."""
    backend = backends.create(job.backend)
    targets = job.targets or backend.targets()
    return {"targets": [asdict(backend.probe(target, job.device_index)) for target in targets], "files": []}
