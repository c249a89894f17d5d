"""The order of trials: rounds, shuffled by the seed, accuracy last."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from harness.runner.cases import PlannedCase
from harness.runner.runner import ordered_trials


def case(name: str, timing: int, accuracy: bool = False) -> PlannedCase:
    kinds = ["timing"] * timing + ["accuracy"] * accuracy
    trials = tuple(SimpleNamespace(key=f"{name}{n}", job=SimpleNamespace(kind=kind)) for n, kind in enumerate(kinds))
    return cast(PlannedCase, SimpleNamespace(trials=trials))


CASES = [case(name, 3, accuracy=name == "a") for name in "abcdefgh"]


def keys(seed: int, cases: Any = CASES) -> list[str]:
    return [trial.key for _, trial in ordered_trials(cases, seed)]


def test_every_trial_once_in_rounds_with_accuracy_last() -> None:
    order = keys(1)
    assert sorted(order) == sorted(trial.key for one in CASES for trial in one.trials)
    rounds = [order[0:8], order[8:16], order[16:24]]
    assert [{key[1] for key in one} for one in rounds] == [{"0"}, {"1"}, {"2"}]
    assert order[24:] == ["a3"]


def test_the_seed_decides_the_order_and_rounds_differ() -> None:
    assert keys(1) == keys(1)
    assert keys(1) != keys(2)
    order = [key[0] for key in keys(1)]
    assert order[0:8] != order[8:16]


def test_cases_with_fewer_trials_take_part_in_the_first_rounds() -> None:
    assert keys(1, [case("a", 1), case("b", 2)])[2:] == ["b1"]
