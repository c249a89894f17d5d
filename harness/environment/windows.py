"""Windows: what Python's platform module, psutil and the power scheme tell. Not verified on hardware."""

from __future__ import annotations

import platform
import re
from typing import Any

from harness.environment.processor import rounded_gib
from harness.environment.reading import System, without_nothing

POWERCFG = (r"C:\Windows\System32\powercfg.exe", "/getactivescheme")
SCHEMES = {  # Microsoft's own; another one is "custom", because its identifier belongs to one machine
    "381b4222-f694-41f0-9685-ff5bb260df2e": "balanced",
    "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "high performance",
    "a1841308-3541-4fab-bc81-f71556f20b4a": "power saver",
}


def machine(system: System) -> dict[str, Any]:
    """Processor as the system names it: family, model, stepping, vendor, and counts."""
    words = system.variables.get("PROCESSOR_IDENTIFIER", "")
    found = re.search(r"Family (\d+) Model (\d+) Stepping (\d+), (\w+)", words)
    named = dict(zip(("family", "model", "stepping", "vendor"), found.groups(), strict=True)) if found else {}
    counts: dict[str, Any] = {}
    memory = None
    if system.live:
        import psutil

        counts = {"cores": psutil.cpu_count(logical=False), "threads": psutil.cpu_count()}
        memory = rounded_gib(psutil.virtual_memory().total)
    return without_nothing(
        {"processor": without_nothing({**named, **counts}), "memory": {"gib": memory} if memory else None}
    )


def configuration(system: System) -> dict[str, Any]:
    """System version, power scheme, power source."""
    scheme = re.search(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", (system.run(POWERCFG) or "").lower())
    source = None
    if system.live:
        import psutil

        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
        source = None if battery is None else "mains" if battery.power_plugged else "battery"
    return without_nothing(
        {
            "os": f"Windows {platform.win32_ver()[1]}" if system.live else None,
            "power": without_nothing(
                {"scheme": SCHEMES.get(scheme[0], "custom") if scheme else None, "source": source}
            ),
        }
    )
