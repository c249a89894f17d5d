"""The frequency of the processor that the worker's main thread ran on last.

Not the mean over processors, because idle ones clock down and would hide what the worker got; a move to a slower core of a
mixed processor shows as what it is. cpufreq's `scaling_cur_freq` is what the kernel knows without asking the hardware on
newer kernels; `cpuinfo_cur_freq` would ask it, and is not read.
"""

from __future__ import annotations

from pathlib import Path

from harness.conditions.looks import Values
from harness.environment.reading import integer, text

LAST_PROCESSOR = 36  # field 39 of /proc/PID/stat, counted behind the name


class Frequency:
    """cpufreq below `root`."""

    def __init__(self, root: Path) -> None:
        self.absent: dict[str, str] = {}
        self._root = root
        if not list(root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")):
            why = "this system shows no processor frequencies"
            if " hypervisor" in text(root / "proc/cpuinfo")[:20_000]:
                why += "; a virtual machine has a nominal one only"
            self.absent["frequency"] = why

    def look(self, pid: int, slowly: bool) -> Values:
        """Return megahertz of the worker's processor."""
        values = Values()
        if self.absent:
            return values
        _, _, rest = text(self._root / f"proc/{pid}/stat").rpartition(")")
        fields = rest.split()
        if len(fields) > LAST_PROCESSOR and fields[0] not in ("Z", "X"):
            folder = self._root / f"sys/devices/system/cpu/cpu{fields[LAST_PROCESSOR]}/cpufreq"
            kilohertz = integer(folder / "scaling_cur_freq")
            if kilohertz:
                values.levels["frequency_mhz"] = kilohertz / 1e3
        return values
