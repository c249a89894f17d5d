"""Which targets work here: each backend is probed in its own interpreter, in a process of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from backends.base import TargetStatus
from harness.runner.trial_process import interpreter_for, run_worker
from harness.worker.job import Job

PROBE_TIMEOUT_S = 120.0


def probe_targets(
    archive: Path,
    folder: Path,
    places: Iterable[tuple[str, str]],
    runtimes: Mapping[str, Path],
    device_index: int = 0,
) -> dict[tuple[str, str], TargetStatus]:
    """Probe (backend, target) pairs, one process per backend. A probe that crashes is a target that does not work."""
    wanted: dict[str, list[str]] = {}
    for backend, target in dict.fromkeys(places):
        wanted.setdefault(backend, []).append(target)
    found: dict[tuple[str, str], TargetStatus] = {}
    for backend, targets in wanted.items():
        for status in _probe(archive, folder, backend, tuple(targets), runtimes, device_index):
            found[backend, status.target] = status
        for target in targets:
            if (backend, target) not in found:
                found[backend, target] = TargetStatus(backend, target, False, "The probe did not answer for it.")
    return found


def probe_backend(
    archive: Path, folder: Path, backend: str, runtimes: Mapping[str, Path], device_index: int = 0
) -> tuple[TargetStatus, ...]:
    """Probe every target that a backend names, in the backend's own interpreter."""
    return _probe(archive, folder, backend, (), runtimes, device_index)


def _probe(
    archive: Path,
    folder: Path,
    backend: str,
    targets: tuple[str, ...],
    runtimes: Mapping[str, Path],
    device_index: int,
) -> tuple[TargetStatus, ...]:
    job = Job(
        trial_id=str(uuid.uuid4()),
        kind="probe",
        backend=backend,
        out_dir="",
        timeout_s=PROBE_TIMEOUT_S,
        targets=targets,
        device_index=device_index,
    )
    outcome = run_worker(archive, interpreter_for(backend, runtimes), job, folder)
    if outcome.status == "ok":
        return tuple(TargetStatus(**_known(item)) for item in outcome.document["targets"])
    if len(targets) > 1:
        # One target may have taken the process down with it; the others still get their own answer.
        each = [_probe(archive, folder, backend, (target,), runtimes, device_index) for target in targets]
        return tuple(status for statuses in each for status in statuses)
    words = f" Its last words: {outcome.last_words.splitlines()[-1]}" if outcome.last_words else ""
    reason = f"The probe failed. {outcome.reason}{words}"
    if targets:
        return (TargetStatus(backend, targets[0], False, reason),)
    import backends

    return probe_each(archive, folder, backend, backends.create(backend).targets(), runtimes, device_index)


def probe_each(
    archive: Path,
    folder: Path,
    backend: str,
    targets: tuple[str, ...],
    runtimes: Mapping[str, Path],
    device_index: int = 0,
) -> tuple[TargetStatus, ...]:
    """Probe each target in a process of its own."""
    each = [_probe(archive, folder, backend, (target,), runtimes, device_index) for target in targets]
    return tuple(status for statuses in each for status in statuses)


def _known(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in TargetStatus.__dataclass_fields__ if name in document}
