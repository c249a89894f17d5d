"""Intervals that assume nothing about how latencies are distributed: they lie between order statistics. Pure.

Of n independent samples the number at most the true percentile q is binomial (n, p), whatever the distribution. So the
l-th smallest lies above q with probability P(B <= l - 1), and the u-th smallest below it with probability P(B >= u) at most
(David and Nagaraja, "Order Statistics", 3rd ed. 2003, section 7.1; Hahn, Meeker and Escobar, "Statistical Intervals", 2nd
ed. 2017, section 5.2). Both tails get (1 - confidence) / 2, l >= 1 and u <= n. From the median on it is the upper one that
fails first: P(B >= n) = p^n <= 0.025 takes 368 samples for p99, 3688 for p99.9 and 6 for a median at 95 %.

Ranks are one-based here, as in the books. The point itself is LoadGen's: the zero-based index floor(n p).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness.judgement.effective_size import effective_size

CONFIDENCE = 0.95
MEDIAN = 500  # per mille
# Beyond this many standard deviations (and some, for skewed tails) a binomial probability is below 1e-16.
REACH = 10


@dataclass(frozen=True)
class Interval:
    """An estimate and how far it may be off.

    `interval`: covers the true value with at least the confidence asked for; `confidence` is what it reaches for a
    continuous distribution. `range`: smallest and largest only, nothing is claimed. `none`: there are no bounds. `reason`
    says why it is not an interval.
    """

    value: float
    low: float | None
    high: float | None
    kind: Literal["interval", "range", "none"]
    count: int
    confidence: float | None = None
    independent: int | None = None  # as many independent samples as the interval was made for
    reason: str | None = None

    @property
    def relative_half_width(self) -> float | None:
        """The farther bound's distance from the value, as a share of the value; None without an interval."""
        if self.kind != "interval" or self.low is None or self.high is None or self.value <= 0:
            return None
        return max(self.high - self.value, self.value - self.low) / self.value


def least_count(per_mille: int, confidence: float = CONFIDENCE) -> int:
    """Return the least number of independent samples with a two-sided interval: max(p, 1 - p)^n <= (1 - confidence) / 2."""
    p, tail = per_mille / 1000, (1 - confidence) / 2
    larger = max(p, 1 - p)
    count = max(1, int(np.log(tail) / np.log(larger)))
    while larger**count > tail:
        count += 1
    return count


@lru_cache(maxsize=256)
def ranks(count: int, per_mille: int, confidence: float = CONFIDENCE) -> tuple[int, int] | None:
    """Return the one-based ranks (l, u) of the narrowest interval with equal tails; None where `count` has none."""
    tail = (1 - confidence) / 2
    first, mass = _binomial(count, per_mille)
    below = np.cumsum(mass)  # P(B <= first + i)
    above = np.cumsum(mass[::-1])[::-1]  # P(B >= first + i)
    lower = first + int(np.searchsorted(below, tail, side="right"))  # the largest l with P(B <= l - 1) <= tail
    fitting = np.flatnonzero(above <= tail)
    upper = first + int(fitting[0]) if len(fitting) else first + len(mass)
    return (lower, upper) if lower >= 1 and upper <= count else None


def coverage(count: int, per_mille: int, lower: int, upper: int) -> float:
    """Return the probability that the percentile lies between the one-based ranks: P(l <= B <= u - 1)."""
    first, mass = _binomial(count, per_mille)
    return min(1.0, float(mass[max(0, lower - first) : max(0, upper - first)].sum()))


def percentile_interval(
    samples: npt.ArrayLike, per_mille: int, confidence: float = CONFIDENCE, independent: int | None = None
) -> Interval:
    """Return a percentile of one trial with its interval. `samples`, not empty, are in the order of time.

    `independent` is the number of independent samples they are worth, by default as `effective_size` estimates it: at the
    percentile, or at the median where that depends more, because a few samples beyond a high percentile cannot show how
    they cluster (in simulation, p99 of 1000 samples of an AR(1) series of 0.9: its own estimate alone covered 89 %). The
    ranks are those of that number, spread over all samples and rounded outwards, so that dependent samples widen the
    interval. It speaks of this one process only; what changes from process to process is not in it.
    """
    values = np.asarray(samples)
    ordered = np.sort(values)
    count = len(ordered)
    point = ordered[count * per_mille // 1000]
    if independent is None:
        independent = effective_size(values, point, ordered[count * MEDIAN // 1000])
    worth = min(count, independent)
    found = ranks(worth, per_mille, confidence)
    if found is None:
        needed = least_count(per_mille, confidence)
        reason = f"{count} samples are worth {worth} independent ones; an interval takes {needed}"
        return Interval(float(point), None, None, "none", count, independent=worth, reason=reason)
    lower, upper = found
    low = ordered[(lower - 1) * count // worth]
    high = ordered[-(-upper * count // worth) - 1]
    reached = coverage(worth, per_mille, lower, upper)
    return Interval(float(point), float(low), float(high), "interval", count, reached, worth)


def median_over_trials(
    values: Sequence[float], confidence: float = CONFIDENCE, centres: Sequence[float | None] | None = None
) -> Interval:
    """Return the median over trials (fresh processes, at least one) with its interval, or their range below six trials.

    Trials are what a repetition draws anew, so this interval holds the differences between processes, which no number of
    samples inside one of them shows. `centres` are what the bounds come from where a trial's value lies off the truth (see
    `percentile_over_trials`); the bounds then hold the value. A centre that is None, of a trial too short to have one,
    leaves a range.
    """
    ordered = sorted(values)
    count = len(ordered)
    middle = float(median(ordered))
    found = ranks(count, MEDIAN, confidence)
    known = ordered if centres is None else sorted(centre for centre in centres if centre is not None)
    if found is None or len(known) < count:
        needed = f"{count} trials; an interval takes {least_count(MEDIAN, confidence)}"
        reason = needed if found is None else f"{count - len(known)} of {count} trials are too short for an interval"
        return Interval(middle, float(ordered[0]), float(ordered[-1]), "range", count, reason=reason)
    lower, upper = found
    low, high = min(float(known[lower - 1]), middle), max(float(known[upper - 1]), middle)
    return Interval(middle, low, high, "interval", count, coverage(count, MEDIAN, lower, upper), count)


def percentile_over_trials(
    ordered: Sequence[npt.NDArray[np.int64]], per_mille: int, confidence: float = CONFIDENCE
) -> Interval:
    """Return the median over trials of each one's own percentile, as `median_over_trials`; samples are sorted, not empty.

    LoadGen's point lies off in a short trial: at 100 samples p99 is the largest, which is above the true p99 in 63 of 100
    trials, and many trials make an interval narrow around the wrong place (in simulation 24 trials of 120 samples covered
    74 %, of 10 samples for a median 85 %). So the bounds come from each trial's median-unbiased percentile, and hold the
    value beside them. With that the same simulations cover 93 to 98 %.
    """
    points = [float(trial[len(trial) * per_mille // 1000]) for trial in ordered]
    return median_over_trials(points, confidence, [median_unbiased(trial, per_mille) for trial in ordered])


def median_unbiased(ordered: npt.NDArray[np.int64], per_mille: int) -> float:
    """Return a percentile of sorted samples that lies above and below the true one equally often, nearly whatever the
    distribution.

    Between the two sorted samples at one-based place p (n + 1/3) + 1/3 (Hyndman and Fan, "Sample quantiles in statistical
    packages", American Statistician 50, 1996, definition 8).
    """
    place = per_mille * (3 * len(ordered) + 1) - 2000  # zero-based and in parts of 3000, so that nothing is rounded
    last = len(ordered) - 1
    first, part = place // 3000, place % 3000 / 3000
    below, above = float(ordered[min(max(first, 0), last)]), float(ordered[min(max(first + 1, 0), last)])
    return below + (above - below) * part


def ratio_of_intervals(new: Interval, old: Interval) -> Interval:
    """Return new / old of two positive, independent estimates, with an interval where both have one.

    If both intervals hold, the ratio lies within (new.low / old.high, new.high / old.low); by Bonferroni's inequality they
    both hold with 1 - (1 - c_new) - (1 - c_old). No distribution, no equal spread is assumed; the price is some width.
    """
    value = new.value / old.value
    count = min(new.count, old.count)
    bounds = (new.low, new.high, old.low, old.high)
    if new.kind != "interval" or old.kind != "interval" or None in bounds:
        reason = "; ".join(side.reason for side in (new, old) if side.reason)
        return Interval(value, None, None, "none", count, reason=reason or "one side has no interval")
    assert new.low is not None and new.high is not None and old.low is not None and old.high is not None
    reached = 1 - (1 - (new.confidence or 0)) - (1 - (old.confidence or 0))
    return Interval(value, new.low / old.high, new.high / old.low, "interval", count, max(0.0, reached))


def ratio_of_medians(new: Sequence[float], old: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the ratio of two medians over trials, each at half the error; at 95 % both sides take seven trials."""
    each = 1 - (1 - confidence) / 2
    return ratio_of_intervals(median_over_trials(new, each), median_over_trials(old, each))


def _binomial(count: int, per_mille: int) -> tuple[int, npt.NDArray[np.float64]]:
    """Return the first number of successes and the probabilities from there on, without those below 1e-16.

    Built outwards from the mode by the ratio of neighbours and then made to sum to one, which needs no factorials and is
    exact to rounding for any n.
    """
    p = per_mille / 1000
    mode = min(count, int((count + 1) * p))
    reach = int(REACH * np.sqrt(count * p * (1 - p))) + 50
    first, last = max(0, mode - reach), min(count, mode + reach)
    up = np.arange(mode, last)
    down = np.arange(mode, first, -1)
    rising = np.cumprod((count - up) / (up + 1) * (p / (1 - p)))
    falling = np.cumprod(down / (count - down + 1) * ((1 - p) / p))
    mass = np.concatenate([falling[::-1], [1.0], rising])
    return first, mass / mass.sum()
