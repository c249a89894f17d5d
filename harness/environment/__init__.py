"""The environment of a run: machine and configuration (these make its digest), and passing conditions beside them.

Everything is read, nothing guessed: what this system does not tell is absent. The full fingerprint comes later; this is
what a reader needs to tell two environments apart.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness.records import Environment

RUNTIME_PACKAGES = (
    "onnxruntime",
    "onnxruntime-gpu",
    "openvino",
    "ai-edge-litert",
    "tflite-runtime",
    "coremltools",
    "numpy",
    "pillow",
)


def collect(root: Path = Path("/")) -> Environment:
    """Read this machine's environment. `root` is where /proc and /sys hang, so that recorded trees replay in tests."""
    return Environment(machine=_machine(root), configuration=_configuration(root), conditions=_conditions(root))


def cpu_name(root: Path = Path("/")) -> str:
    """The processor's own name: /proc/cpuinfo or device tree on Linux, sysctl on macOS, else what Python knows."""
    for line in _read(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "Hardware") and value.strip():
            return " ".join(value.split())
    if sys.platform == "darwin":
        found = _sysctl("machdep.cpu.brand_string")
        if found:
            return found
    return platform.processor() or platform.machine()


def board_name(root: Path = Path("/")) -> str | None:
    """What the firmware calls the whole machine: device tree model (boards) or DMI vendor and product; None if silent."""
    model = _read(root / "proc/device-tree/model").strip("\0\n ")
    if model:
        return model
    if sys.platform == "darwin":
        return _sysctl("hw.model")
    names = [_read(root / f"sys/class/dmi/id/{key}").strip() for key in ("sys_vendor", "product_name")]
    return " ".join(name for name in names if name) or None


def hypervisor(root: Path = Path("/")) -> str | None:
    """The hypervisor's name if this is a virtual machine and it says so, else None."""
    flags = next((line for line in _read(root / "proc/cpuinfo").splitlines() if line.startswith("flags")), "")
    if "hypervisor" not in flags.split():
        return None
    return (
        _read(root / "sys/hypervisor/type").strip() or _read(root / "sys/class/dmi/id/sys_vendor").strip() or "unknown"
    )


def _machine(root: Path) -> dict[str, Any]:
    import psutil

    found: dict[str, Any] = {
        "architecture": platform.machine(),
        "cpu": cpu_name(root),
        "board": board_name(root),
        "logical_cpus": os.cpu_count(),
        "physical_cores": psutil.cpu_count(logical=False),
        # Rounded: firmware reserves change the last megabytes between boots of one machine.
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "hypervisor": hypervisor(root),
    }
    for line in _read(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "microcode":
            found["microcode"] = value.strip()
            break
    return found


def _configuration(root: Path) -> dict[str, Any]:
    packages: dict[str, str] = {}
    for name in RUNTIME_PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    cpufreq = root / "sys/devices/system/cpu/cpu0/cpufreq"
    found: dict[str, Any] = {
        "os": _os_name(root),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "packages": packages,
        "governor": _read(cpufreq / "scaling_governor").strip() or None,
        "turbo_disabled": _read(root / "sys/devices/system/cpu/intel_pstate/no_turbo").strip() or None,
        "cgroup_cpu_max": _read(root / "sys/fs/cgroup/cpu.max").strip() or None,
    }
    if hasattr(os, "sched_getaffinity"):
        found["usable_cpus"] = len(os.sched_getaffinity(0))
    return found


def _conditions(root: Path) -> dict[str, Any]:
    import psutil

    load = os.getloadavg() if hasattr(os, "getloadavg") else (None, None, None)
    temperatures = {
        zone.parent.name: int(text) / 1000
        for zone in sorted((root / "sys/class/thermal").glob("thermal_zone*/temp"))
        if (text := _read(zone).strip()).lstrip("-").isdigit()
    }
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    return {
        "load_1min": load[0],
        "memory_available_mb": round(psutil.virtual_memory().available / 1e6),
        "temperature_c": temperatures or None,
        "on_battery": None if battery is None else not battery.power_plugged,
    }


def _os_name(root: Path) -> str:
    for line in _read(root / "etc/os-release").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip().strip('"')
    return f"{platform.system()} {platform.mac_ver()[0] or platform.version()}".strip()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _sysctl(name: str) -> str | None:
    import subprocess

    try:
        done = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
