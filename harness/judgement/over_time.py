"""How a load of minutes went: slices in the order of time, the drift from the first part to the last, a word for it. Pure.

Drift is the median latency of the last fifth over that of the first fifth, per trial. With six trials its interval is that
of the median over trials. With fewer it is the widest of what each trial says by itself, twice: from the samples of both
fifths, counted as the independent ones they are worth, and from the medians of their slices, so that a disturbance of a few
seconds is no drift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from harness.judgement import flags
from harness.judgement.intervals import (
    CONFIDENCE,
    MEDIAN,
    Interval,
    least_count,
    median_over_trials,
    percentile_interval,
    ratio_of_intervals,
    ratio_of_medians,
)
from harness.judgement.summary import PER_MILLE, loadgen_percentile
from harness.records import Flag, OverTime, Slice

Samples = npt.NDArray[np.int64]
Verdict = Literal["steady", "slower", "faster", "undecided"]

SLICES = 60
FIFTH = 5
# A change of less than this is of no consequence, however sure it is; a larger one must be sure to be called one.
MATERIAL = 0.03
LEAST_OF_A_FIFTH = 10
CLOCK_FELL = 0.97  # of the processor's clock in the first fifth


@dataclass(frozen=True)
class Course:
    """One sustained trial. `series` is that of its conditions: seconds from the window's start and levels, or None."""

    latency_ns: Samples
    started_ns: Samples  # from the window's start
    every: int  # each kept query stands for so many
    seconds: float
    series: Mapping[str, Sequence[float | None]] | None = None


def over_time(courses: Sequence[Course], confidence: float = CONFIDENCE) -> OverTime:
    """Return slices of all trials together, at the same time from each one's start, and the drift over trials."""
    seconds = min(course.seconds for course in courses)
    width = seconds / SLICES
    slices = tuple(_slice(courses, number * width, (number + 1) * width) for number in range(SLICES))
    found = [_drift(course, confidence) for course in courses]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        why = f"A fifth of a trial holds fewer than {LEAST_OF_A_FIFTH} queries."
        return OverTime(slices, verdict="undecided", reason=why)
    values = [one.value for one in known]
    across = median_over_trials(values, confidence)
    low, high = across.low, across.high
    reason: str | None = None
    if across.kind != "interval":
        bounded = [one for one in known if one.low is not None and one.high is not None]
        low = min((one.low for one in bounded if one.low is not None), default=None)
        high = max((one.high for one in bounded if one.high is not None), default=None)
        if len(bounded) < len(known):
            low, high, reason = None, None, known[0].reason or "Too few independent queries for an interval."
    return OverTime(slices, across.value, low, high, verdict_of(across.value, low, high), reason)


def verdict_of(drift: float, low: float | None, high: float | None) -> Verdict:
    """Steady: the whole interval is within 3 % of one. Slower, faster: beyond 3 %, and the interval excludes one."""
    if low is None or high is None:
        return "undecided"
    if low >= 1 - MATERIAL and high <= 1 + MATERIAL:
        return "steady"
    if drift >= 1 + MATERIAL and low > 1:
        return "slower"
    if drift <= 1 - MATERIAL and high < 1:
        return "faster"
    return "undecided"


def throttled(course: OverTime) -> Flag | None:
    """Return the flag where it got slower while the processor's clock fell: evidence, not a guess from the latency alone."""
    if course.verdict != "slower" or course.drift is None:
        return None
    part = len(course.slices) // FIFTH
    clock = [_middle([one.cpu_mhz for one in some]) for some in (course.slices[:part], course.slices[-part:])]
    if clock[0] is None or clock[1] is None or clock[1] > CLOCK_FELL * clock[0]:
        return None
    heat = [_middle([one.temperature_c for one in some]) for some in (course.slices[:part], course.slices[-part:])]
    warmer = f", at {heat[0]:.0f} and {heat[1]:.0f} C" if heat[0] is not None and heat[1] is not None else ""
    return Flag(
        flags.THROTTLED,
        f"Under lasting load the latency rose by {course.drift - 1:.0%} while the processor's clock fell "
        f"from {clock[0]:.0f} to {clock[1]:.0f} MHz{warmer}.",
    )


def _drift(course: Course, confidence: float) -> Interval | None:
    fifth_ns = course.seconds * 1e9 / FIFTH
    early = course.started_ns < fifth_ns
    late = course.started_ns >= course.seconds * 1e9 - fifth_ns
    first, last = course.latency_ns[early], course.latency_ns[late]
    if min(len(first), len(last)) < LEAST_OF_A_FIFTH:
        return None
    each = 1 - (1 - confidence) / 2
    value = float(np.median(last)) / float(np.median(first))
    by_samples = ratio_of_intervals(percentile_interval(last, MEDIAN, each), percentile_interval(first, MEDIAN, each))
    by_slices = ratio_of_medians(
        _medians(course, course.seconds * (FIFTH - 1) / FIFTH, course.seconds),
        _medians(course, 0.0, course.seconds / FIFTH),
        confidence,
    )
    bounds = [(one.low, one.high) for one in (by_samples, by_slices) if one.low is not None and one.high is not None]
    if len(bounds) < 2:
        return Interval(value, None, None, "none", 1, reason=by_samples.reason or by_slices.reason)
    low, high = min(value, *(low for low, _ in bounds)), max(value, *(high for _, high in bounds))
    return Interval(value, low, high, "interval", 1, confidence)


def _medians(course: Course, start_s: float, end_s: float) -> list[float]:
    """Medians of the slices between two moments; slices without a query have none."""
    edges = np.linspace(start_s, end_s, SLICES // FIFTH + 1) * 1e9
    places = np.searchsorted(course.started_ns, edges)
    parts = [course.latency_ns[a:b] for a, b in pairwise(places)]
    return [float(np.median(part)) for part in parts if len(part)] or [float("nan")]


def _slice(courses: Sequence[Course], start_s: float, end_s: float) -> Slice:
    parts = []
    for course in courses:
        first, last = np.searchsorted(course.started_ns, [start_s * 1e9, end_s * 1e9])
        parts.append(course.latency_ns[first:last])
    counts = [len(part) * course.every for part, course in zip(parts, courses, strict=True)]
    ordered = np.sort(np.concatenate(parts))
    return Slice(
        start_s=round(start_s, 6),
        end_s=round(end_s, 6),
        count=sum(counts),
        p50_ms=_percentile_ms(ordered, "p50"),
        p99_ms=_percentile_ms(ordered, "p99"),
        throughput_per_s=sum(counts) / len(courses) / (end_s - start_s),
        cpu_mhz=_level(courses, "frequency_mhz", start_s, end_s),
        temperature_c=_level(courses, "temperature_c", start_s, end_s),
    )


def _percentile_ms(ordered: Samples, name: str) -> float | None:
    if len(ordered) < least_count(PER_MILLE[name]):
        return None
    return loadgen_percentile(ordered, PER_MILLE[name]) / 1e6


def _level(courses: Sequence[Course], name: str, start_s: float, end_s: float) -> float | None:
    """The mean of a level over a slice, None where nothing looked at it then."""
    seen: list[float] = []
    for course in courses:
        series: Mapping[str, Any] = course.series or {}
        for at_s, value in zip(series.get("at_s", ()), series.get(name, ()), strict=False):
            if value is not None and at_s is not None and start_s <= at_s < end_s:
                seen.append(float(value))
    return fmean(seen) if seen else None


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
