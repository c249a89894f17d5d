"""Conditions: what is true now and not in a minute. Stored beside the digest, never in it."""

from __future__ import annotations

import os
from typing import Any

from harness.environment.limits import resources
from harness.environment.memory import modules
from harness.environment.reading import System, integer, pairs, text, without_nothing


def conditions(system: System) -> dict[str, Any]:
    """Return load, memory, temperatures, frequencies, battery, stolen time of this moment."""
    load = system.text("proc/loadavg").split()
    uptime = system.text("proc/uptime").split()
    meminfo = pairs(system.path("proc/meminfo"))
    available = meminfo.get("MemAvailable", "").split(" ")[0]
    found = {
        "uptime_s": round(float(uptime[0])) if uptime else None,
        "load_1min": float(load[0]) if load else _load(system),
        "memory_available_mb": round(int(available) / 1e3) if available.isdigit() else _available_mb(system),
        "temperature_c": temperatures(system),
        "frequency_mhz": frequencies(system),
        "battery_percent": _battery_percent(system),
        "steal_since_boot": steal_share(system),
        "memory_modules": modules(system),
        "resource_limits": resources(system.root),
    }
    return without_nothing(found)


def temperatures(system: System) -> dict[str, float]:
    """Thermal zones by type ("cpu-thermal 0"), in degrees Celsius."""
    found: dict[str, float] = {}
    for zone in sorted(system.root.glob("sys/class/thermal/thermal_zone*")):
        value = integer(zone / "temp")
        if value is not None:
            found[f"{text(zone / 'type') or 'zone'} {zone.name.removeprefix('thermal_zone')}"] = value / 1000
    return found


def frequencies(system: System) -> dict[str, float]:
    """Lowest and highest frequency over the processors now."""
    files = system.root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")
    found = [value / 1000 for path in files if (value := integer(path)) is not None]
    return {"low": min(found), "high": max(found)} if found else {}


def steal_share(system: System) -> float | None:
    """The share of all processors' time since boot that the hypervisor gave to others."""
    fields = system.text("proc/stat").splitlines()[:1]
    ticks = [int(value) for value in fields[0].split()[1:] if value.isdigit()] if fields else []
    total = sum(ticks[:8])
    return round(ticks[7] / total, 5) if len(ticks) > 7 and total else None


def _battery_percent(system: System) -> int | None:
    for supply in sorted(system.root.glob("sys/class/power_supply/*")):
        if text(supply / "type") == "Battery" and text(supply / "scope") != "Device":
            return integer(supply / "capacity")
    return None


def _load(system: System) -> float | None:
    return os.getloadavg()[0] if system.live and hasattr(os, "getloadavg") else None


def _available_mb(system: System) -> int | None:
    if not system.live:
        return None
    import psutil

    return round(psutil.virtual_memory().available / 1e6)
