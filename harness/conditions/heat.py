"""Temperature of the processor with the limit that the system itself names, and events of thermal throttling."""

from __future__ import annotations

from pathlib import Path

from harness.conditions.looks import Values
from harness.environment.reading import integer, text

# Sensors in or at the processor; others (drives, batteries, wireless) say nothing about it and may be slow.
ZONES = ("x86_pkg_temp", "cpu", "soc", "acpitz", "tcpu", "big", "little", "center", "pmic_soc")
CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal")
LIMITING_TRIPS = ("passive", "hot", "critical")
PLAUSIBLE_C = (20.0, 150.0)  # of a limit: sensors without one say 0 or -274


class Heat:
    """Thermal zones and hwmon below `root`, and Intel's counters of throttling events."""

    def __init__(self, root: Path) -> None:
        self.absent: dict[str, str] = {}
        self.limit_c: float | None = None
        self._inputs: list[Path] = []
        limits: list[float] = []
        for zone in sorted(root.glob("sys/class/thermal/thermal_zone*")):
            if text(zone / "type").lower().startswith(ZONES):
                self._inputs.append(zone / "temp")
                limits += _trips(zone)
        for chip in sorted(root.glob("sys/class/hwmon/hwmon*")):
            if text(chip / "name") in CHIPS:
                for found in sorted(chip.glob("temp*_input")):
                    self._inputs.append(found)
                    names = (found.name.replace("_input", end) for end in ("_max", "_crit"))
                    limits += [value / 1e3 for name in names if (value := integer(chip / name)) is not None]
        plausible = [limit for limit in limits if PLAUSIBLE_C[0] <= limit <= PLAUSIBLE_C[1]]
        self.limit_c = min(plausible, default=None)
        self._events = sorted(root.glob("sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count"))
        if not self._inputs:
            self.absent["temperature"] = "this system shows no temperature of its processor"

    def look(self, pid: int, slowly: bool) -> Values:
        """Return the hottest sensor and the events so far; in slow looks only, because some sensors take milliseconds."""
        values = Values()
        if not slowly:
            return values
        found = [value / 1e3 for path in self._inputs if (value := integer(path)) is not None]
        if found:
            values.levels["temperature_c"] = max(found)
        events = [value for path in self._events if (value := integer(path)) is not None]
        if events:
            values.counters["thermal_events"] = sum(events)
        return values


def _trips(zone: Path) -> list[float]:
    return [
        value / 1e3
        for kind in zone.glob("trip_point_*_type")
        if text(kind) in LIMITING_TRIPS
        and (value := integer(kind.with_name(kind.name.replace("_type", "_temp")))) is not None
    ]
