"""A cold start's first answer stands with the interval that its record holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from db.queries import ResultRow
from harness.judgement.figures import figures_of, spread_of_metric
from harness.judgement.side_by_side import side_by_side
from harness.judgement.spread import open_spread

MakeRow = Callable[..., ResultRow]
PARTS = {"process": 40.0, "import": 100.0, "load": 30.0, "compile": None, "first_inference": 5.0}
METHOD = "sum of the parts, 95 % interval of the median over 6 trials, 1 unit measured"


def start(make_row: MakeRow, first_answer: object, **changes: Any) -> ResultRow:
    cold = {**PARTS, "caches": {}, "intervals": {"first_answer": first_answer}}
    return make_row(scenario="cold_start", p50_ms=None, throughput_per_s=None, cold_start_ms=cold, **changes)


def recorded(value: float, low: float, high: float) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "method": METHOD, "reason": None}


def test_the_ratio_of_two_first_answers_has_an_interval(make_row: MakeRow) -> None:
    slow = start(make_row, recorded(200.0, 190.0, 220.0))
    fast = start(make_row, recorded(100.0, 95.0, 110.0), backend="openvino")
    spread = spread_of_metric(slow, "first_answer")
    assert (spread.value, spread.low, spread.high, spread.kind, spread.trials) == (200.0, 190.0, 220.0, "interval", 6)
    compared = side_by_side(fast, slow, "first_answer")
    assert compared.ratio is not None
    # By hand: from 95 / 220 to 110 / 190.
    assert (compared.ratio.value, compared.ratio.low, compared.ratio.high) == (0.5, 95 / 220, 110 / 190)
    assert compared.difference == "shown"
    figure = next(one for one in figures_of(fast, slow) if one.metric == "first_answer")
    assert (figure.value, figure.ratio) == (100.0, 0.5)


def test_an_older_record_gives_the_sum_of_its_parts_without_bounds(make_row: MakeRow) -> None:
    row = make_row(scenario="cold_start", p50_ms=None, cold_start_ms=PARTS)
    spread = spread_of_metric(row, "first_answer")
    assert (spread.value, spread.low, spread.kind) == (175.0, None, "none")
    assert spread_of_metric(make_row(cold_start_ms=PARTS), "first_answer").value is None  # no cold start at all


@pytest.mark.parametrize(
    "hostile",
    [
        None,
        [],
        "x",
        7,
        {},
        {"value": "9"},
        {"value": True},
        {"value": float("nan")},
        {"value": 10**400},
        {"value": [1]},
    ],
)
def test_what_is_no_quantile_is_not_taken_for_one(make_row: MakeRow, hostile: object) -> None:
    assert open_spread(hostile) is None
    assert spread_of_metric(start(make_row, hostile), "first_answer").value == 175.0
    row = make_row(scenario="cold_start", p50_ms=None, cold_start_ms={**PARTS, "intervals": hostile})
    assert spread_of_metric(row, "first_answer").value == 175.0


@pytest.mark.parametrize(("low", "high"), [("a", 3.0), (None, 3.0), (2.0, 1.0), (1.5, 3.0), (float("inf"), 3.0)])
def test_bounds_that_do_not_hold_the_value_are_none(low: object, high: object) -> None:
    spread = open_spread({"value": 1.0, "low": low, "high": high, "method": METHOD})
    assert spread is not None
    assert (spread.value, spread.low, spread.high, spread.kind) == (1.0, None, None, "none")


def test_a_count_of_trials_without_an_end_is_none() -> None:
    spread = open_spread({"value": 1.0, "low": 1.0, "high": 1.0, "method": f"range of {'9' * 5000} trials"})
    assert spread is not None and spread.kind == "none"
