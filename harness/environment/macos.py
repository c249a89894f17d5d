"""macOS by its own commands: sysctl, sw_vers, pmset, system_profiler. Not verified on hardware.

system_profiler's hardware report holds serial numbers and is not asked; of the display report only the GPU's lines are kept.
"""

from __future__ import annotations

import json
import re
from typing import Any

from harness.environment.processor import rounded_gib
from harness.environment.reading import System, without_nothing

SYSCTL = "/usr/sbin/sysctl"
SYSCTL_ALL = (SYSCTL, "hw", "machdep.cpu")
CACHES = {"l1i": "hw.l1icachesize", "l1d": "hw.l1dcachesize", "l2": "hw.l2cachesize", "l3": "hw.l3cachesize"}


def machine(system: System) -> dict[str, Any]:
    """Processor, memory and graphics as the kernel and the system report name them."""
    known = sysctl(system)
    size = known.get("hw.memsize", "")
    features = {
        key.rsplit(".", 1)[1]
        for key, value in known.items()
        if key.startswith("hw.optional.") and value == "1" and key.count(".") >= 2
    }
    features |= {word.lower() for word in known.get("machdep.cpu.features", "").split()}
    levels = {
        known.get(f"hw.perflevel{n}.name", str(n)): known[f"hw.perflevel{n}.physicalcpu"]
        for n in range(4)
        if f"hw.perflevel{n}.physicalcpu" in known
    }
    return without_nothing(
        {
            "processor": without_nothing(
                {
                    "vendor": known.get("machdep.cpu.vendor"),
                    "family": known.get("machdep.cpu.family"),
                    "model": known.get("machdep.cpu.model"),
                    "stepping": known.get("machdep.cpu.stepping"),
                    "microcode": known.get("machdep.cpu.microcode_version"),
                    "cores": _number(known.get("hw.physicalcpu_max")),
                    "threads": _number(known.get("hw.logicalcpu_max")),
                    "sockets": _number(known.get("hw.packages")),
                    "kinds_of_cores": levels,
                    "instruction_sets": sorted(features),
                    "caches": [
                        {"level": name, "bytes": int(known[key])}
                        for name, key in CACHES.items()
                        if known.get(key, "").isdigit()
                    ],
                }
            ),
            "memory": {"gib": rounded_gib(int(size))} if size.isdigit() else None,
            "graphics": graphics(system),
        }
    )


def configuration(system: System) -> dict[str, Any]:
    """System version, power mode, power source."""
    product = system.run(("/usr/bin/sw_vers", "-productVersion"))
    settings = dict(re.findall(r"^\s*(\w+)\s+(\d+)\b", system.run(("/usr/bin/pmset", "-g")) or "", re.MULTILINE))
    return without_nothing(
        {
            "os": f"macOS {product}" if product else None,
            "kernel": without_nothing({"build": system.run(("/usr/bin/sw_vers", "-buildVersion"))}),
            "power": without_nothing(
                {
                    "low_power_mode": settings.get("lowpowermode"),
                    "power_mode": settings.get("powermode"),  # 0 automatic, 1 low, 2 high
                    "source": source(system),
                }
            ),
        }
    )


def source(system: System) -> str | None:
    """Return "battery" or "mains"; None for a Mac without a battery."""
    said = system.run(("/usr/bin/pmset", "-g", "batt")) or ""
    if "InternalBattery" not in said:
        return None
    return "battery" if "'Battery Power'" in said else "mains"


def conditions(system: System) -> dict[str, Any]:
    """The speed limit that the thermal management has set, in percent, and the battery's level."""
    thermal = re.search(r"CPU_Speed_Limit\s*=\s*(\d+)", system.run(("/usr/bin/pmset", "-g", "therm")) or "")
    level = re.search(r"InternalBattery.*?(\d+)%", system.run(("/usr/bin/pmset", "-g", "batt")) or "", re.DOTALL)
    return without_nothing(
        {
            "speed_limit_percent": int(thermal[1]) if thermal else None,
            "battery_percent": int(level[1]) if level else None,
        }
    )


def sysctl(system: System) -> dict[str, str]:
    """Return what sysctl knows of hardware and processor."""
    lines = (line.partition(": ") for line in (system.run(SYSCTL_ALL) or "").splitlines())
    return {key: value.strip() for key, mark, value in lines if mark}


def graphics(system: System) -> list[dict[str, Any]]:
    """The GPUs' names, cores and Metal version. The report's displays, with their serial numbers, are left out."""
    said = system.run(("/usr/sbin/system_profiler", "SPDisplaysDataType", "-json"))
    try:
        entries = json.loads(said or "{}").get("SPDisplaysDataType", [])
    except (ValueError, AttributeError):
        return []
    names = {
        "sppci_model": "name",
        "sppci_cores": "cores",
        "spdisplays_mtlgpufamilysupport": "metal",
        "spdisplays_vendor": "vendor",
    }
    return [{ours: entry[theirs] for theirs, ours in names.items() if theirs in entry} for entry in entries]


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and value.isdigit() else None
