"""When to stop: only at planned looks, with a shared error, and with the reason said."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.judgement.intervals import median_over_trials
from harness.judgement.stopping import Plan, decide

# On a busy machine an example may wait for its turn; how long it takes is not what is tested.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
PLAN = Plan(looks=(8, 12, 16, 24), half_width=0.05)
STEADY = [10.0 + 0.01 * number for number in range(24)]
WILD = [10.0 * (1 + number % 8) for number in range(24)]


def test_a_narrow_interval_ends_it_at_the_first_look() -> None:
    decision = decide(STEADY[:8], PLAN)
    assert (decision.stop, decision.why) == (True, "narrow_enough")
    assert decision.interval is not None
    assert (decision.interval.low, decision.interval.high) == (10.0, 10.07)  # 2 / 256 is less than a quarter of 5 %
    assert decision.sentence == (
        "Narrow enough: the interval over 8 trials is within 0.3% of the median; 5.0% was asked for."
    )


def test_nobody_looks_between_looks_however_narrow_it_is() -> None:
    decision = decide(STEADY[:9], PLAN)
    assert (decision.stop, decision.why, decision.interval) == (False, "between_looks", None)
    assert decision.sentence == "9 trials; the next look is at 12."


def test_a_wide_interval_goes_on_until_the_last_look() -> None:
    assert [decide(WILD[:count], PLAN).why for count in (8, 12, 16)] == ["too_wide"] * 3
    last = decide(WILD, PLAN)
    assert (last.stop, last.why) == (True, "budget_spent")
    assert last.sentence.endswith("5.0% was asked for; no further look was planned.")


def test_a_spent_budget_ends_it_anywhere_and_says_so() -> None:
    decision = decide(WILD[:10], PLAN, budget_spent=True)
    assert (decision.stop, decision.why) == (True, "budget_spent")
    assert decision.interval is not None and decision.interval.kind == "interval"
    assert decision.sentence.endswith("the budget is spent.")


def test_a_budget_for_few_trials_leaves_a_range() -> None:
    decision = decide(STEADY[:3], PLAN, budget_spent=True)
    assert (decision.stop, decision.why) == (True, "budget_spent")
    assert decision.interval is not None and decision.interval.kind == "range"
    assert decision.sentence == "3 trials give a range, not an interval; the budget is spent."


def test_an_early_look_without_an_interval_goes_on() -> None:
    decision = decide(STEADY[:6], Plan(looks=(6, 12)))  # half of 5 % each: 6 trials reach 1 - 2 / 64 only
    assert (decision.stop, decision.why) == (False, "too_few_trials")


@unhurried
@given(st.lists(st.integers(2, 40), min_size=1, max_size=6, unique=True), st.data())
def test_all_looks_together_err_no_more_often_than_allowed(counts: list[int], data: st.DataObject) -> None:
    looks = tuple(sorted(counts))
    plan = Plan(looks=looks, confidence=0.95)
    end = data.draw(st.integers(1, looks[-1]))  # where the budget ends it
    made = [(count, plan.confidence_at(count, last=False)) for count in looks if count < end]
    made.append((end, plan.confidence_at(end, last=True)))
    assert sum(misses(count, confidence) for count, confidence in made) <= 0.05 + 1e-12


def misses(count: int, confidence: float) -> float:
    """How often the median lies outside the interval that is made at this confidence, by the binomial law itself."""
    interval = median_over_trials(list(range(1, count + 1)), confidence)
    if interval.kind != "interval" or interval.low is None:
        return 0.0
    outside = round(interval.low) - 1  # so many are left out on each side
    return 2 * sum(comb(count, number) for number in range(outside + 1)) / 2**count


def test_what_a_look_does_not_use_goes_to_the_next_one() -> None:
    # By hand: the whole range of 8 misses in 2 / 256 = 0.78 %, of 5 % there are 4.22 % left; leaving out two on each side
    # of 12 misses in 2 (1 + 12 + 66) / 4096 = 3.86 %.
    plan = Plan(looks=(8, 12))
    assert plan.confidence_at(8, last=False) == pytest.approx(0.975)
    assert plan.confidence_at(12, last=True) == pytest.approx(0.95 + 2 / 256)
    interval = decide([float(number) for number in range(1, 13)], plan).interval
    assert interval is not None
    assert (interval.low, interval.high) == (3.0, 10.0)


@pytest.mark.parametrize("looks", [(), (0, 5), (8, 8), (12, 8)])
def test_looks_must_rise(looks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="rise"):
        Plan(looks=looks)


def test_more_trials_than_planned_or_none_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="more than the last look"):
        decide([1.0] * 25, PLAN)
    with pytest.raises(ValueError, match="no trial"):
        decide([], PLAN)
