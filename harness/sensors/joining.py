"""Joins the energy of a case's windows with the inferences in them: gross, and net of idle. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.judgement.flags import ENERGY_BELOW_IDLE, ENERGY_METHODS_DIFFER, ENERGY_WINDOW_SHORT
from harness.records import Energy, Flag
from harness.sensors.energy_window import WindowEnergy

# Between counter and integrated power. Ours: above the error of power that is sampled a few times a second.
DISAGREEMENT = 0.10
# Below ten seconds, or twenty updates of the sensor, its own step shows in the result.
SHORTEST_S = 10.0
FEWEST_READINGS = 20


@dataclass(frozen=True)
class Joined:
    """Energy as the record keeps it, and what a reader must know about it."""

    energy: Energy
    flags: tuple[Flag, ...] = ()


def join_energy(
    windows: Sequence[tuple[WindowEnergy, int]],
    idle: WindowEnergy | None = None,
    loaded_idle: WindowEnergy | None = None,
) -> Joined:
    """Return joules per inference over all `windows`, each with the number of inferences that were answered in it.

    A trial whose window has no energy is left out; where that is every trial, the reason of the first is the answer. `idle`
    is a stretch before anything was loaded, `loaded_idle` one with the model loaded and waiting. Net subtracts the power of
    `idle` over the windows' time; without it net is None. Nothing is ever guessed from a processor's nominal power.
    """
    used = [(window, count) for window, count in windows if window.joules is not None and count > 0]
    if not used:
        reasons = [window.reason or "no inference ended in the window" for window, _ in windows]
        return Joined(Energy(None, reasons[0] if reasons else "no meter was read"))
    first = used[0][0]
    joules = sum(window.joules or 0.0 for window, _ in used)
    seconds = sum(window.seconds for window, _ in used)
    inferences = sum(count for _, count in used)
    readings = sum(window.readings for window, _ in used)
    idle_w = idle.mean_w if idle is not None and idle.source == first.source else None
    loaded_w = loaded_idle.mean_w if loaded_idle is not None and loaded_idle.source == first.source else None
    net = None if idle_w is None else (joules - idle_w * seconds) / inferences
    flags = [_differ(window) for window, _ in used if (window.disagreement or 0.0) > DISAGREEMENT][:1]
    if net is not None and net < 0:
        text = f"The mean power under load ({joules / seconds:.2f} W) is below the idle power ({idle_w:.2f} W)."
        flags.append(Flag(ENERGY_BELOW_IDLE, text))
        net = None
    if seconds < SHORTEST_S or readings < FEWEST_READINGS:
        text = (
            f"Energy was taken over {seconds:.1f} s with {readings} readings; "
            f"{SHORTEST_S:.0f} s and {FEWEST_READINGS} are the least for a figure to rely on."
        )
        flags.append(Flag(ENERGY_WINDOW_SHORT, text))
    energy = Energy(
        per_inference_j=joules / inferences,
        net_per_inference_j=net,
        mean_w=joules / seconds,
        idle_w=idle_w,
        loaded_idle_w=loaded_w,
        source=first.source,
        scope=first.scope,
        method=first.method,
        quality=first.quality,
        samples=readings,
    )
    return Joined(energy, tuple(flags))


def _differ(window: WindowEnergy) -> Flag:
    text = f"Integrated power gives {window.integrated_j:.3f} J, the counter {window.joules:.3f} J."
    return Flag(ENERGY_METHODS_DIFFER, text)
