"""Meters: what in this machine tells energy, how far to trust it, and why the rest is "not measured"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.sensors.base import Meter, MeterStatus
from harness.sensors.nvml import import_nvml, nvml_statuses
from harness.sensors.rapl import rapl_status

__all__ = ["Meter", "MeterStatus", "available_meters", "meter_for"]


def available_meters(root: Path = Path("/"), load_nvml: Callable[[], Any] = import_nvml) -> list[MeterStatus]:
    """Look for every kind of meter by really reading it once. Never raises.

    `root` stands for "/" in tests; `load_nvml` returns NVIDIA's Python library or raises ImportError.
    """
    return [rapl_status(root), *nvml_statuses(load_nvml)]


def meter_for(statuses: list[MeterStatus], unit_kind: str, device_index: int = 0) -> MeterStatus:
    """The meter whose scope is the compute unit: "cpu" or "gpu" (by its number). Not working with a reason where none is."""
    wanted = {"cpu": "rapl", "gpu": f"nvml:{device_index}"}.get(unit_kind)
    for status in statuses:
        if status.name == wanted or (unit_kind == "gpu" and status.name == "nvml"):
            return status
    return MeterStatus(
        unit_kind, False, f"not measured: there is no meter yet for this kind of processor ({unit_kind})"
    )
