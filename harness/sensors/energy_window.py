"""Energy of a stretch of monotonic time, from readings taken around it. Pure.

A counter gives the difference of its (linearly interpolated) values at both ends; without one, power is integrated by
the trapezoidal rule over the readings' own times. Where the readings leave more than 5 % of the window uncovered, there is
no energy at all: an honest gap is better than a number that missed the load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.sensors.base import Method, Reading

MOST_GAP = 0.05  # of the window: beyond it a trial has no energy
SPACING = 3.0  # times the sampling interval; readings further apart leave a gap between them


@dataclass(frozen=True)
class WindowEnergy:
    """Joules used between two moments. `joules` is None with a reason where they are not known."""

    start_ns: int
    end_ns: int
    joules: float | None
    reason: str | None = None
    source: str | None = None
    scope: str | None = None
    method: Method | None = None
    quality: str | None = None
    readings: int = 0
    integrated_j: float | None = None  # from power, where the counter was used and power is known too

    @property
    def seconds(self) -> float:
        """The window's length."""
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def mean_w(self) -> float | None:
        """Mean power over the window."""
        return None if self.joules is None or self.seconds <= 0 else self.joules / self.seconds

    @property
    def disagreement(self) -> float | None:
        """How far the integrated power lies from the counter, relative to the counter."""
        if self.integrated_j is None or not self.joules:
            return None
        return abs(self.integrated_j - self.joules) / self.joules


def window_energy(readings: Sequence[Reading], start_ns: int, end_ns: int, interval_s: float) -> WindowEnergy:
    """Return the energy between `start_ns` and `end_ns` from one meter's readings, in the order of time.

    `interval_s` is how often the meter was to be read; what it was not read for longer than that counts as a gap.
    """
    if not readings:
        return WindowEnergy(start_ns, end_ns, None, "no reading was taken")
    first = readings[0]
    inside = sum(1 for reading in readings if reading.good and start_ns <= reading.at_ns <= end_ns)

    def result(joules: float | None, reason: str | None = None, integrated: float | None = None) -> WindowEnergy:
        return WindowEnergy(
            start_ns,
            end_ns,
            joules,
            reason,
            first.source,
            first.scope,
            first.method,
            first.quality,
            inside,
            integrated,
        )

    if end_ns <= start_ns:
        return result(None, "the window has no length")
    good = [reading for reading in readings if reading.good]
    points = [(r.at_ns, r.energy_j if first.method == "counter_diff" else r.power_w) for r in good]
    known = [(at, value) for at, value in points if value is not None]
    gap = _uncovered([at for at, _ in known], start_ns, end_ns, interval_s)
    if gap > MOST_GAP:
        failed = next((reading.reason for reading in reversed(readings) if reading.reason is not None), None)
        text = f"{gap:.0%} of the window has no reading ({MOST_GAP:.0%} are allowed)"
        return result(None, f"{text}: {failed}" if failed else text)
    if first.method == "trapezoid":
        integral = _integral(known, start_ns, end_ns)
        return result(integral) if integral > 0 else result(None, "the meter told no power in the window")
    joules = _value_at(known, end_ns) - _value_at(known, start_ns)
    if joules <= 0:
        return result(None, "the energy counter did not move in the window")
    powers = [(r.at_ns, r.power_w) for r in readings if r.power_w is not None]
    covered = _uncovered([at for at, _ in powers], start_ns, end_ns, interval_s) <= MOST_GAP
    return result(joules, None, _integral(powers, start_ns, end_ns) if covered else None)


def _uncovered(times: Sequence[int], start_ns: int, end_ns: int, interval_s: float) -> float:
    """Share of the window that lies between readings too far apart, or outside them."""
    allowed = SPACING * interval_s * 1e9
    missing = 0
    previous: int | None = None
    for at in times:
        if previous is None:
            missing += max(0, min(at, end_ns) - start_ns)
        elif at - previous > allowed:
            missing += max(0, min(at, end_ns) - max(previous, start_ns))
        previous = at
    missing += max(0, end_ns - max(previous, start_ns)) if previous is not None else end_ns - start_ns
    return missing / (end_ns - start_ns)


def _value_at(points: Sequence[tuple[int, float]], at_ns: int) -> float:
    """The value at a moment, linear between its neighbours, that of the nearest point outside."""
    before: tuple[int, float] | None = None
    for point in points:
        if point[0] >= at_ns:
            if before is None or point[0] == before[0]:
                return point[1]
            share = (at_ns - before[0]) / (point[0] - before[0])
            return before[1] + share * (point[1] - before[1])
        before = point
    assert before is not None, "there is at least one point"
    return before[1]


def _integral(points: Sequence[tuple[int, float]], start_ns: int, end_ns: int) -> float:
    """Watts over the window by the trapezoidal rule, in joules."""
    edges = [(start_ns, _value_at(points, start_ns))]
    edges += [point for point in points if start_ns < point[0] < end_ns]
    edges.append((end_ns, _value_at(points, end_ns)))
    return sum((b[0] - a[0]) / 1e9 * (a[1] + b[1]) / 2 for a, b in pairwise(edges))
