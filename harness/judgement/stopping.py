"""When a case has been repeated often enough. Pure.

Looking after every trial and stopping at the first narrow interval picks lucky moments: the interval then covers less than
it says. So looks happen at trial counts that are fixed beforehand, and the allowed error is shared among them (Bonferroni's
inequality; "repeated confidence intervals" in Jennison and Turnbull, "Group Sequential Methods", 2000, chapter 9). The
intervals of all looks hold together with the confidence asked for, so it does not matter which is the last, nor why.

Ranks are whole, so an interval errs less often than it may: the whole range of eight trials misses the median in 2 / 256 =
0.8 % of cases, where a quarter of 5 % was its share. What a look does not use goes to the next one. The last look takes all
that is left, also where the budget makes it the last. Which look that is may depend on the clock, but not on the measured
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from harness.judgement.intervals import CONFIDENCE, MEDIAN, Interval, coverage, median_over_trials, ranks

# The first count whose interval exists when the error is shared among four looks, then about half as many again each time.
DEFAULT_LOOKS = (8, 12, 16, 24)
DEFAULT_HALF_WIDTH = 0.05

Why = Literal["narrow_enough", "budget_spent", "between_looks", "too_wide", "too_few_trials"]


@dataclass(frozen=True)
class Plan:
    """Trial counts at which to look, rising; the confidence of all looks together; the half-width to reach, as a share."""

    looks: tuple[int, ...] = DEFAULT_LOOKS
    confidence: float = CONFIDENCE
    half_width: float = DEFAULT_HALF_WIDTH

    def __post_init__(self) -> None:
        if not self.looks or self.looks[0] < 1 or any(later <= earlier for earlier, later in pairwise(self.looks)):
            raise ValueError(f"Looks must be trial counts that rise, not {self.looks}.")
        if not 0 < self.confidence < 1:
            raise ValueError(f"A confidence lies between 0 and 1; {self.confidence} does not.")

    def confidence_at(self, trials: int, last: bool) -> float:
        """Return the confidence of the look after so many trials: one less the error that it may use.

        After k looks of n, k / n of the error may have been used in all, at the last look the whole of it.
        """
        error = 1 - self.confidence
        used = 0.0
        before = [count for count in self.looks if count < trials]
        for number, count in enumerate(before, 1):
            found = ranks(count, MEDIAN, 1 - (error * number / len(self.looks) - used))
            used += 1 - coverage(count, MEDIAN, *found) if found is not None else 0.0
        allowed = error if last else error * (len(before) + 1) / len(self.looks)
        return 1 - (allowed - used)


@dataclass(frozen=True)
class Decision:
    """Whether to stop, why, and what is known at this look. `interval` is None between looks: nobody looks there."""

    stop: bool
    why: Why
    interval: Interval | None
    sentence: str


def decide(
    values: Sequence[float],
    plan: Plan,
    budget_spent: bool = False,
    centres: Sequence[float | None] | None = None,
) -> Decision:
    """Decide after so many trials. `values` are each trial's own target percentile, in the order of trials, and `centres`
    what the bounds of their median come from, where that is something else: as in the interval that the record shows.

    The trials end when the interval of their median is narrow enough, when the budget (time, given by the caller, or the
    last look) is spent, and at no other moment. Raises ValueError without a value.
    """
    count = len(values)
    if not count:
        raise ValueError("There is no trial to decide on.")
    if count > plan.looks[-1]:
        raise ValueError(f"{count} trials are more than the last look at {plan.looks[-1]}.")
    last = budget_spent or count == plan.looks[-1]
    if not last and count not in plan.looks:
        following = next(look for look in plan.looks if look > count)
        return Decision(False, "between_looks", None, f"{count} trials; the next look is at {following}.")
    interval = median_over_trials(values, plan.confidence_at(count, last), centres)
    width = interval.relative_half_width
    if width is None:
        told = f"{count} trials give a range, not an interval"
        return Decision(
            last, "budget_spent" if last else "too_few_trials", interval, f"{told}{_budget(last, budget_spent)}."
        )
    told = f"the interval over {count} trials is within {width:.1%} of the median"
    if width <= plan.half_width:
        return Decision(True, "narrow_enough", interval, f"Narrow enough: {told}; {plan.half_width:.1%} was asked for.")
    sentence = f"{told[0].upper()}{told[1:]}, {plan.half_width:.1%} was asked for{_budget(last, budget_spent)}."
    return Decision(last, "budget_spent" if last else "too_wide", interval, sentence)


def _budget(last: bool, budget_spent: bool) -> str:
    if not last:
        return ""
    return "; the budget is spent" if budget_spent else "; no further look was planned"
