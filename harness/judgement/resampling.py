"""The interval of a ratio of two values of one metric over the same units, by the bootstrap. Pure, with a fixed seed.

A metric is given as its value under weights of the units: with weight 2 a picture counts as if it were there twice. Each
draw gives every unit the number of times it was drawn with replacement, within its group (kinds that must both be there),
the same for both sides. Of the logarithm of the ratio two intervals are made, and the wider end is taken on each side:

- studentised: in every draw divided by its own infinitesimal jackknife error (Efron and Tibshirani, "An Introduction to the
  Bootstrap", 1993, sections 12.5 and 22.6; Hall, Annals of Statistics 16, 1988). It follows skewed losses.
- symmetric: the sample's own jackknife error (for an area under the curve it is that of DeLong et al., Biometrics 44, 1988)
  times Student's quantile. It holds where a few units alone make the difference, which drawing them anew takes too lightly.

Both use the tails of Student's t, widened as Hesterberg (American Statistician 69, 2015) does for few units. Either alone
covered less than 90 % in some laws of tests/unit/statistics/test_paired.py. What occurs less than once in so many units is
seen by neither: where a metric has right and wrong answers, `harness.judgement.paired` counts them instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Values = Callable[[FloatArray], FloatArray]  # weights [draws, units] -> the metric of each draw

DRAWS = 800
SEED = 20261201
STEP = 1e-4  # of the numerical derivative by a unit's weight
MOST_UNITS = 200  # beyond, the percentile method is as good and the errors of each draw would take long
BLOCK = 2_000_000  # numbers in memory at once
STUDENTISED = "paired bootstrap, the wider of studentised and symmetric,"
PERCENTILE = "paired bootstrap (percentiles)"


@dataclass(frozen=True)
class Interval:
    """The ratio of a metric's value to its reference, with a 95 % interval."""

    value: float
    reference: float
    relative: float
    low: float
    high: float
    name: str

    @property
    def width(self) -> float:
        return self.high - self.low


def studentised_interval(here: Values, there: Values, groups: Sequence[int]) -> Interval:
    """Return the interval of here / there. Raises ValueError where the reference is not above zero."""
    kinds = np.asarray(groups, dtype=np.int64)
    count = len(kinds)
    whole = np.ones((1, count))
    value, reference = float(here(whole)[0]), float(there(whole)[0])
    if reference <= 0.0:
        raise ValueError("the reference's value is not above zero")
    ratio = value / reference
    if value <= 0.0:
        return Interval(value, reference, 0.0, 0.0, 0.0, PERCENTILE)

    def logarithm(weights: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(here(weights)) - np.log(there(weights))

    draws = drawn(kinds)
    found = logarithm(draws)
    usable = np.isfinite(found)
    draws, found = draws[usable], found[usable]
    centre = float(logarithm(whole)[0])
    if not len(found) or float(np.ptp(found)) == 0.0 == found[0] - centre:
        return Interval(value, reference, ratio, ratio, ratio, STUDENTISED)
    tail = student_tail(count - 1)
    error = float(_errors(logarithm, whole, kinds)[0]) if count <= MOST_UNITS else 0.0
    if error > 0.0:
        low, high = _wider(found - centre, _errors(logarithm, draws, kinds), error, tail, kinds)
        return Interval(value, reference, ratio, float(np.exp(centre + low)), float(np.exp(centre + high)), STUDENTISED)
    low, high = np.quantile(found, [tail, 1.0 - tail])
    return Interval(value, reference, ratio, float(np.exp(low)), float(np.exp(high)), PERCENTILE)


def _wider(
    shifts: FloatArray, errors: FloatArray, error: float, tail: float, groups: npt.NDArray[np.int64]
) -> tuple[float, float]:
    """Return the ends of the interval, seen from the estimate."""
    fine = errors > error * 1e-6  # a draw that happens to hold no difference has no error to divide by
    ends = np.quantile(shifts[fine] / errors[fine], [1.0 - tail, tail]) if fine.any() else np.zeros(2)
    smallest = int(np.unique(groups, return_counts=True)[1].min())
    symmetric = -NormalDist().inv_cdf(tail) * (smallest / max(smallest - 1, 1)) ** 0.5
    return -max(float(ends[0]), symmetric) * error, -min(float(ends[1]), -symmetric) * error


def drawn(groups: npt.NDArray[np.int64], draws: int = DRAWS) -> FloatArray:
    """Return weights [draws, units]: how often each unit was drawn, within its group, by the fixed seed."""
    random = np.random.RandomState(SEED)
    weights = np.zeros((draws, len(groups)))
    for kind in np.unique(groups):
        members = np.flatnonzero(groups == kind)
        weights[:, members] = random.multinomial(len(members), np.full(len(members), 1.0 / len(members)), size=draws)
    return weights


def student_tail(degrees: int) -> float:
    """Return the normal tail that lies as far out as Student's 2.5 %, widened by sqrt(n / (n - 1)) (Hesterberg 2015)."""
    count = degrees + 1
    # Cornish and Fisher's expansion of Student's quantile: within 0.2 % from 10 degrees on.
    z = NormalDist().inv_cdf(0.975)
    student = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    return NormalDist().cdf(-student * (count / degrees) ** 0.5)


def _errors(logarithm: Values, weights: FloatArray, groups: npt.NDArray[np.int64]) -> FloatArray:
    """Return the infinitesimal jackknife's standard error under each row of weights.

    The influence of a unit is the derivative as its group's weight moves onto it.
    """
    rows, count = weights.shape
    errors = np.zeros(rows)
    block = max(1, BLOCK // (count * count))
    sizes = np.array([np.count_nonzero(groups == kind) for kind in groups], dtype=np.float64)
    same = (groups[:, None] == groups[None, :]).astype(np.float64)  # [unit, other unit]
    for start in range(0, rows, block):
        some = weights[start : start + block]
        moved = some[:, None, :] * (1.0 - STEP * same)[None] + STEP * np.diag(sizes)[None]
        there = logarithm(moved.reshape(-1, count)).reshape(len(some), count)
        influence = (there - logarithm(some)[:, None]) / STEP
        influence = np.where(np.isfinite(influence), influence, 0.0)
        errors[start : start + block] = np.sqrt((some * influence**2 / sizes**2).sum(axis=1))
    return errors
