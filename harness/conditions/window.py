"""From looks to what is stored: the part of them that belongs to a timed window. Pure."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from harness.conditions.looks import Look

SERIES_POINTS = 300
SPREAD_LOOKS = (
    10  # from so many on, the lowest and highest twentieth, one at least, are left out of a level's low and high
)


def conditions_of(
    looks: Sequence[Look],
    window: tuple[int, int] | None,
    processors: int,
    limit_c: float | None,
    absent: Mapping[str, str],
    signs_of_worker: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return what went on during `window` (start and end, CLOCK_MONOTONIC ns), or during all looks where it is None.

    Processor times are interpolated at the window's ends. Events (throttling, swapping, clock steps) are those between the
    last look before the window and the first one after it, so that none inside is missed; `resolution_s` is the largest
    distance between two looks.
    """
    if len(looks) < 2:
        return {"unavailable": {**absent, "all": "the worker ended before the machine was looked at twice"}}
    times = [look.at_ns for look in looks]
    start, end = window if window is not None else (times[0], times[-1])
    first = max(0, bisect_right(times, start) - 1)
    last = min(len(looks) - 1, bisect_left(times, end))
    if last <= first:
        last = min(first + 1, len(looks) - 1)
        first = last - 1
    around = looks[first : last + 1]
    start, end = max(start, times[0]), min(end, times[-1])
    seconds = max((end - start) / 1e9, 1e-9)
    found: dict[str, Any] = {
        "scope": "window" if window is not None else "worker",
        "seconds": round(seconds, 3),
        "resolution_s": round(_largest_gap_s(around), 3),
        "looks": len(around),
        "processors": processors,
        **_processor_time(looks, start, end, seconds, processors),
        **_events(around),
        **_levels(around, limit_c),
    }
    signs = sorted(frozenset().union(*(look.signs for look in around)))
    if signs:
        found["signs"] = signs
    if signs_of_worker:
        found["signs_of_worker"] = sorted(signs_of_worker)  # before and after the whole process, not only its window
    series = _series(around, start, processors)
    if len(around) > 2 and len(series) > 1:
        found["series"] = series
    if absent:
        found["unavailable"] = dict(sorted(absent.items()))
    return found


def _largest_gap_s(around: Sequence[Look]) -> float:
    return max(after.at_ns - before.at_ns for before, after in itertools.pairwise(around)) / 1e9


def _processor_time(looks: Sequence[Look], start: int, end: int, seconds: float, processors: int) -> dict[str, float]:
    """Shares of the processors that the worker might use: by others, by the hypervisor, by the worker, by the harness."""

    def grown(name: str) -> float | None:
        at = [_at(looks, name, moment) for moment in (start, end)]
        return None if at[0] is None or at[1] is None else at[1] - at[0]

    capacity = seconds * max(processors, 1)
    busy, worker, harness, steal = (grown(name) for name in ("busy_s", "worker_s", "harness_s", "steal_s"))
    found = {}
    if busy is not None and worker is not None:
        found["other_load"] = round(max(0.0, busy - worker - (harness or 0.0)) / capacity, 4)
        found["worker_load"] = round(worker / capacity, 4)
        if harness is not None:
            found["harness_load"] = round(harness / capacity, 4)
    if steal is not None:
        found["steal"] = round(max(0.0, steal) / capacity, 4)
    return found


def _at(looks: Sequence[Look], name: str, moment: int) -> float | None:
    """The counter at a moment, linearly between the looks around it."""
    known = [(look.at_ns, look.counters[name]) for look in looks if name in look.counters]
    if len(known) < 2:
        return None
    place = min(max(bisect_left([at for at, _ in known], moment), 1), len(known) - 1)
    (t0, v0), (t1, v1) = known[place - 1], known[place]
    share = min(max((moment - t0) / (t1 - t0), 0.0), 1.0) if t1 > t0 else 1.0
    return v0 + (v1 - v0) * share


def _events(around: Sequence[Look]) -> dict[str, Any]:
    def grown(name: str) -> float | None:
        known = [look.counters[name] for look in around if name in look.counters]
        return known[-1] - known[0] if len(known) > 1 else None

    found: dict[str, Any] = {}
    for whose in ("worker", "harness"):
        periods, throttled, seconds = (grown(f"{whose}_{n}") for n in ("periods", "throttled_periods", "throttled_s"))
        if throttled is not None and (whose == "worker" or throttled > 0):
            name = "cgroup" if whose == "worker" else "cgroup_of_harness"
            found[name] = {"periods": periods, "throttled": throttled, "throttled_s": round(seconds or 0.0, 6)}
    swapped = [grown("pswpin"), grown("pswpout")]
    faults = grown("major_faults")
    if swapped[0] is not None or faults is not None:
        found["swap"] = {"pages_in": swapped[0], "pages_out": swapped[1], "major_faults": faults}
    offsets = [look.counters["wall_offset_s"] for look in around if "wall_offset_s" in look.counters]
    if len(offsets) > 1:
        steps = [b - a for a, b in itertools.pairwise(offsets)]
        slept = [look.counters.get("suspended_s", 0.0) for look in around]
        largest: float = max(steps, key=abs)
        found["clock"] = {
            "largest_step_s": round(largest, 6),
            "suspended_s": round(slept[-1] - slept[0], 6),
        }
    thermal = grown("thermal_events")
    if thermal is not None:
        found["thermal_events"] = thermal
    pressure = {n: grown(f"pressure_{n}_s") for n in ("cpu", "memory", "io")}
    span = (around[-1].at_ns - around[0].at_ns) / 1e9
    shares = {n: round(value / span, 4) for n, value in pressure.items() if value is not None and span > 0}
    if shares:
        found["pressure"] = shares
    return found


def _levels(around: Sequence[Look], limit_c: float | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("frequency_mhz", "temperature_c", "gpu_clock_mhz", "gpu_temperature_c"):
        seen = [look.levels[name] for look in around if name in look.levels]
        if not seen:
            continue
        ordered = sorted(seen)
        cut = max(1, len(ordered) // 20) if len(ordered) >= SPREAD_LOOKS else 0
        found[name] = {
            "first": seen[0],
            "last": seen[-1],
            "low": ordered[cut],
            "high": ordered[-1 - cut],
            "median": ordered[len(ordered) // 2],
        }
    if limit_c is not None and "temperature_c" in found:
        found["temperature_c"]["limit"] = limit_c
    return found


def _series(around: Sequence[Look], start: int, processors: int) -> dict[str, list[float | None]]:
    """At most SERIES_POINTS points: seconds from the window's start, levels, and other load since the point before."""
    step = max(1, -(-len(around) // SERIES_POINTS))
    kept = list(around[::step])
    found: dict[str, list[float | None]] = {"at_s": [round((look.at_ns - start) / 1e9, 3) for look in kept]}
    for name in ("frequency_mhz", "temperature_c", "gpu_clock_mhz", "gpu_temperature_c"):
        if any(name in look.levels for look in kept):
            found[name] = [look.levels.get(name) for look in kept]
    if all("busy_s" in look.counters for look in kept):
        load: list[float | None] = [None]
        for before, after in itertools.pairwise(kept):
            grown = {n: after.counters[n] - before.counters[n] for n in ("busy_s", "worker_s", "harness_s")}
            seconds = max((after.at_ns - before.at_ns) / 1e9, 1e-9) * max(processors, 1)
            load.append(round(max(0.0, grown["busy_s"] - grown["worker_s"] - grown["harness_s"]) / seconds, 3))
        found["other_load"] = load
    return found
