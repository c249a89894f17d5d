"""The worker: `python -I worker.pyz JOB.json`. Reads one job, writes one trial file, and ends.

Whatever goes wrong here becomes a trial with a status and a reason. What kills the process leaves no trial file, and the
parent says how it died. Standard output and standard error belong to the runtimes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

GRACE_S = 30  # after the parent's own timeout, for the case that the parent is gone


def main(arguments: list[str]) -> int:
    """Run the job of the first argument; 0 when a trial file was written, whatever its status."""
    from harness.worker.job import SPAWNED_VARIABLE, read_job, write_result

    job = read_job(Path(arguments[0]))
    spawned = os.environ.pop(SPAWNED_VARIABLE, None)
    if hasattr(signal, "alarm"):
        signal.alarm(int(job.timeout_s) + GRACE_S)
    import numpy  # noqa: F401  belongs to the start of the process, not to the runtime's import

    process_ms = (time.monotonic_ns() - int(spawned)) / 1e6 if spawned else None
    document: dict[str, Any] = {"trial_id": job.trial_id, "kind": job.kind, "python": sys.version.split()[0]}
    try:
        document.update(_run(job, process_ms))
        document["status"] = "ok"
    except Exception as error:
        document.update(_explain(error))
    write_result(Path(job.out_dir), document)
    return 0


def _run(job: Any, process_ms: float | None) -> dict[str, Any]:
    if job.kind in ("timing", "energy"):  # the same work; the parent reads its meters beside the second
        from harness.worker.timing import run_timing

        return run_timing(job, process_ms)
    if job.kind == "cold":
        from harness.worker.cold import run_cold

        return run_cold(job, process_ms)
    if job.kind == "fill":
        from harness.worker.cold import run_fill

        return run_fill(job)
    if job.kind == "accuracy":
        from harness.worker.accuracy import run_accuracy

        return run_accuracy(job)
    if job.kind == "fidelity":
        from harness.worker.fidelity import run_fidelity

        return run_fidelity(job)
    if job.kind == "placement":
        from harness.worker.placement import run_placement

        return run_placement(job)
    if job.kind == "self":
        from harness.worker.self_cost import run_self_cost

        return run_self_cost(job)
    if job.kind == "probe":
        from harness.worker.probing import run_probe

        return run_probe(job)
    raise ValueError(f"there is no kind of trial {job.kind!r}")


def _explain(error: Exception) -> dict[str, Any]:
    """Turn an error into status, reason and fix: a sentence, never a traceback."""
    from backends.base import BackendError, OptionUnsupported, RuntimeMissing, TargetUnsupported
    from harness.errors import WeighbridgeError

    unsupported = isinstance(error, (RuntimeMissing, TargetUnsupported, OptionUnsupported))
    if isinstance(error, (BackendError, WeighbridgeError)):
        what, fix = error.what, error.fix
    elif isinstance(error, MemoryError):
        what, fix = "The worker ran out of memory.", "Use a smaller batch or fewer streams."
    elif isinstance(error, ModuleNotFoundError):
        what = f"The worker's interpreter {sys.executable} has no package {error.name!r}."
        fix = "Install it there."
    else:
        text = " ".join(str(error).split())[:500]
        what, fix = f"{type(error).__name__}: {text}" if text else type(error).__name__, ""
    return {
        "status": "unsupported" if unsupported else "failed",
        "reason": what,
        "fix": fix,
        "error": type(error).__name__,
        "files": [],
    }
