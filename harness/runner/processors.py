"""How many processors this process may use: what threads are counted against."""

from __future__ import annotations

import math
import os
from pathlib import Path

from harness.environment.cgroups import cpu_quota


def available_processors(root: Path = Path("/")) -> int:
    """Return the processors of the affinity mask, or fewer where a CPU quota (of any control group above us) is smaller."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota(root)
    return count if quota is None else max(1, min(count, math.ceil(quota)))
