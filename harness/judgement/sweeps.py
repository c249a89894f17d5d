"""Throughput over batch, requests in flight, or threads: its knee and any cliff. Pure.

The measurements of a sweep differ in nothing else. The knee is the smallest setting that reaches 95 % of the best
throughput: beyond it, more costs latency, memory or processors and gives almost nothing. That is a rule of thumb with a
stated threshold. Kneedle (Satopaa et al., "Finding a 'Kneedle' in a Haystack", ICDCS Workshops 2011) looks for the largest
distance from the chord instead; with the three to six settings of a sweep that point follows from where it was cut off.

A cliff is a step to the next larger setting at which throughput falls by more than both intervals allow. Where there are no
intervals but ranges of few trials, or single trials, a fall must also be above a tenth, and the sentence says what it rests
on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from harness.judgement.spread import spread_of
from harness.records import Case, Measurement

Axis = Literal["batch", "streams", "threads"]

AXES: tuple[Axis, ...] = ("batch", "streams", "threads")
WORDS: Mapping[Axis, str] = {"batch": "batch", "streams": "requests in flight", "threads": "threads"}
ENOUGH = 0.95  # of the best throughput
FALL_WITHOUT_INTERVAL = 0.10
LEAST_SETTINGS = 3  # two points have no shape


@dataclass(frozen=True)
class SweepPoint:
    """One setting. `low` and `high` are bounds of its throughput, None where it had one trial only."""

    setting: int
    measurement_id: str
    throughput_per_s: float
    low: float | None
    high: float | None
    interval: bool  # whether the bounds are a 95 % interval, and not a range
    p50_ms: float | None  # of a request, where the scenario has a latency


@dataclass(frozen=True)
class Cliff:
    """Throughput falls from `before` to the next setting `after`, by this share of it."""

    before: int
    after: int
    fall: float
    sentence: str


@dataclass(frozen=True)
class Sweep:
    """The curve of one case over one setting, ascending. `case` is that of the knee."""

    axis: Axis
    case: Case
    points: tuple[SweepPoint, ...]
    best: int
    knee: int
    at_edge: bool  # the best is the largest setting that was tried: the end of the rise was not seen
    cliffs: tuple[Cliff, ...]
    sentence: str


def sweeps_of(measurements: Iterable[Measurement]) -> tuple[Sweep, ...]:
    """Return every sweep of at least three settings among good measurements, in the order in which they first appear.

    A measurement belongs to a sweep of each setting in which others differ from it, and only it. A setting that the runtime
    chose itself has no number on the axis and is left out.
    """
    good = [one for one in measurements if one.status == "ok" and one.throughput_per_s is not None]
    found = []
    for axis in AXES:
        groups: dict[str, list[Measurement]] = {}
        for one in good:
            if getattr(one.case, axis) is not None:
                groups.setdefault(_without(one.case, axis), []).append(one)
        found += [_sweep(axis, group) for group in groups.values() if _settings(axis, group) >= LEAST_SETTINGS]
    return tuple(found)


def _without(case: Case, axis: Axis) -> str:
    """The key of the case with the swept setting taken out; the shape of its input holds the batch and goes with it."""
    shape = case.input_size.partition("x")[2] if case.input_size is not None and axis == "batch" else case.input_size
    plain = replace(case, input_size=shape)
    nothing: dict[str, Any] = {axis: 0 if axis == "batch" else None}
    return replace(plain, **nothing).key


def _settings(axis: Axis, group: Sequence[Measurement]) -> int:
    return len({getattr(one.case, axis) for one in group})


def _sweep(axis: Axis, group: Sequence[Measurement]) -> Sweep:
    by_setting = {int(getattr(one.case, axis)): one for one in group}
    points = tuple(_point(setting, by_setting[setting]) for setting in sorted(by_setting))
    best = max(points, key=lambda point: point.throughput_per_s)
    knee = next(point for point in points if point.throughput_per_s >= ENOUGH * best.throughput_per_s)
    cliffs = tuple(cliff for a, b in pairwise(points) if (cliff := _cliff(axis, a, b)) is not None)
    at_edge = best is points[-1]
    return Sweep(
        axis=axis,
        case=by_setting[knee.setting].case,
        points=points,
        best=best.setting,
        knee=knee.setting,
        at_edge=at_edge,
        cliffs=cliffs,
        sentence=_sentence(axis, points, best, knee, at_edge, cliffs),
    )


def _point(setting: int, one: Measurement) -> SweepPoint:
    assert one.throughput_per_s is not None
    found = one.throughput
    p50 = one.latency_ms.p50.value if one.latency_ms is not None else None
    return SweepPoint(
        setting=setting,
        measurement_id=one.measurement_id,
        throughput_per_s=one.throughput_per_s,
        low=found.low if found is not None else None,
        high=found.high if found is not None else None,
        interval=found is not None and spread_of(asdict(found)).kind == "interval",
        p50_ms=p50,
    )


def _cliff(axis: Axis, before: SweepPoint, after: SweepPoint) -> Cliff | None:
    fall = 1 - after.throughput_per_s / before.throughput_per_s
    if fall <= 0:
        return None
    if before.low is not None and after.high is not None and after.high >= before.low:
        return None
    sure = before.interval and after.interval
    if not sure and fall <= FALL_WITHOUT_INTERVAL:
        return None
    bounded = before.low is not None and after.high is not None
    rests = (
        "their intervals do not meet" if sure else "without an interval over trials" if bounded else "of single trials"
    )
    sentence = (
        f"From {WORDS[axis]} {before.setting} to {after.setting} throughput falls by {fall:.0%}, "
        f"from {before.throughput_per_s:.4g} to {after.throughput_per_s:.4g} per second ({rests})."
    )
    return Cliff(before.setting, after.setting, fall, sentence)


def _sentence(
    axis: Axis,
    points: Sequence[SweepPoint],
    best: SweepPoint,
    knee: SweepPoint,
    at_edge: bool,
    cliffs: Sequence[Cliff],
) -> str:
    tried = ", ".join(str(point.setting) for point in points)
    share = knee.throughput_per_s / best.throughput_per_s
    text = f"{WORDS[axis].capitalize()} {tried}: the knee is at {knee.setting}, {knee.throughput_per_s:.4g} per second"
    text += "" if knee is best else f", {share:.0%} of the best, which {best.setting} gives"
    if knee.p50_ms is not None and best.p50_ms is not None and knee is not best:
        text += f"; p50 {knee.p50_ms:.3g} instead of {best.p50_ms:.3g} ms"
    if at_edge and knee is best:
        text += "; it still rises at the end of what was tried"
    return f"{text}. {' '.join(cliff.sentence for cliff in cliffs)}".strip()
