"""A placement trial: the runtime's profiler is on and says where the nodes ran; its times are no measurement."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.worker.job import Job
from harness.worker.loading import load, prepare_pool
from harness.worker.memory import peak_rss_bytes

QUERIES = 20


def run_placement(job: Job) -> dict[str, Any]:
    """Run a few queries with profiling on and return the runtime's report."""
    loaded = load(job)
    prepared = prepare_pool(job, loaded)
    loaded.session.prepare(1)
    for number in range(QUERIES):
        loaded.session.infer(0, prepared.pool[number % len(prepared.pool)])
    return {"report": asdict(loaded.session.report()), "files": [], "peak_rss_bytes": peak_rss_bytes()}
