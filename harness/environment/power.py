"""Power and clocks as they are set: governor, preference, turbo, limits, power modes, supply. Nothing of this moment.

Sources: admin-guide/pm/cpufreq.rst, intel_pstate.rst, amd-pstate.rst; ABI/testing/sysfs-platform_profile; the Raspberry Pi
documentation for get_config and the device tree's /chosen; NVIDIA's Jetson documentation for nvpmodel.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from harness.environment.reading import System, integer, text, without_nothing

CPUFREQ = "sys/devices/system/cpu/cpufreq"
PI_COMMANDS = ("/usr/bin/vcgencmd", "/opt/vc/bin/vcgencmd")
PI_SETTINGS = re.compile(
    r"(arm_freq|arm_freq_min|core_freq|gpu_freq|isp_freq|v3d_freq|sdram_freq|force_turbo|arm_boost|over_voltage\w*|temp_limit|"
    r"temp_soft_limit|initial_turbo|avoid_warnings|gpu_mem\w*)=(-?\w+)"
)


def power(system: System) -> dict[str, Any]:
    """Return how the machine is set to use power."""
    pstate = "sys/devices/system/cpu/intel_pstate"
    return without_nothing(
        {
            "policies": policies(system),
            "turbo": turbo(system),
            "pstate": system.text(f"{pstate}/status") or system.text("sys/devices/system/cpu/amd_pstate/status"),
            "pstate_max_percent": system.integer(f"{pstate}/max_perf_pct"),
            "pstate_min_percent": system.integer(f"{pstate}/min_perf_pct"),
            "energy_performance_bias": _bias(system),
            "platform_profile": system.text("sys/firmware/acpi/platform_profile"),
            "idle_driver": system.text("sys/devices/system/cpu/cpuidle/current_driver"),
            "idle_governor": system.text("sys/devices/system/cpu/cpuidle/current_governor")
            or system.text("sys/devices/system/cpu/cpuidle/current_governor_ro"),
            "idle_states": _idle_states(system),
            "source": source(system),
            "jetson_mode": jetson_mode(system),
            "raspberry_pi": raspberry_pi(system),
        }
    )


def policies(system: System) -> list[dict[str, Any]]:
    """Each setting of cpufreq once, with how many processors have it: driver, governor, preference, range of frequencies.

    A highest frequency below the hardware's own is told only while no cooling device holds it down, because that one passes.
    """
    cooled = _cooling(system)
    seen: Counter[tuple[tuple[str, Any], ...]] = Counter()
    for folder in system.root.glob(f"{CPUFREQ}/policy[0-9]*"):
        hardware, limit = integer(folder / "cpuinfo_max_freq"), integer(folder / "scaling_max_freq")
        lowest, floor = integer(folder / "cpuinfo_min_freq"), integer(folder / "scaling_min_freq")
        found = without_nothing(
            {
                "driver": text(folder / "scaling_driver"),
                "governor": text(folder / "scaling_governor"),
                "energy_performance_preference": text(folder / "energy_performance_preference"),
                "hardware_mhz": [round(value / 1000) for value in (lowest, hardware) if value is not None],
                "limited_to_mhz": round(limit / 1000)
                if limit and hardware and limit < hardware and not cooled
                else None,
                "raised_to_mhz": round(floor / 1000) if floor and lowest and floor > lowest else None,
            }
        )
        count = len(text(folder / "related_cpus").split()) or 1
        seen[tuple((key, tuple(v) if isinstance(v, list) else v) for key, v in found.items())] += count
    return [
        {**{key: list(value) if isinstance(value, tuple) else value for key, value in kind}, "processors": count}
        for kind, count in sorted(seen.items(), key=str)
    ]


def turbo(system: System) -> str | None:
    """Return "on" or "off" where the kernel tells: intel_pstate's no_turbo, else cpufreq's boost."""
    no_turbo = system.integer("sys/devices/system/cpu/intel_pstate/no_turbo")
    if no_turbo is not None:
        return "off" if no_turbo else "on"
    boost = system.integer(f"{CPUFREQ}/boost")
    return None if boost is None else "on" if boost else "off"


def source(system: System) -> str | None:
    """Return "battery" or "mains" for a machine that has a battery; None for others and where it does not tell."""
    has_battery, online = False, []
    for supply in system.root.glob("sys/class/power_supply/*"):
        kind = text(supply / "type")
        if kind == "Battery" and text(supply / "scope") != "Device":  # a mouse's battery does not run the machine
            has_battery = True
        elif kind in ("Mains", "USB"):
            online.append(integer(supply / "online"))
    if not has_battery or not online:
        return None
    return "mains" if 1 in online else "battery"


def jetson_mode(system: System) -> str | None:
    """The power mode that nvpmodel has set, as "0 MAXN" from its status file."""
    status = system.text("var/lib/nvpmodel/status")
    found = re.search(r"pmode:(\d+)", status)
    if not found:
        return None
    number = int(found[1])
    named = re.search(rf"<\s*POWER_MODEL\s+ID={number}\s+NAME=(\S+)\s*>", system.text("etc/nvpmodel.conf"))
    return f"{number} {named[1]}" if named else str(number)


def raspberry_pi(system: System) -> dict[str, Any]:
    """A Pi's clock settings, and how much current its supply may give (Pi 5 tells; a weak one makes it slow down)."""
    if "raspberry pi" not in system.text("proc/device-tree/model").lower():
        return {}
    said = next((words for name in PI_COMMANDS if (words := system.run((name, "get_config", "int")))), "")
    current = system.path("proc/device-tree/chosen/power/max_current")
    try:
        milliamperes = int.from_bytes(current.read_bytes()[:4], "big")
    except OSError:
        milliamperes = 0
    return without_nothing(
        {"settings": dict(sorted(PI_SETTINGS.findall(said))), "supply_milliamperes": milliamperes or None}
    )


def _bias(system: System) -> list[str]:
    return sorted({text(p) for p in system.root.glob("sys/devices/system/cpu/cpu[0-9]*/power/energy_perf_bias")} - {""})


def _idle_states(system: System) -> list[str]:
    """Names of the first processor's idle states that are switched on."""
    states = sorted(system.root.glob("sys/devices/system/cpu/cpu0/cpuidle/state[0-9]*"))
    return [text(state / "name") for state in states if text(state / "disable") in ("", "0")]


def _cooling(system: System) -> bool:
    """Whether a cooling device holds the processor's frequency down now."""
    return any(
        text(device / "type").lower().startswith(("processor", "cpufreq", "thermal-cpufreq"))
        and (integer(device / "cur_state") or 0) > 0
        for device in system.root.glob("sys/class/thermal/cooling_device*")
    )
