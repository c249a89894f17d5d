"""Rounds over all cases with simulated outcomes: no process is started, and nothing but outcomes decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from harness.judgement.stopping import decide
from harness.runner.cases import PlannedCase, PlannedTrial, case_of
from harness.runner.plan import Intent
from harness.runner.rounds import Rounds, measuring
from harness.runner.trial_process import Outcome
from harness.suites import Group
from harness.worker.job import Job
from harness.workloads.definition import Workload

Play = Callable[[PlannedCase, PlannedTrial], Outcome]


def case(name: str, least: int, most: int = 0, extra: Sequence[str] = (), half_width: float = 0.05) -> PlannedCase:
    group = Group("offline", (name,), {}, trials=least, max_trials=most or None, half_width=half_width)
    workload = Workload(name, name, name, "image_classification", name)
    intent = Intent(workload, "onnxruntime", "cpu", "offline", "fp32", "fp32", 1, 1, None, 0, group)
    kinds = ["timing"] * group.most_trials + list(extra)
    trials = tuple(
        PlannedTrial(f"{name}{n}", Job(trial_id="", kind=kind, backend="onnxruntime", out_dir="", timeout_s=1))
        for n, kind in enumerate(kinds)
    )
    return PlannedCase(intent, case_of(intent, None, None), name, None, trials)


def answered(rate: float, elapsed_s: float = 1.0) -> Outcome:
    return Outcome("ok", None, {"throughput_per_s": rate}, elapsed_s=elapsed_s)


def played(cases: Sequence[PlannedCase], play: Play, seed: int = 1, budget_s: float | None = None) -> list[str]:
    """The keys of all trials in the order in which they come."""
    rounds = Rounds(cases, seed, budget_s)
    order = []
    for one, trial in rounds:
        order.append(trial.key)
        rounds.record(one, trial, play(one, trial))
    return order


def steady(one: PlannedCase, trial: PlannedTrial) -> Outcome:
    return answered(100.0)


CASES = [case(name, 3, extra=("accuracy",) * (name == "a")) for name in "abcdefgh"]


def test_every_trial_once_in_rounds_with_accuracy_after_the_first() -> None:
    order = played(CASES, steady)
    assert sorted(order) == sorted(trial.key for one in CASES for trial in one.trials)
    rounds = [order[0:8], order[9:17], order[17:25]]
    assert [{key[1] for key in one} for one in rounds] == [{"0"}, {"1"}, {"2"}]
    assert order[8] == "a3"


def test_the_seed_decides_the_order_and_rounds_differ() -> None:
    assert played(CASES, steady) == played(CASES, steady)
    assert played(CASES, steady) != played(CASES, steady, seed=2)
    order = [key[0] for key in played(CASES, steady)]
    assert order[0:8] != order[9:17]


def test_energy_comes_last() -> None:
    order = played([case("a", 2, extra=("energy", "placement")), case("b", 2)], steady)
    assert order[2:3] == ["a3"] and order[-1] == "a2"


def test_a_case_that_is_narrow_enough_leaves_and_the_others_go_on() -> None:
    def play(one: PlannedCase, trial: PlannedTrial) -> Outcome:
        number = int(trial.key[1:])
        return answered(100.0 if trial.key[0] == "a" else 100.0 * (1 + number % 8))

    counts = Counter(key[0] for key in played([case("a", 8, 24), case("b", 8, 24)], play))
    assert counts == {"a": 8, "b": 24}


def test_a_case_that_failed_leaves_at_once() -> None:
    def play(one: PlannedCase, trial: PlannedTrial) -> Outcome:
        return Outcome("failed", "It crashed.") if trial.key == "a0" else answered(1.0)

    assert Counter(key[0] for key in played([case("a", 5), case("b", 5)], play)) == {"a": 1, "b": 5}


def test_trials_without_a_figure_of_their_own_are_a_fixed_number() -> None:
    def play(one: PlannedCase, trial: PlannedTrial) -> Outcome:
        return Outcome("ok", None, {}, elapsed_s=1.0)  # a curve, say

    assert len(played([case("a", 3)], play)) == 3


def test_a_budget_ends_all_cases_at_the_last_finished_round() -> None:
    # Four cases of one second each: four seconds a round, so that the third would end at twelve.
    rounds = Rounds([case(name, 5) for name in "abcd"], 1, budget_s=11.0)
    keys = []
    for one, trial in rounds:
        keys.append(trial.key)
        rounds.record(one, trial, answered(1.0))
    assert Counter(key[0] for key in keys) == {"a": 2, "b": 2, "c": 2, "d": 2}
    assert rounds.budget_spent


def test_the_first_round_is_played_whatever_the_budget() -> None:
    assert len(played([case("a", 5), case("b", 5)], steady, budget_s=1.0)) == 2


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[PlannedCase], dict[str, Outcome], float | None]:
    cases = []
    for name in "abcd"[: draw(st.integers(1, 4))]:
        least = draw(st.integers(1, 9))
        most = draw(st.sampled_from([0, least + 1, least + 6, 24]))
        cases.append(case(name, least, max(most, least) if most else 0, half_width=draw(st.sampled_from([0.01, 0.2]))))
    outcomes = {}
    for one in cases:
        scale = draw(st.floats(0, 0.5))
        for trial in one.trials:
            rate = 100 * (1 + scale * draw(st.floats(-1, 1)))
            failed = draw(st.integers(0, 30)) == 0
            outcomes[trial.key] = Outcome("failed", "x", elapsed_s=1.0) if failed else answered(rate, 1.0)
    return cases, outcomes, draw(st.one_of(st.none(), st.floats(1, 60)))


@given(runs(), st.integers(0, 5))
def test_rounds_are_whole_and_a_case_ends_for_a_reason(
    run: tuple[list[PlannedCase], dict[str, Outcome], float | None], seed: int
) -> None:
    cases, outcomes, budget_s = run
    rounds = Rounds(cases, seed, budget_s)
    keys: list[str] = []
    for one, trial in rounds:
        assert rounds.done <= rounds.expected
        keys.append(trial.key)
        rounds.record(one, trial, outcomes[trial.key])
    assert len(keys) == len(set(keys))
    numbers = [int(key[1:]) for key in keys]
    assert numbers == sorted(numbers)  # round after round
    for one in cases:
        ran = [outcomes[trial.key] for trial in measuring(one) if trial.key in keys]
        group = one.intent.group
        failed = [outcome for outcome in ran if outcome.status != "ok"]
        assert 1 <= len(ran) <= group.most_trials
        if failed:
            assert ran[-1] is failed[0]
        elif not rounds.budget_spent:
            assert len(ran) >= group.trials
            values = [float(outcome.document["throughput_per_s"]) for outcome in ran]
            assert group.fixed or decide(values, group.stopping).stop
    if budget_s is not None and len(keys) > len(cases):
        assert len(keys) <= budget_s  # a second each, and no round is begun that would not end in time


@given(runs(), st.integers(0, 100))
def test_a_resumed_run_comes_to_the_same_decisions(
    run: tuple[list[PlannedCase], dict[str, Outcome], float | None], stop: int
) -> None:
    cases, outcomes, budget_s = run
    whole = played(cases, lambda one, trial: outcomes[trial.key], budget_s=budget_s)
    kept: dict[str, Outcome] = {}
    rounds = Rounds(cases, 1, budget_s)
    for number, (one, trial) in enumerate(rounds):  # killed after `stop` trials
        if number == stop:
            break
        kept[trial.key] = outcomes[trial.key]
        rounds.record(one, trial, outcomes[trial.key])
    again: list[str] = []

    def resumed(one: PlannedCase, trial: PlannedTrial) -> Outcome:
        again.append(trial.key)
        return kept.get(trial.key, outcomes[trial.key])

    assert played(cases, resumed, budget_s=budget_s) == whole == again
