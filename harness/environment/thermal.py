"""Thermal limits that the system names: trip points of zones and the sensors' own maxima. They belong to the machine.

Left out is what changes by itself: Intel's package zone, whose trips thermald moves, and `active` trips of fans.
Source: driver-api/thermal/sysfs-api.rst, hwmon/sysfs-interface.rst.
"""

from __future__ import annotations

import re
from typing import Any

from harness.environment.reading import System, integer, text, without_nothing

FIXED_TRIPS = ("passive", "hot", "critical")
MOVING_ZONES = ("x86_pkg_temp",)
PROCESSOR_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal")
PLAUSIBLE_C = (20.0, 150.0)  # sensors without a limit say 0 or -274


def limits(system: System) -> dict[str, Any]:
    """Return trip points by zone type and limits by chip, in degrees Celsius."""
    zones: dict[str, set[str]] = {}
    for zone in system.root.glob("sys/class/thermal/thermal_zone*"):
        kind = text(zone / "type")
        if not kind or kind in MOVING_ZONES:
            continue
        for trip in zone.glob("trip_point_*_type"):
            celsius = _celsius(integer(trip.with_name(trip.name.replace("_type", "_temp"))))
            if text(trip) in FIXED_TRIPS and celsius is not None:
                zones.setdefault(kind, set()).add(f"{text(trip)} {celsius:g}")
    chips: dict[str, set[str]] = {}
    for chip in system.root.glob("sys/class/hwmon/hwmon*"):
        name = text(chip / "name")
        if name in PROCESSOR_CHIPS:
            for limit in chip.glob("temp*_*"):
                kind = re.sub(r"temp\d+_", "", limit.name)
                celsius = _celsius(integer(limit)) if kind in ("max", "crit") else None
                if celsius is not None:
                    chips.setdefault(name, set()).add(f"{kind} {celsius:g}")
    return without_nothing(
        {
            "trips_c": {kind: sorted(found) for kind, found in sorted(zones.items())},
            "sensor_limits_c": {name: sorted(found) for name, found in sorted(chips.items())},
        }
    )


def _celsius(thousandths: int | None) -> float | None:
    if thousandths is None:
        return None
    celsius = thousandths / 1000
    return celsius if PLAUSIBLE_C[0] <= celsius <= PLAUSIBLE_C[1] else None
