"""What a dispatched run can do on this device, said before it starts, so that the control host sends what it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.device.agent import SUITE, read_request
from harness.folders import cache_dir


def needs(folder: Path) -> dict[str, Any]:
    """Probe the targets that the request in `folder` asks for. Returns them, and where this device's cache lies."""
    from agents.device.run_suite import RunRequest, plan_run
    from harness.runner.plan import Selection

    request = read_request(folder)
    selection = Selection(backends=request.backends, targets=request.targets, workloads=request.workloads)
    suite = str(folder / SUITE) if request.suite == SUITE else request.suite
    plan = plan_run(RunRequest(suite, selection, "fleet", request.offline))
    return {
        "cache": str(cache_dir()),
        "processors": plan.processors,
        "places": [
            {"backend": backend, "target": target, "works": status.works}
            for (backend, target), status in plan.probes.items()
        ],
    }
