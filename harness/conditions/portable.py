"""macOS and Windows: what psutil tells of other load and swap. The rest is absent there, with the reason."""

from __future__ import annotations

import mmap
import time
from typing import Any

from harness.conditions.looks import Values

NOT_HERE = {
    "steal": "only Linux tells stolen time",
    "cgroup_throttled": "only Linux has control groups",
    "frequency": "this system tells no current frequency without special rights",
    "temperature": "this system tells no temperature without special rights",
    "pressure": "only Linux keeps pressure stall information",
}


class Portable:
    """psutil's system-wide times minus the worker's; swap totals of the system."""

    def __init__(self, pid: int) -> None:
        import psutil

        self._psutil: Any = psutil
        self.absent: dict[str, str] = dict(NOT_HERE)
        self.processors = tuple(range(psutil.cpu_count() or 1))
        self._known_s = 0.0
        self._page = mmap.PAGESIZE  # 16 KiB on Apple silicon

    def look(self, pid: int, slowly: bool) -> Values:
        """Look once; an ended worker keeps its last known time."""
        psutil = self._psutil
        times = psutil.cpu_times()
        values = Values()
        values.counters["busy_s"] = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "dpc"))
        try:
            worker = psutil.Process(pid)
            tree = [worker, *(worker.children(recursive=True) if slowly else ())]
            self._known_s = max(self._known_s, sum(sum(one.cpu_times()[:2]) for one in tree))
        except psutil.Error:
            pass  # it has ended
        values.counters["worker_s"] = self._known_s
        values.counters["harness_s"] = time.process_time()
        if slowly:
            swap = psutil.swap_memory()
            values.counters["pswpin"] = swap.sin / self._page
            values.counters["pswpout"] = swap.sout / self._page
        return values
