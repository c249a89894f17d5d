"""Energy of a case, from an energy trial of its own during which the parent read a meter.

Timing trials are never sampled beside: whoever reads a sensor disturbs a little. Where no meter can be read, no such trial
is planned, and the measurement says why there is no energy. It is never zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from harness.records import Energy, Flag

if TYPE_CHECKING:
    from harness.sensors import MeterStatus
    from harness.sensors.metering import Metering


def unit_kind(compute_unit: str | None) -> str:
    """Return the kind of a compute unit by its name: "gpu0" is a "gpu"; a choosing target has none."""
    return (compute_unit or "unknown").rstrip("0123456789")


def meter_of(compute_unit: str | None, device_index: int, meters: Sequence[MeterStatus]) -> MeterStatus:
    """Return the meter whose scope is this unit, or one that says why there is none."""
    from harness.sensors import meter_for

    return meter_for(list(meters), unit_kind(compute_unit), device_index)


def metered(
    document: Mapping[str, Any], metering: Metering, compute_unit: str | None, device_index: int, batch: int
) -> dict[str, Any]:
    """Return the trial's document with the energy of its window, so that a run that goes on later still has it."""
    window = (document["window_start_ns"], document["window_end_ns"], document["queries"] * batch)
    waited = document.get("loaded_idle_ns")
    loaded_idle = (int(waited[0]), int(waited[1])) if waited else None
    joined = metering.energy(unit_kind(compute_unit), device_index, [window], loaded_idle)
    return {**document, "energy": asdict(joined.energy), "energy_flags": [asdict(flag) for flag in joined.flags]}


def energy_of(document: Mapping[str, Any]) -> tuple[Energy, tuple[Flag, ...]]:
    """Return what `metered` put into a trial's document."""
    return Energy(**document["energy"]), tuple(Flag(**flag) for flag in document["energy_flags"])
