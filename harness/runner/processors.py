"""How many processors this process may use: what threads are counted against."""

from __future__ import annotations

import math
import os
from pathlib import Path


def available_processors(root: Path = Path("/")) -> int:
    """Return the processors of the affinity mask, or fewer where a container's CPU quota (cgroup v2 or v1) is smaller."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota(root)
    return count if quota is None else max(1, min(count, math.ceil(quota)))


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Return the container's quota in processors, None where there is none."""
    try:
        limit, period = (root / "sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        pass  # not cgroup v2
    folder = root / "sys/fs/cgroup/cpu"
    try:
        limit_us = int((folder / "cpu.cfs_quota_us").read_text(encoding="ascii"))
        period_us = int((folder / "cpu.cfs_period_us").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return limit_us / period_us if limit_us > 0 and period_us > 0 else None
