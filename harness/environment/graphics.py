"""GPUs, other accelerators and their drivers: from the kernel and NVIDIA's library. No UUIDs, no serials."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from harness.environment.processor import rounded_gib
from harness.environment.reading import System, text, without_nothing

DRIVERS = (
    "amdgpu",
    "i915",
    "xe",
    "nouveau",
    "nvidia",
    "nvgpu",
    "v3d",
    "vc4",
    "panfrost",
    "panthor",
    "intel_vpu",
    "amdxdna",
    "hailo_pci",
)
PLACES = ("sys/class/drm/card[0-9]*", "sys/class/accel/accel[0-9]*")


def devices(system: System) -> list[dict[str, Any]]:
    """Each kind of DRM or accelerator device once: PCI vendor and device, driver, how many."""
    seen: Counter[tuple[tuple[str, str], ...]] = Counter()
    for place in PLACES:
        for card in system.root.glob(place):
            if "-" in card.name:
                continue  # a connector of a card
            device = card / "device"
            driver = (device / "driver").resolve().name if (device / "driver").exists() else ""
            found = {
                "vendor": text(device / "vendor"),
                "device": text(device / "device"),
                "subsystem": text(device / "subsystem_device"),
                "driver": driver,
            }
            if found["vendor"] or driver:
                seen[tuple((key, value) for key, value in found.items() if value)] += 1
    return [{**dict(kind), "count": count} for kind, count in sorted(seen.items())]


def drivers(system: System) -> dict[str, str]:
    """Versions of loaded drivers: NVIDIA's own, and those modules that have a version apart from the kernel's."""
    found = {}
    nvidia = re.search(r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", system.text("proc/driver/nvidia/version") + " ")
    if nvidia:
        found["nvidia"] = nvidia[1]
        if "Open Kernel Module" in system.text("proc/driver/nvidia/version"):
            found["nvidia_flavour"] = "open"
    for name in DRIVERS:
        version = text(system.path(f"sys/module/{name}/version"))
        if version:
            found.setdefault(name, version)
        elif system.path(f"sys/module/{name}").is_dir():
            found.setdefault(name, "of the kernel")
    rocm = system.text("opt/rocm/.info/version")
    if rocm:
        found["rocm"] = rocm.splitlines()[0]
    return dict(sorted(found.items()))


def nvidia_boards(load: Callable[[], Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return (boards, settings) by NVML in this process; both empty without a driver. `load` returns the library.

    Boards belong to the machine: name, memory, firmware, link. Settings to the configuration: power limit, ECC, MIG, modes.
    """
    try:
        nvml = load()
        nvml.nvmlInit()
    except Exception:  # no package, no driver, or a library of another version: then nothing is known
        return [], {}
    try:
        boards, settings = [], []
        for index in range(int(nvml.nvmlDeviceGetCount())):
            board = nvml.nvmlDeviceGetHandleByIndex(index)
            boards.append(_board(nvml, board))
            settings.append(_settings(nvml, board))
        shared: dict[str, Any] = {}
        with suppress(Exception):
            shared["driver"] = _words(nvml.nvmlSystemGetDriverVersion())
        with suppress(Exception):
            version = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
            shared["cuda"] = f"{version // 1000}.{version % 1000 // 10}"
        return boards, without_nothing({**shared, "boards": settings})
    except Exception:
        return [], {}
    finally:
        with suppress(Exception):
            nvml.nvmlShutdown()


def _board(nvml: Any, board: Any) -> dict[str, Any]:
    return _asked(
        nvml,
        {
            "name": lambda: _words(nvml.nvmlDeviceGetName(board)),
            "memory_gib": lambda: rounded_gib(int(nvml.nvmlDeviceGetMemoryInfo(board).total)),
            "vbios": lambda: _words(nvml.nvmlDeviceGetVbiosVersion(board)),
            "pcie_generation": lambda: int(nvml.nvmlDeviceGetMaxPcieLinkGeneration(board)),
            "pcie_lanes": lambda: int(nvml.nvmlDeviceGetMaxPcieLinkWidth(board)),
            "default_power_limit_w": lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(board) / 1e3,
        },
    )


def _settings(nvml: Any, board: Any) -> dict[str, Any]:
    return _asked(
        nvml,
        {
            "power_limit_w": lambda: nvml.nvmlDeviceGetPowerManagementLimit(board) / 1e3,
            "ecc": lambda: bool(nvml.nvmlDeviceGetEccMode(board)[0]),
            "mig": lambda: bool(nvml.nvmlDeviceGetMigMode(board)[0]),
            "persistence": lambda: bool(nvml.nvmlDeviceGetPersistenceMode(board)),
            "compute_mode": lambda: int(nvml.nvmlDeviceGetComputeMode(board)),
        },
    )


def _asked(nvml: Any, questions: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Ask one by one: what a board does not support is absent."""
    found: dict[str, Any] = {}
    for name, ask in questions.items():
        try:
            found[name] = ask()
        except (nvml.NVMLError, AttributeError, IndexError, TypeError, ValueError):
            continue
    return found


def _words(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
