"""When to stop: only at planned looks, with a shared error, and with the reason said."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
def test_all_looks_together_spend_no_more_than_the_error_allowed(counts: list[int], data: st.DataObject) -> None:
    looks = tuple(sorted(counts))
    plan = Plan(looks=looks, confidence=0.95)
    end = data.draw(st.integers(1, looks[-1]))  # where the budget ends it
    spent = [1 - plan.confidence_at(count, last=False) for count in looks if count < end]
    assert sum(spent) + 1 - plan.confidence_at(end, last=True) == pytest.approx(0.05)


@pytest.mark.parametrize("looks", [(), (0, 5), (8, 8), (12, 8)])
def test_looks_must_rise(looks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="rise"):
        Plan(looks=looks)


def test_more_trials_than_planned_or_none_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="more than the last look"):
        decide([1.0] * 25, PLAN)
    with pytest.raises(ValueError, match="no trial"):
        decide([], PLAN)
