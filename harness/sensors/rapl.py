"""RAPL: the energy counters of Intel and AMD processors, from Linux's powercap tree.

The counters are microjoules since some time and wrap at max_energy_range_uj (about 262 kJ, 12.5 minutes at 350 W), so
they are read often and summed up; one difference from start to end would be wrong. Domains are matched by their name:
the numbers in the folder names differ from machine to machine. A package excludes DRAM on Intel.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from harness.sensors.base import MeterError, MeterStatus, Quality, Reading, Scope, not_measured

TREE = Path("sys/class/powercap")
PACKAGE = re.compile(r"package-\d+(-die-\d+)?")
# Between two reads a package must not be able to wrap unseen; no socket sold draws more than this.
MOST_WATTS = 1000.0
PERMISSION_FIX = (
    "Let your user read it: sudo chmod a+r /sys/class/powercap/intel-rapl*/energy_uj (until the next start; it is closed by "
    "default because it tells other users about your work)."
)


@dataclass(frozen=True)
class Domain:
    """One package: its name, its counter file, and where the counter wraps."""

    name: str
    counter: Path
    range_uj: int


def packages(root: Path) -> list[Domain]:
    """The package domains under `root`, each once: intel-rapl-mmio repeats what intel-rapl has."""
    found: dict[str, Domain] = {}
    tree = root / TREE
    try:
        folders = sorted(tree.iterdir(), key=lambda folder: ("mmio" in folder.name, folder.name))
    except OSError:
        return []
    for folder in folders:
        try:
            name = (folder / "name").read_text(encoding="ascii").strip()
            span = int((folder / "max_energy_range_uj").read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue  # the control type itself, or a zone without a counter
        if PACKAGE.fullmatch(name) and name not in found and span > 0:
            found[name] = Domain(name, folder / "energy_uj", span)
    return [found[name] for name in sorted(found)]


class RaplMeter:
    """All packages of the machine as one meter."""

    scope: Scope = "cpu_package"

    def __init__(self, domains: list[Domain], quality: Quality) -> None:
        self.source = "rapl:" + "+".join(domain.name for domain in domains)
        self.quality: Quality = quality
        self._domains = domains
        self._files: list[int] = []
        self._last: list[int] = []
        self._last_ns = 0
        self._total_uj = 0
        self._lost: str | None = None

    def open(self) -> None:
        """Open the counters and take their values as zero. Raises MeterError."""
        self.close()
        try:
            for domain in self._domains:
                self._files.append(os.open(domain.counter, os.O_RDONLY))
            self._last = self._counters()
        except (OSError, ValueError) as error:
            self.close()
            fix = PERMISSION_FIX if isinstance(error, PermissionError) else ""
            raise MeterError(f"{self.source} cannot be read ({_why(error)}).", fix) from error
        self._last_ns, self._total_uj, self._lost = time.monotonic_ns(), 0, None

    def read(self) -> Reading:
        """Add what was used since the last reading. After a wrap that may have been missed nothing is claimed any more."""
        now = time.monotonic_ns()
        try:
            counters = self._counters()
        except (OSError, ValueError) as error:
            return self._reading(now, None, f"{self.source} cannot be read ({_why(error)})")
        elapsed_s = (now - self._last_ns) / 1e9
        if elapsed_s * MOST_WATTS > min(domain.range_uj for domain in self._domains) / 1e6:
            self._lost = f"the counters were not read for {elapsed_s:.0f} s and may have wrapped"
        for domain, before, after in zip(self._domains, self._last, counters, strict=True):
            self._total_uj += after - before if after >= before else after + domain.range_uj - before
        self._last, self._last_ns = counters, now
        if self._lost is not None:
            return self._reading(now, None, self._lost)
        return self._reading(now, self._total_uj / 1e6, None)

    def close(self) -> None:
        """Close the counters."""
        while self._files:
            os.close(self._files.pop())

    def _counters(self) -> list[int]:
        if not self._files:
            raise OSError("it is not open")
        return [int(os.pread(file, 64, 0)) for file in self._files]

    def _reading(self, at_ns: int, energy_j: float | None, reason: str | None) -> Reading:
        return Reading(at_ns, self.source, self.scope, "counter_diff", self.quality, energy_j, None, reason)


def rapl_status(root: Path) -> MeterStatus:
    """Whether the processor's energy can be read under `root` ("/" on a real machine)."""
    domains = packages(root)
    processor = _cpuinfo(root)
    if not domains:
        tree = root / TREE
        why = f"this machine has no {tree}" if not tree.is_dir() else f"{tree} holds no package domain"
        if re.search(r"^flags\s*:.*\bhypervisor\b", processor, re.MULTILINE):
            return not_measured("rapl", f"{why}; it is a virtual machine, and its host does not pass the counters on")
        return not_measured("rapl", why, "On Intel and AMD processors, load the module: sudo modprobe intel_rapl_msr.")
    # AMD's counters come from a model of activity, Intel's (since Haswell) from a sensor.
    quality: Quality = "estimated" if "AuthenticAMD" in processor else "sensor"
    meter = RaplMeter(domains, quality)
    try:
        meter.open()
        reading = meter.read()
    except MeterError as error:
        return not_measured("rapl", error.what.rstrip("."), error.fix or None, meter.scope)
    finally:
        meter.close()
    if reading.reason is not None:
        return not_measured("rapl", reading.reason, None, meter.scope)
    names = ", ".join(domain.name for domain in domains)
    return MeterStatus("rapl", True, f"{names}: energy counters", None, False, meter.scope, quality, meter)


def _cpuinfo(root: Path) -> str:
    try:
        return (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _why(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "only root may, since Linux 5.10"
    return getattr(error, "strerror", None) or str(error)
