"""From the stretches of all server trials to latency over offered rate, and to the highest rate that keeps a limit. Pure.

Trials are joined rate by rate. Bounds of a percentile at a rate: with six trials that carry it, the interval of its median
over trials; with fewer, the wider of what two things say, the range of the trials' own values and the interval from the
order statistics of all samples together, counted as the independent ones they are worth. Waiting in a queue makes
neighbours alike, and how long a spell lasts differs from the median to the tail: of p50, p75, p90, p95 and the percentile
itself, the one whose excesses depend most on each other counts. (In simulated queues at loads of 0.7 and 0.85, the median
and the percentile alone gave intervals of p99 that covered 85 to 93 %; with all of them it is 94 to 100 %.)

A limit is *met* at a rate where the percentile's upper bound is at most the limit and the system keeps up; *missed* where
its lower bound, or that of a lower percentile, is above it, or where the queue grew until the end; else *undecided*. The
highest rate that meets a limit is looked for from below and not beyond a rate that misses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness.judgement.effective_size import effective_size
from harness.judgement.intervals import CONFIDENCE, least_count, percentile_interval
from harness.judgement.summary import ONE_UNIT, PER_MILLE, loadgen_percentile, over_own_percentiles, speaks
from harness.records import Latency, Quantile, RateCurve, RatePoint

Samples = npt.NDArray[np.int64]
Answer = Literal["met", "missed", "undecided"]

PERCENTILES = ("p50", "p90", "p99")
# A queue grows where those who come last wait longer than those who came first by more than a twentieth of the time between
# them (the load is then above 1.05 of what is answered), and by more than four services: fewer come and go by chance.
GROWTH_SHARE = 0.05
GROWTH_QUERIES = 4.0
FIFTHS = 5
LEAST_QUERIES = 50  # of one rate, to say anything about its queue
SPELLS = (500, 750, 900, 950)  # per mille: how long the wait stays above these says how much the samples depend


@dataclass(frozen=True)
class Stretch:
    """One rate's queries in one trial, in the order of arrival. Latency counts from the scheduled arrival."""

    offered_per_s: float
    planned: int
    latency_ns: Samples
    wait_ns: Samples  # from the scheduled arrival to the start of the request
    span_ns: int  # from the schedule's start to the last answer
    ramp: int  # leading queries that count in no percentile: the queue began empty

    @property
    def counted(self) -> Samples:
        return self.latency_ns[self.ramp :]

    @property
    def complete(self) -> bool:
        """Whether all its queries were started before the trial's time was over; of others the slowest are missing."""
        return len(self.latency_ns) == self.planned


@dataclass(frozen=True)
class RateTrial:
    """One server trial: what a closed loop could do, and its stretches."""

    capacity_per_s: float  # queries
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True)
class HighestRate:
    """The highest offered rate that meets a limit, the lowest above it that misses it, and why there is none."""

    per_s: float | None
    missed_per_s: float | None
    reason: str | None
    answers: tuple[Answer, ...]  # of each point, in their order


def curve_of(
    trials: Sequence[RateTrial], limit_ms: float | None, percentile: str = "p99", confidence: float = CONFIDENCE
) -> RateCurve:
    """Return the curve over all rates that any trial offered, ascending, judged at the limit (None: at none)."""
    rates = sorted({stretch.offered_per_s for trial in trials for stretch in trial.stretches})
    capacity = median(trial.capacity_per_s for trial in trials)
    points = tuple(_point(rate, trials, capacity, confidence) for rate in rates)
    curve = RateCurve(points, percentile, limit_ms)
    if limit_ms is None:
        return RateCurve(points, percentile, None, None, "The workload has no limit; any can be asked of the curve.")
    found = highest_rate(curve, limit_ms, percentile)
    judged = tuple(replace(point, meets_limit=answer) for point, answer in zip(points, found.answers, strict=True))
    return RateCurve(judged, percentile, limit_ms, found.per_s, found.reason)


def highest_rate(curve: RateCurve, limit_ms: float, percentile: str = "p99") -> HighestRate:
    """Return the highest rate of a curve at which a percentile (p50, p90, p99) keeps any limit, by the rules above."""
    if percentile not in PERCENTILES:
        raise ValueError(f"A rate curve has {', '.join(PERCENTILES)}, not {percentile}.")
    answers = tuple(answer_at(point, limit_ms, percentile) for point in curve.points)
    met: float | None = None
    missed: float | None = None
    for point, answer in zip(curve.points, answers, strict=True):
        if answer == "missed":
            missed = point.offered_per_s
            break
        if answer == "met":
            met = point.offered_per_s
    return HighestRate(
        met, missed, None if met is not None else _why_none(curve, answers, limit_ms, percentile), answers
    )


def answer_at(point: RatePoint, limit_ms: float, percentile: str = "p99") -> Answer:
    """Say whether the percentile keeps the limit at this rate, as far as its bounds tell."""
    if point.keeps_up is False:
        return "missed"
    for name in PERCENTILES[: PERCENTILES.index(percentile) + 1]:
        low = getattr(point, name).low
        if low is not None and low > limit_ms:
            return "missed"
    high = getattr(point, percentile).high
    return "met" if high is not None and high <= limit_ms and point.keeps_up else "undecided"


def samples_at(trials: Sequence[RateTrial], rate: float) -> list[Samples]:
    """Return the counted latencies of each trial at a rate, of its complete stretches one after the other."""
    found = []
    for trial in trials:
        parts = [one.counted for one in trial.stretches if one.offered_per_s == rate and one.complete]
        if parts:
            found.append(np.concatenate(parts))
    return found


def latency_at(trials: Sequence[RateTrial], rate: float, confidence: float = CONFIDENCE) -> Latency | None:
    """Return the whole latency at a rate, its percentiles by the same rules as those of the curve; None without samples."""
    held = samples_at(trials, rate)
    if not held:
        return None
    pooled = np.concatenate(held)
    quantiles: dict[str, Quantile] = {}
    before = 0.0
    for name, per_mille in PER_MILLE.items():
        found = _quantile(held, per_mille, confidence, 0)
        if found.value is not None and found.value < before:
            found = Quantile(None, reason="the trials are too short and too unlike for this percentile")
        quantiles[name] = found
        before = max(before, found.value or 0.0)
    return Latency(
        count=len(pooled),
        mean=float(pooled.mean()) / 1e6,
        min=int(pooled.min()) / 1e6,
        max=int(pooled.max()) / 1e6,
        **quantiles,
    )


def _point(rate: float, trials: Sequence[RateTrial], capacity: float, confidence: float) -> RatePoint:
    stretches = [(one, trial) for trial in trials for one in trial.stretches if one.offered_per_s == rate]
    held = samples_at(trials, rate)
    answered = sum(len(one.latency_ns) for one, _ in stretches)
    span_s = sum(one.span_ns for one, _ in stretches) / 1e9
    cut = len(stretches) - sum(one.complete for one, _ in stretches)
    p50, p90, p99 = (_quantile(held, PER_MILLE[name], confidence, cut) for name in PERCENTILES)
    return RatePoint(
        offered_per_s=rate,
        completed_per_s=answered / span_s if span_s > 0 else None,
        count=sum(map(len, held)),
        p50=p50,
        p90=p90,
        p99=p99,
        keeps_up=_keeps_up(stretches, rate, capacity),
    )


def _quantile(trials: Sequence[Samples], per_mille: int, confidence: float, cut: int) -> Quantile:
    pooled = np.concatenate(trials) if trials else np.zeros(0, np.int64)
    needed = least_count(per_mille)
    if len(pooled) < needed:
        ended = f"; {cut} stretches did not end in time" if cut else ""
        return Quantile(None, reason=f"too few samples: {len(pooled)} of at least {needed}{ended}")
    ordered = [np.sort(trial) for trial in trials]
    worth = sum(
        effective_size(trial, *(loadgen_percentile(one, level) for level in (*SPELLS, per_mille)))
        for trial, one in zip(trials, ordered, strict=True)
    )
    if worth < needed:
        count = f"{len(pooled)} samples are worth {worth} independent ones"
        return Quantile(None, reason=f"too few samples: {count}, of at least {needed}")
    across = over_own_percentiles(ordered, per_mille, confidence)
    if across is not None:
        return across
    each = [loadgen_percentile(one, per_mille) / 1e6 for one in ordered if speaks(one, per_mille)]
    inside = percentile_interval(pooled, per_mille, confidence, worth)
    bounds = [value / 1e6 for value in (inside.low, inside.high) if value is not None] + each
    if inside.low is None:  # a look asks for more than 95 %
        return Quantile(inside.value / 1e6, reason=None, method=f"floor(n p) of all trials together, {ONE_UNIT}")
    held = f"bounds hold the range of {len(trials)} trials and the 95 % interval of {worth} independent samples"
    method = f"floor(n p) of all trials together; {held}, {ONE_UNIT}"
    return Quantile(inside.value / 1e6, min(bounds), max(bounds), method)


def _keeps_up(stretches: Sequence[tuple[Stretch, RateTrial]], rate: float, capacity: float) -> bool | None:
    """False where most queries were in a queue that grew; None where nothing can be told, or where it is above the capacity.

    Above the capacity a queue grows without end, however little of it a short stretch shows. A stretch whose time was over
    before its last query speaks where its queue grew; a slow device may just have had no time for the rest.
    """
    grown = [one for one, trial in stretches if _grew(one, trial.capacity_per_s)]
    if any(not one.complete for one in grown):
        return False
    total = sum(len(one.wait_ns) for one, _ in stretches if one.complete)
    if total < LEAST_QUERIES:
        return None
    if 2 * sum(len(one.wait_ns) for one in grown) >= total:
        return False
    return True if rate < capacity else None


def _grew(stretch: Stretch, capacity_per_s: float) -> bool:
    part = len(stretch.wait_ns) // FIFTHS
    if part < 2:
        return False
    growth_s = float(np.median(stretch.wait_ns[-part:]) - np.median(stretch.wait_ns[:part])) / 1e9
    between_s = (len(stretch.wait_ns) - part) / stretch.offered_per_s
    return growth_s > GROWTH_SHARE * between_s and growth_s > GROWTH_QUERIES / capacity_per_s


def _why_none(curve: RateCurve, answers: Sequence[Answer], limit_ms: float, percentile: str) -> str:
    if not curve.points:
        return "No rate was offered."
    lowest = curve.points[0]
    named = f"{lowest.offered_per_s:g} per second"
    if answers[0] == "missed":
        if lowest.keeps_up is False:
            return f"Even at the lowest rate, {named}, the queue grew until the end."
        value = next(
            (q.value for name in (percentile, "p90", "p50") if (q := getattr(lowest, name)).value is not None), None
        )
        told = f" ({value:.3g} ms)" if value is not None else ""
        return f"Even at the lowest rate, {named}, the latency is above the limit of {limit_ms:g} ms{told}."
    first: Quantile = getattr(lowest, percentile)
    why = first.reason or "its bounds hold the limit, or its queue is not known to keep up"
    return f"At no rate is it sure that {percentile} keeps {limit_ms:g} ms; at the lowest, {named}: {why}."


def trial_from(
    capacity_per_s: float, told: Sequence[Mapping[str, float]], latency_ns: Samples, wait_ns: Samples
) -> RateTrial:
    """Cut a trial's samples into its stretches, as its file `stretches` tells. Raises ValueError where they differ."""
    stretches = []
    first = 0
    for one in told:
        last = first + int(one["answered"])
        stretches.append(
            Stretch(
                float(one["offered_per_s"]),
                int(one["planned"]),
                latency_ns[first:last],
                wait_ns[first:last],
                int(one["span_ns"]),
                int(one["ramp"]),
            )
        )
        first = last
    if first != len(latency_ns) or first != len(wait_ns):
        raise ValueError(f"the stretches hold {first} queries, the samples {len(latency_ns)} and {len(wait_ns)}")
    return RateTrial(capacity_per_s, tuple(stretches))
