"""What `weigh run --prepare` may write, and what it wants there: an allow-list of files of the kernel.

Not touched, on purpose: real-time scheduling (the kernel stops it for 50 ms in each second, and a busy loop starves the
rest), idle states (part of what `duty_cycle` measures), interrupts' affinity (another service would move them back),
address randomisation (its variation between processes belongs into the interval). Sources: admin-guide/pm/cpufreq.rst,
intel_pstate.rst, admin-guide/sysctl/kernel.rst.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.environment.reading import text

CPUFREQ = "sys/devices/system/cpu/cpufreq"
NO_TURBO = "sys/devices/system/cpu/intel_pstate/no_turbo"
BOOST = f"{CPUFREQ}/boost"
ALLOWED = re.compile(
    r"sys/devices/system/cpu/cpufreq/policy\d{1,5}/(scaling_governor|energy_performance_preference)"
    r"|sys/devices/system/cpu/cpufreq/(policy\d{1,5}/)?(ondemand|conservative|schedutil)/[a-z_]{1,40}"
    r"|sys/devices/system/cpu/cpufreq/boost|sys/devices/system/cpu/intel_pstate/no_turbo"
    r"|proc/sys/kernel/(nmi_watchdog|numa_balancing|sched_autogroup_enabled)"
)
VALUE = re.compile(r"[a-z0-9_]{1,40}")
GONE = "gone"  # the "value" during a run of what goes with its governor
# Switched off. With automatic groups each session has its own share, and priorities count inside a session only (sched(7)).
KERNEL_SWITCHES = {
    "nmi_watchdog": "NMI watchdog",
    "numa_balancing": "NUMA balancing",
    "sched_autogroup_enabled": "automatic groups of the scheduler",
}


@dataclass(frozen=True)
class Setting:
    """One file and the value that is wanted in it."""

    name: str  # "governor of policy0"
    path: str  # below the root, without the leading slash
    value: str

    def __post_init__(self) -> None:
        if not ALLOWED.fullmatch(self.path) or not VALUE.fullmatch(self.value):
            raise ValueError(f"{self.path} = {self.value!r} is not on the list of what may be written")


def wanted(root: Path, turbo_off: bool) -> tuple[list[Setting], dict[str, str]]:
    """Return the settings for a quiet machine, in the order of their making, and why others are not possible here.

    Preferences come before governors, because the driver refuses them beside the governor "performance".
    """
    found: list[Setting] = []
    refused: dict[str, str] = {}
    policies = sorted(path.name for path in (root / CPUFREQ).glob("policy[0-9]*"))
    if not policies:
        refused["governor"] = "this system lets nobody set the processor's frequency (no cpufreq)"
    found += _preferences(root, policies)
    for policy in policies:
        offered = text(root / CPUFREQ / policy / "scaling_available_governors").split()
        if offered and "performance" not in offered:
            refused[f"governor of {policy}"] = f"its driver offers only {', '.join(offered)}"
        elif read(root, f"{CPUFREQ}/{policy}/scaling_governor") == "userspace":
            # The kernel forgets the speed with the governor.
            refused[f"governor of {policy}"] = "somebody holds its speed by hand (userspace), which would be lost"
        else:
            found.append(Setting(f"governor of {policy}", f"{CPUFREQ}/{policy}/scaling_governor", "performance"))
    if turbo_off:
        if (root / NO_TURBO).exists():
            found.append(Setting("turbo", NO_TURBO, "1"))
        elif (root / BOOST).exists():
            found.append(Setting("turbo", BOOST, "0"))
        else:
            refused["turbo"] = "this system has no switch for it"
    for name, what in KERNEL_SWITCHES.items():
        if (root / f"proc/sys/kernel/{name}").exists():
            found.append(Setting(what, f"proc/sys/kernel/{name}", "0"))
    return found, refused


def _preferences(root: Path, policies: list[str]) -> Iterator[Setting]:
    for policy in policies:
        path = f"{CPUFREQ}/{policy}/energy_performance_preference"
        if (root / path).exists():
            yield Setting(f"energy preference of {policy}", path, "performance")


def going_with(root: Path, setting: Setting) -> Iterator[tuple[str, str, str]]:
    """Yield (name, path, value) of what the kernel forgets when this setting is changed: a governor's own tunables.

    They lie below the policy, or once for all policies; with the last policy that leaves the governor they are gone, and
    come back with their defaults. Source: admin-guide/pm/cpufreq.rst, "Governor tunables".
    """
    if not setting.path.endswith("/scaling_governor"):
        return
    governor, policy = read(root, setting.path), setting.path.split("/")[-2]
    for folder, whose in ((f"{CPUFREQ}/{policy}/{governor}", f" of {policy}"), (f"{CPUFREQ}/{governor}", "")):
        for file in sorted((root / folder).glob("[a-z]*")):
            path = f"{folder}/{file.name}"
            value = read(root, path) if ALLOWED.fullmatch(path) else None
            if value is not None and file.stat().st_mode & 0o200:  # others only tell, such as the least sampling rate
                yield f"{file.name} of {governor}{whose}", path, value


def read(root: Path, path: str) -> str | None:
    """Return what stands in a file of the list; None where it cannot be read or is no plain word."""
    word = text(root / path)
    return word if VALUE.fullmatch(word) else None


def write(root: Path, path: str, value: str) -> None:
    """Write a plain word into a file of the list that is there. Raises OSError, ValueError for anything else."""
    Setting("", path, value)  # refuses what is not on the list
    handle = os.open(root / path, os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0))
    try:
        os.write(handle, f"{value}\n".encode())
    finally:
        os.close(handle)
