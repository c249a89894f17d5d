"""Ratios are taken within rounds, so that load which both sides share falls out."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import main
from benchmarks.overhead import bare, ours
from benchmarks.rounds import Comparison, Goal, compare, interleave, line


def test_sides_take_turns_in_going_first() -> None:
    order: list[str] = []

    def side(name: str) -> dict[str, float]:
        order.append(name)
        return {"p50": 1.0 if name == "ours" else 2.0}

    found = interleave(3, lambda: side("ours"), lambda: side("peer"))
    assert order == ["ours", "peer", "peer", "ours", "ours", "peer"]
    assert found == [({"p50": 1.0}, {"p50": 2.0})] * 3


def test_the_ratio_is_the_median_of_the_rounds_and_not_of_the_sides() -> None:
    # The machine got three times slower in the middle of round 2; by medians alone ours would look 1.5 times as slow.
    rounds = [({"p50": 10.0}, {"p50": 10.0}), ({"p50": 30.0}, {"p50": 20.0}), ({"p50": 60.0}, {"p50": 60.0})]
    found = compare(rounds, "p50")
    assert found == Comparison(ours=30.0, peer=20.0, ratio=1.0, low=1.0, high=1.25, difference=0.0, rounds=3)


def test_one_round_is_its_own_range() -> None:
    found = compare([({"p50": 3.0}, {"p50": 2.0})], "p50")
    assert (found.ratio, found.low, found.high) == (1.5, 1.5, 1.5)


@pytest.mark.parametrize(
    ("goal", "ratio", "difference", "met"),
    [
        (Goal(within=0.02), 1.015, 99, True),
        (Goal(within=0.02), 0.97, -99, False),
        (Goal(within=0.02, or_difference=10), 1.1, 10, True),
        (Goal(within=0.02, or_difference=10), 1.1, -10.5, False),
        (Goal(times_less=5), 0.2, -1, True),
        (Goal(times_less=5), 0.21, -1, False),
    ],
)
def test_goals(goal: Goal, ratio: float, difference: float, met: bool) -> None:
    assert goal.met(ratio, difference) is met


def test_a_goal_is_said_to_hold_in_this_run() -> None:
    found = Comparison(5100, 5000, 1.02, 1.0, 1.03, 100, 5)
    assert line("p50", "us", found, Goal(0.01, 10)).endswith("goal within 1% or 10 us: not met in this run")


def test_the_null_session_goes_through_the_real_scenario() -> None:
    assert 0 < ours(200)["p50"] <= ours(200)["p99"]
    assert bare(200)["min"] > 0


def test_an_unknown_name_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["speed"])
    said = capsys.readouterr().err
    assert all(name in said for name in ("start_up", "overhead", "percentiles", "openvino_peer", "tflite_peer"))
