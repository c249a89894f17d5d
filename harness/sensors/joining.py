"""Joins a window's energy with the inferences in it: gross, and net of idle. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from harness.records import Energy, Flag
from harness.sensors.energy_window import DISAGREEMENT, FEWEST_READINGS, SHORTEST_S, WindowEnergy


@dataclass(frozen=True)
class Joined:
    """Energy as the record keeps it, and what a reader must know about it."""

    energy: Energy
    flags: tuple[Flag, ...] = ()


def join_energy(
    window: WindowEnergy,
    inferences: int,
    idle: WindowEnergy | None = None,
    loaded_idle: WindowEnergy | None = None,
) -> Joined:
    """Return joules per inference over `window`, in which `inferences` were answered.

    `idle` is a stretch before anything was loaded, `loaded_idle` one with the model loaded and waiting. Net subtracts the
    power of `idle` over the whole window; without it net is None. Nothing is ever guessed from a processor's nominal power.
    """
    reason = window.reason
    if reason is None and inferences <= 0:
        reason = "no inference ended in the window"
    if reason is not None or window.joules is None:
        return Joined(Energy(None, reason or "no meter was read"))
    idle_w = idle.mean_w if idle is not None and idle.source == window.source else None
    loaded_w = loaded_idle.mean_w if loaded_idle is not None and loaded_idle.source == window.source else None
    flags = []
    net = None
    if idle_w is not None:
        net = (window.joules - idle_w * window.seconds) / inferences
        if net < 0:
            text = f"The mean power under load ({window.mean_w:.2f} W) is below the idle power ({idle_w:.2f} W)."
            flags.append(Flag("energy_below_idle", text))
            net = None
    if window.disagreement is not None and window.disagreement > DISAGREEMENT:
        text = f"Integrated power gives {window.integrated_j:.3f} J, the counter {window.joules:.3f} J."
        flags.append(Flag("energy_methods_differ", text))
    if window.short:
        text = (
            f"Energy was taken over {window.seconds:.1f} s with {window.readings} readings; "
            f"{SHORTEST_S:.0f} s and {FEWEST_READINGS} are the least for a figure to rely on."
        )
        flags.append(Flag("energy_window_short", text))
    energy = Energy(
        per_inference_j=window.joules / inferences,
        net_per_inference_j=net,
        mean_w=window.mean_w,
        idle_w=idle_w,
        loaded_idle_w=loaded_w,
        source=window.source,
        scope=window.scope,
        method=window.method,
        quality=window.quality,
        samples=window.readings,
    )
    return Joined(energy, tuple(flags))
