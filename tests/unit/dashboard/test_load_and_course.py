"""Charts of load and time, and the questions asked of them. The specifications are read, not the pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dashboard.comparison_charts import absolute_chart, ratio_chart
from dashboard.course_charts import cold_start_chart, over_time_charts
from dashboard.limits import highest, sweeps_with
from dashboard.load_charts import rate_curve_chart, sweep_chart
from dashboard.quality import accuracy_lines, doubts_grid, fidelity_lines, self_cost_share
from dashboard.trial_grids import conditions_words, sampling_grid
from db.queries import ResultRow
from harness.judgement.comparison import compare
from harness.judgement.systems import default_baseline
from harness.judgement.trust import trust_of_row

MakeRow = Callable[..., ResultRow]


def quantile(value: float, share: float = 0.1) -> dict[str, Any]:
    method = "95 % interval of the median over 9 trials, one unit measured"
    return {"value": value, "low": value * (1 - share), "high": value * (1 + share), "method": method, "reason": None}


def point(rate: float, p99: float, keeps_up: bool = True) -> dict[str, Any]:
    return {"offered_per_s": rate, "completed_per_s": rate, "count": 4000, "p50": quantile(p99 / 2),
            "p90": quantile(p99 / 1.5), "p99": quantile(p99), "keeps_up": keeps_up, "meets_limit": None}  # fmt: skip


CURVE = {"points": [point(10, 10), point(20, 12), point(30, 19), point(40, 90, False)], "percentile": "p99"}


def layers(chart: Any) -> list[dict[str, Any]]:
    """The layers, each with its data beside it, wherever the document keeps them."""
    document = chart.to_dict()
    found = []
    for layer in document["layer"]:
        data = layer.get("data") or document.get("data") or {}
        found.append({**layer, "rows": data.get("values") or document.get("datasets", {}).get(data.get("name"), [])})
    return found


def values(layer: dict[str, Any]) -> list[dict[str, Any]]:
    return list(layer["rows"])


def test_the_highest_rate_is_found_for_any_limit() -> None:
    assert highest(CURVE, "p99", 20.0).per_s == 20  # 19 ms at 30/s, but its interval reaches 20.9
    assert highest(CURVE, "p99", 21.0).per_s == 30
    assert highest(CURVE, "p50", 1000.0).per_s == 30  # at 40/s the queue grew: no limit is kept
    nothing = highest(CURVE, "p99", 5.0)
    assert nothing.per_s is None and nothing.reason


def test_a_rate_curve_has_a_point_for_each_rate_and_percentile_and_the_limit_across() -> None:
    chart = rate_curve_chart(CURVE, 15.0)
    drawn = layers(chart)
    assert len(values(drawn[0])) == 12
    assert "limit 15.0 ms" in str(chart.to_dict())
    assert rate_curve_chart({"points": []}, 15.0) is None
    assert len(layers(rate_curve_chart(CURVE, None))) == len(drawn) - 1


def test_a_sweep_has_knee_and_cliff(make_row: MakeRow) -> None:
    rows = [
        make_row(measurement_id=f"m{batch}", scenario="offline", p50_ms=None, batch=batch, throughput_per_s=rate,
                 throughput=quantile(rate, 0.01))
        for batch, rate in ((1, 100.0), (2, 190.0), (4, 195.0), (8, 120.0))
    ]  # fmt: skip
    (sweep,) = sweeps_with(rows[0], rows)
    assert (sweep.axis, sweep.knee, [cliff.after for cliff in sweep.cliffs]) == ("batch", 2, [8])
    marks = [layer for layer in layers(sweep_chart(sweep)) if layer["mark"]["type"] == "text"]
    assert [mark["name"] for mark in values(marks[0])] == ["knee", "cliff"]
    assert sweeps_with(make_row(), [make_row()]) == ()


def test_a_course_has_panels_for_what_was_read() -> None:
    part = {"start_s": 0.0, "end_s": 10.0, "count": 9, "p50_ms": 5.0, "p99_ms": 9.0, "throughput_per_s": 9.0,
            "cpu_mhz": None, "temperature_c": 50.0}  # fmt: skip
    assert len(over_time_charts({"slices": [part]})) == 2  # latency and temperature; the frequency was not read
    assert over_time_charts({"slices": []}) == []


def test_the_parts_of_a_start_are_stacked_in_their_order() -> None:
    chart = cold_start_chart([("warm", {"process": 10.0, "load": 5.0, "first_inference": 1.0, "compile": None})])
    (bars,) = layers(chart)
    assert [(value["part"], value["ms"]) for value in values(bars)] == [
        ("process", 10.0), ("load", 5.0), ("first inference", 1.0),
    ]  # fmt: skip
    assert cold_start_chart([("x", {})]) is None


def test_the_ratio_chart_has_the_interval_and_greys_what_shows_nothing(make_row: MakeRow) -> None:
    rows = [
        make_row(quantiles={"p50": quantile(50.0, 0.02)}),
        make_row(backend="openvino", p50_ms=25.0, quantiles={"p50": quantile(25.0, 0.02)}),
        make_row(backend="tflite", p50_ms=50.5, quantiles={"p50": quantile(50.5, 0.02)}),
        make_row(backend="tensorrt", p50_ms=5.0, accuracy={"gate": "failed"}),
    ]
    baseline = default_baseline(rows)
    assert baseline is not None
    section = compare(rows, baseline.id).sections[0]
    found = {value["label"].split("\n")[1]: value for value in values(layers(ratio_chart(section, {}))[1])}
    openvino = found["openvino cpu"]
    assert (round(openvino["low"], 4), round(openvino["high"], 4)) == (round(24.5 / 51, 4), round(25.5 / 49, 4))
    assert {name: value["grey"] for name, value in found.items()} == {
        "onnxruntime cpu": True, "openvino cpu": False, "tflite cpu": True, "tensorrt cpu, failed the accuracy gate": True,
    }  # fmt: skip
    assert any(value["failed"] for value in values(layers(absolute_chart(section, {}))[0]))


def test_sampling_says_why_it_stopped_and_that_one_unit_was_measured(make_row: MakeRow) -> None:
    sampling = {"trials": 12, "figure": "p50", "stopped": "budget_spent", "sentence": "The budget is spent.",
                "looks": [8, 12], "asked_half_width": 0.05, "reached_half_width": None}  # fmt: skip
    trials = [{"kind": "timing", "discarded_unsteady": 40}, {"kind": "accuracy", "discarded_unsteady": None}]
    lines = {line[0]: line[1:] for line in sampling_grid(make_row(sampling=sampling), trials).rows}
    assert lines["Units measured"][0] == "1 unit measured"
    assert lines["Why it stopped"] == ("the budget was spent", "The budget is spent.")
    assert lines["Half of the interval reached"][0] == "a range, or nothing"
    assert lines["Left out as not yet steady"][0] == "40 samples in 1 trials"
    assert sampling_grid(make_row(unit_count=2), []).rows[0][1].startswith("1 unit measured, of 2 boards")


def test_conditions_in_words() -> None:
    assert conditions_words({}) == ""
    told = {
        "other_load": 0.31,
        "swap": {"pages_in": 5, "pages_out": 0},
        "cgroup": {"throttled": 7},
        "signs": ["under_voltage"],
    }
    words = conditions_words(told)
    for part in ("other load 31.0 %", "held back by its container 7.00 times", "5.00 pages swapped", "under voltage"):
        assert part in words


def test_quality_lines(make_row: MakeRow) -> None:
    accuracy = {
        "reference": 0.8,
        "relative": 0.95,
        "relative_low": 0.93,
        "relative_high": 0.97,
        "gate": "failed",
        "target": 0.99,
    }
    lines = {
        line[0]: line[1:]
        for line in accuracy_lines(make_row(accuracy_value=0.76, accuracy_metric="top1", accuracy=accuracy))
    }
    assert lines["Share of the reference kept"] == ("95.00", "%", "95 % interval 93.00 to 97.00 %")
    assert lines["Accuracy gate"] == ("failed", "", "99 % of the reference is asked for")
    assert fidelity_lines(make_row(fidelity={"reference": "fp32", "reason": "no reference"}))[0][3] == "no reference"
    assert self_cost_share(make_row(p50_ms=0.002, self_cost={"recorded_us": 0.2, "wall_us": 0.6})) == 0.1
    assert self_cost_share(make_row(self_cost=None)) is None
    doubts = doubts_grid(trust_of_row(make_row(flags=(("steal", "7 % was stolen."),))))
    assert doubts.rows[0][:2] == ("serious", "7 % was stolen.")


@pytest.mark.parametrize(
    "odd", ["<b>", 3, True, None, [1], {"low": "<b>", "high": None, "throttled": [], "pages_in": "x"}, 10**400]
)
def test_conditions_that_anybody_may_have_written_break_no_page(odd: object) -> None:
    """The schema leaves conditions open, and a record may come from another device."""
    names = ("other_load", "cgroup", "frequency_mhz", "temperature_c", "swap", "signs")
    words = conditions_words(dict.fromkeys(names, odd))
    assert "<b>" not in words
