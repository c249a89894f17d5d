"""Signs that a device slowed itself down: a Raspberry Pi's firmware, and NVIDIA's driver (read in this process, by NVML).

Sources: Raspberry Pi documentation, `vcgencmd get_throttled`; NVML's nvmlClocksEventReason constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.conditions.looks import Values
from harness.environment.power import PI_COMMANDS
from harness.environment.reading import Command, run_command, text

PI_SIGNS = {0: "under_voltage", 1: "frequency_capped", 2: "throttled", 3: "soft_temperature_limit"}
PI_STICKY = 16  # the same four, "since the board started"
PI_FILES = (
    "sys/devices/platform/soc/soc:firmware/get_throttled",
    "sys/devices/platform/soc@107c000000/soc:firmware/get_throttled",
)

GPU_SIGNS = {
    0x04: "gpu_power_cap",  # told; on most boards the normal state under load
    0x08: "gpu_hardware_slowdown",
    0x20: "gpu_thermal_slowdown",
    0x40: "gpu_hardware_thermal_slowdown",
    0x80: "gpu_power_brake",
}
# The new name and the old one.
GPU_REASONS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
GPU_SM_CLOCK = 1


class PiThrottling:
    """The firmware's bits. The file costs microseconds and is read each second; the command costs a process, so that it runs
    only before and after (the sticky bits tell what happened between, unless they were set before)."""

    def __init__(self, root: Path, run: Command = run_command) -> None:
        self.absent: dict[str, str] = {}
        self._root = root
        self._run = run
        self._file = next((root / name for name in PI_FILES if (root / name).exists()), None)
        self._sticky_before: int | None = None
        is_pi = "raspberry pi" in text(root / "proc/device-tree/model").lower()
        self._command = is_pi and self._file is None
        if is_pi and self.read() is None:
            self.absent["raspberry_pi_throttling"] = "neither sysfs nor vcgencmd tells the firmware's throttling bits"
            self._command = False
        self.before()

    def before(self) -> None:
        """Remember which "since start" bits are set already: those tell nothing about what comes."""
        bits = self.read()
        self._sticky_before = None if bits is None else bits >> PI_STICKY

    def read(self) -> int | None:
        """Return the bits; None where this is no Pi or it does not tell."""
        if self._file is not None:
            words = text(self._file)
        elif self._command:
            words = next((said for name in PI_COMMANDS if (said := self._run([name, "get_throttled"]))), "")
        else:
            return None
        found = re.fullmatch(r"(?:throttled=)?(?:0x)?([0-9a-fA-F]+)", words)
        return int(found[1], 16) if found else None

    def look(self, pid: int, slowly: bool) -> Values:
        """Return the signs that are on now, from the file."""
        return Values(signs=self._signs(0)) if slowly and self._file is not None else Values()

    def at_end(self) -> set[str]:
        """Return the signs since `before`, from the "since start" bits that were not set then."""
        bits = self.read()
        if bits is None:
            return set()
        fresh = (bits >> PI_STICKY) & ~(self._sticky_before or 0)
        return {name for bit, name in PI_SIGNS.items() if (bits | fresh) >> bit & 1}

    def _signs(self, shift: int) -> set[str]:
        bits = self.read()
        return {name for bit, name in PI_SIGNS.items() if bits is not None and bits >> (bit + shift) & 1}


class GpuThrottling:
    """One NVIDIA board, by its number; `load` returns NVIDIA's Python library or raises ImportError."""

    def __init__(self, index: int, load: Callable[[], Any]) -> None:
        self.absent: dict[str, str] = {}
        self._library: Any = None
        try:
            library = load()
        except ImportError:
            self.absent["gpu"] = "the package nvidia-ml-py is not installed"
            return
        try:
            library.nvmlInit()
        except library.NVMLError as error:
            self.absent["gpu"] = f"NVIDIA's driver does not answer ({error})"
            return
        self._library = library
        try:
            self._board = library.nvmlDeviceGetHandleByIndex(index)
        except library.NVMLError as error:
            self.absent["gpu"] = f"NVIDIA's board {index} cannot be read ({error})"
            self.close()

    def look(self, pid: int, slowly: bool) -> Values:
        """Return reasons, clock and temperature of now. Once a second: more often has made latency spikes elsewhere."""
        values = Values()
        nvml = self._library
        if not slowly or nvml is None:
            return values
        ask = next((getattr(nvml, name) for name in GPU_REASONS if hasattr(nvml, name)), None)
        with suppress(nvml.NVMLError):
            bits = int(ask(self._board)) if ask is not None else 0
            values.signs = {name for bit, name in GPU_SIGNS.items() if bits & bit}
        with suppress(nvml.NVMLError):
            values.levels["gpu_clock_mhz"] = float(nvml.nvmlDeviceGetClockInfo(self._board, GPU_SM_CLOCK))
        with suppress(nvml.NVMLError):
            values.levels["gpu_temperature_c"] = float(nvml.nvmlDeviceGetTemperature(self._board, 0))
        return values

    def close(self) -> None:
        """Shut the library down. Harmless twice."""
        library, self._library = self._library, None
        if library is not None:
            with suppress(library.NVMLError):
                library.nvmlShutdown()
