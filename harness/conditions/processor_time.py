"""Processor time: what the worker used, and what everybody else used, of the processors that the worker may run on.

/proc/stat counts all time by processor in ticks (proc_stat(5)); the worker's own is that of its process tree. What is left
is other load. The harness's own process is counted apart, so that its share can be seen.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from harness.conditions.looks import Values
from harness.environment.reading import pairs, processor_list, text

BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq; guest time is inside user
STEAL = 7


class ProcessorTime:
    """Reads /proc/stat and the worker's tree below `root`."""

    def __init__(self, root: Path, pid: int) -> None:
        self.absent: dict[str, str] = {}
        self._root = root
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01
        allowed = processor_list(pairs(root / f"proc/{pid}/status").get("Cpus_allowed_list", ""))
        present = self._read_stat()
        self.processors = tuple(number for number in allowed if number in present) or tuple(present)
        if not present:
            self.absent["other_load"] = self.absent["steal"] = "/proc/stat cannot be read"
        self._children: tuple[int, ...] = ()
        self._children_at_start_s = _reaped_s()
        self._known_s = 0.0

    def look(self, pid: int, slowly: bool) -> Values:
        """Look at all times together, the worker's in the middle."""
        values = Values()
        stat = self._read_stat()
        worker_s = self._worker_s(pid, slowly)
        if stat and self.processors:
            times = [stat[number] for number in self.processors if number in stat]
            values.counters["busy_s"] = sum(sum(row[i] for i in BUSY if i < len(row)) for row in times) * self._tick_s
            values.counters["steal_s"] = sum(row[STEAL] for row in times if len(row) > STEAL) * self._tick_s
        values.counters["worker_s"] = worker_s
        values.counters["harness_s"] = time.process_time()
        return values

    def _read_stat(self) -> dict[int, list[int]]:
        """Return the ticks of each processor."""
        found: dict[int, list[int]] = {}
        for line in text(self._root / "proc/stat").splitlines():
            name, *fields = line.split()
            if not name.startswith("cpu"):
                break  # the processors come first; the rest is long on large machines
            if name != "cpu" and name[3:].isdigit():
                found[int(name[3:])] = [int(value) for value in fields]
        return found

    def _worker_s(self, pid: int, slowly: bool) -> float:
        """Return the processor time of the worker's tree so far; once it has ended, what the kernel charged to us for it."""
        main = self._process_s(pid)
        if main is None:
            self._known_s = max(self._known_s, _reaped_s() - self._children_at_start_s)
            return self._known_s
        if slowly:
            self._children = tuple(self._descendants(pid))
        total = main + sum(self._process_s(child) or 0.0 for child in self._children)
        # A child that has ended is missing until its parent has waited for it; what was used is never taken back.
        self._known_s = max(self._known_s, total)
        return self._known_s

    def _process_s(self, pid: int) -> float | None:
        """User and system time of a process and of its children that have ended and were waited for (fields 14 to 17)."""
        _, _, rest = text(self._root / f"proc/{pid}/stat").rpartition(")")
        fields = rest.split()
        if len(fields) < 15:
            return None
        return sum(int(value) for value in fields[11:15]) * self._tick_s

    def _descendants(self, pid: int, depth: int = 0) -> list[int]:
        found: list[int] = []
        try:
            tasks = list((self._root / f"proc/{pid}/task").iterdir())
        except OSError:
            return found
        for task in tasks:
            for child in text(task / "children").split():
                found += [int(child), *(self._descendants(int(child), depth + 1) if depth < 4 else ())]
        return found


def _reaped_s() -> float:
    """Processor time of all children of this process that have ended and were waited for."""
    if sys.platform == "win32":
        return 0.0
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
