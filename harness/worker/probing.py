"""A probe job: which targets of one backend work in this interpreter, seen by making real sessions."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import backends
from harness.worker.job import Job
from harness.worker.software import loaded_software


def run_probe(job: Job) -> dict[str, Any]:
    """Probe each of the job's targets; all that the backend names where the job names none."""
    backend = backends.create(job.backend)
    statuses = [backend.probe(target, job.device_index) for target in job.targets or backend.targets()]
    loaded = {"loaded": loaded_software()}
    found = [asdict(replace(one, details={**one.details, **(loaded if one.works else {})})) for one in statuses]
    return {"targets": found, "files": []}
