"""How much of the reference's accuracy is kept, from the answers of both to the same samples. Pure.

Two systems that answer the same samples mostly answer them alike, so that only the samples on which they differ tell
them apart. With a samples that both answer rightly, b right here and wrong at the reference, c the reverse, of n:

    relative = (a + b) / (a + c)          disagreement = (b + c) / n

The 95 % interval of `relative` is the score interval for the ratio of two paired proportions (Tang, Tang and Chan,
"On tests of equivalence via non-unity relative risk for matched-pair design", Statistics in Medicine 22, 2003; the
same statistic as in Nam and Blackwelder, ibid. 21, 2002). Fagerland, Lydersen and Laake (ibid. 33, 2014) recommend
it, because it covers well on few samples and also where nothing differs: with b = c = 0 its low end is a / (a + z^2),
Wilson's interval for a of a kept. It is close to the rule of three, 1 - 3 / a (Hanley and Lippman-Hand, JAMA 249,
1983), but two-sided.

A metric that is no mean over samples (average precision, area under the curve, F1) is resampled: see `resampled`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from harness.judgement.resampling import Values, studentised_interval

Z = 1.959963984540054  # of the normal distribution, two-sided 95 %
SCORE = "95 % score interval for the ratio of paired proportions (Tang, Tang and Chan 2003)"
_HALVINGS = 60


@dataclass(frozen=True)
class Paired:
    """What a comparison on the same samples gave. `low` and `high` are a 95 % interval of `relative`."""

    value: float
    reference: float
    relative: float
    low: float
    high: float
    units: int  # what was compared one by one, or drawn anew: samples, pictures, recordings
    unit: str
    method: str
    lost: int | None  # right at the reference, wrong here; None where the metric has no right and wrong
    gained: int | None  # the reverse
    reference_right: int | None
    level: bool  # nothing on these samples tells the two apart to this one's disadvantage

    @property
    def disagreement(self) -> float | None:
        """The share of samples that only one of the two answers rightly."""
        if self.lost is None or self.gained is None:
            return None
        return (self.lost + self.gained) / self.units

    def samples_needed(self, target: float) -> int | None:
        """Return about how many samples would tell a loss of 1 - target from none, at what was observed; None: no number.

        The half width of a paired difference is z sqrt(disagreement / n) (Miettinen, Biometrics 24, 1968, without the
        square of the small difference), to be at most the margin (1 - target) reference: at 2 % disagreement and a
        margin of one point z^2 0.02 / 0.01^2 = 768. Where nothing differed, so many that the low end a / (a + z^2)
        reaches the target. A resampled interval narrows with the root of the units.
        """
        margin = 1.0 - target
        if margin <= 0.0 or self.reference <= 0.0:
            return None
        disagreement = self.disagreement
        if disagreement == 0.0 or (disagreement is None and self.level):
            share = self.reference if disagreement is not None else 1.0
            return ceil(Z * Z * target / margin / share)
        if disagreement is not None:
            return ceil(Z * Z * disagreement / (margin * self.reference) ** 2)
        return ceil(self.units * ((self.high - self.low) / 2.0 / margin) ** 2)


def compare_answers(here: Sequence[bool], there: Sequence[bool], unit: str = "samples") -> Paired:
    """Compare which of the same samples are answered rightly here and at the reference.

    Raises ValueError where they are not the same samples, or where the reference has nothing right.
    """
    if len(here) != len(there) or not here:
        raise ValueError(f"{len(here)} answers cannot be paired with {len(there)}")
    both = sum(1 for mine, its in zip(here, there, strict=True) if mine and its)
    gained, lost = sum(map(bool, here)) - both, sum(map(bool, there)) - both
    count, right = len(here), both + lost
    if right == 0:
        raise ValueError("the reference has no right answer")
    low, high = score_interval(both, gained, lost, count)
    words = f"of the reference's {right} right answers {lost} lost, {gained} gained, on {count} {unit}"
    return Paired(
        (both + gained) / count, right / count, (both + gained) / right, low, high, count, unit, f"{SCORE}: {words}",
        lost, gained, right, level=lost == 0,
    )  # fmt: skip


def resampled(here: Values, there: Values, groups: Sequence[int], unit: str) -> Paired:
    """Compare a metric that is computed over all samples at once, by drawing the same samples anew for both.

    `here` and `there` give the metric under weights of the units (see `harness.judgement.resampling`). Raises
    ValueError where the reference is not above zero.
    """
    found = studentised_interval(here, there, groups)
    count = len(groups)
    if found.width == 0.0:
        # Drawing anew shows only what is there: where nothing differs, what n units cannot show bounds the ratio.
        low, high = count / (count + Z * Z), (count + Z * Z) / count
        method = (
            f"no draw of the {count} {unit} tells the two apart; bound n / (n + z^2), as for {count} of {count} kept"
        )
    else:
        low, high = found.low, found.high
        method = f"95 % interval by the {found.name} over {count} {unit}, the same draws for both"
    return Paired(
        found.value, found.reference, found.relative, low, high, count, unit, method, None, None, None,
        level=found.width == 0.0 and found.relative >= 1.0,
    )  # fmt: skip


def score_interval(both: int, gained: int, lost: int, count: int, z: float = Z) -> tuple[float, float]:
    """Return the low and high end of (both + gained) / (both + lost); `high` is infinite where nothing bounds it."""
    right, other = both + gained, both + lost
    estimate = right / other if other else 1.0

    def beyond(ratio: float) -> float:
        return _score(both, gained, lost, count, ratio)

    low = _crossing(lambda ratio: beyond(ratio) > z, 0.0, estimate) if right else 0.0
    most = max(2.0 * estimate, 2.0)
    while beyond(most) > -z and most < 1e9:
        most *= 2.0
    return low, _crossing(lambda ratio: beyond(ratio) > -z, estimate, most) if most < 1e9 else float("inf")


def _score(both: int, gained: int, lost: int, count: int, ratio: float) -> float:
    """Return the score statistic of "the true ratio is `ratio`".

    Under that hypothesis P(gained) = ratio P(lost) + (ratio - 1) P(both); P(lost) is its maximum likelihood estimate
    there, the larger root of a quadratic, and the variance of the difference n ((1 + ratio) P(lost) + (ratio - 1)
    P(not both wrong)).
    """
    right, other = both + gained, both + lost
    some = both + gained + lost
    square = count * (1.0 + ratio)
    linear = other * ratio * ratio - (right + 2 * lost)
    constant = lost * (1.0 - ratio) * some / count
    root = (-linear + sqrt(max(linear * linear - 4.0 * square * constant, 0.0))) / (2.0 * square)
    variance = count * ((1.0 + ratio) * root + some * (ratio - 1.0) / count)
    difference = right - ratio * other
    if variance <= 0.0:
        return 0.0 if difference == 0.0 else float("inf") if difference > 0 else float("-inf")
    return difference / sqrt(variance)


def _crossing(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return where `holds` turns from true to false between `low` and `high`."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return (low + high) / 2.0
