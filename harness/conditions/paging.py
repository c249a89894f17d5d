"""Memory under pressure: pages swapped, the worker's major faults, and how long tasks had to wait (pressure stall)."""

from __future__ import annotations

from pathlib import Path

from harness.conditions.looks import Values
from harness.environment.reading import text


class Paging:
    """/proc/vmstat and /proc/PID/stat, field 12 (majflt)."""

    def __init__(self, root: Path) -> None:
        self.absent: dict[str, str] = {}
        self._root = root
        if not (root / "proc/vmstat").exists():
            self.absent["swap"] = "/proc/vmstat cannot be read"

    def look(self, pid: int, slowly: bool) -> Values:
        """Return pages swapped by the whole system, and the worker's own major faults."""
        values = Values()
        for line in text(self._root / "proc/vmstat").splitlines():
            name, _, number = line.partition(" ")
            if name in ("pswpin", "pswpout"):
                values.counters[name] = int(number)
        _, _, rest = text(self._root / f"proc/{pid}/stat").rpartition(")")
        fields = rest.split()
        if len(fields) > 9:
            values.counters["major_faults"] = int(fields[9])
        return values


class Pressure:
    """/proc/pressure: microseconds in which some task waited for a resource (accounting/psi.rst). Only told, never judged:
    a worker with more threads than processors makes it by itself."""

    def __init__(self, root: Path) -> None:
        self.absent: dict[str, str] = {}
        self._root = root
        if not (root / "proc/pressure/cpu").exists():
            self.absent["pressure"] = "this kernel keeps no pressure stall information"

    def look(self, pid: int, slowly: bool) -> Values:
        """Return seconds waited so far for each resource."""
        values = Values()
        for name in ("cpu", "memory", "io"):
            for line in text(self._root / f"proc/pressure/{name}").splitlines():
                kind, *fields = line.split()
                total = next((field[6:] for field in fields if field.startswith("total=")), "")
                if kind == "some" and total.isdigit():
                    values.counters[f"pressure_{name}_s"] = int(total) / 1e6
        return values
