"""Charts: what is drawn from which rows, on which axis, in which colours. The specifications are read, not the pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dashboard.charts import CHART_ROWS, distribution_chart, histogram, latency_chart, stages_chart
from dashboard.comparison_charts import absolute_chart, ratio_chart
from dashboard.palette import COLOURS, SHAPES, markers
from db.queries import ResultRow
from harness.judgement.comparison import Section, compare
from harness.judgement.systems import default_baseline

MakeRow = Callable[..., ResultRow]


def points(chart: Any, layer: int = 0) -> list[dict[str, Any]]:
    """The data of one layer, wherever the document keeps it."""
    document = chart.to_dict()
    data = document["layer"][layer].get("data") or document["data"]
    return list(data["values"] if "values" in data else document["datasets"][data["name"]])


def channel(chart: Any, layer: int, name: str) -> dict[str, Any]:
    return dict(chart.to_dict()["layer"][layer]["encoding"][name])


def section_of(rows: list[ResultRow]) -> Section:
    baseline = default_baseline(rows)
    assert baseline is not None
    return compare(rows, baseline.id).sections[0]


def test_latency_is_drawn_on_a_log_axis_from_the_fastest_sample_to_p90(make_row: MakeRow) -> None:
    chart = latency_chart([make_row(latency_min_ms=45.0, p50_ms=50.0, p90_ms=60.0, p99_ms=80.0)], {})
    assert channel(chart, 0, "x")["scale"]["type"] == "log"
    (point,) = points(chart)
    assert (point["low"], point["p50"], point["high"], point["p99"]) == (45.0, 50.0, 60.0, 80.0)


def test_rows_without_latency_are_not_drawn(make_row: MakeRow) -> None:
    assert latency_chart([make_row(p50_ms=None), make_row(p50_ms=None, status="failed")], {}) is None
    assert len(points(latency_chart([make_row(), make_row(p50_ms=None)], {}))) == 1


def test_an_imported_row_without_min_is_drawn_from_its_median(make_row: MakeRow) -> None:
    (point,) = points(latency_chart([make_row(latency_min_ms=None, p90_ms=None, p99_ms=None)], {}))
    assert (point["low"], point["high"]) == (50.0, 50.0)


def test_equal_names_get_lines_of_their_own(make_row: MakeRow) -> None:
    labels = [point["label"] for point in points(latency_chart([make_row(), make_row(p50_ms=70.0)], {}))]
    assert len(set(labels)) == 2
    assert labels[1] == labels[0] + " (2)"


def test_the_fastest_rows_are_drawn_where_there_are_too_many(make_row: MakeRow) -> None:
    rows = [make_row(p50_ms=float(value)) for value in range(200, 100, -1)]
    drawn = [point["p50"] for point in points(latency_chart(rows, {}))]
    assert drawn == [float(value) for value in range(101, 101 + CHART_ROWS)]


def test_a_ratio_chart_shows_each_ratio_and_the_baseline_at_one(make_row: MakeRow) -> None:
    section = section_of([make_row(p50_ms=50.0), make_row(backend="openvino", p50_ms=25.0)])
    chart = ratio_chart(section, {})
    assert channel(chart, 1, "x")["scale"]["type"] == "log"
    assert {point["label"]: point["ratio"] for point in points(chart, 1)} == {
        "Acme CPU 9000\nonnxruntime cpu": 1.0,
        "Acme CPU 9000\nopenvino cpu": 0.5,
    }


def test_what_has_no_ratio_is_not_in_the_ratio_chart(make_row: MakeRow) -> None:
    failed = make_row(backend="openvino", status="failed", reason="x", p50_ms=None)
    assert len(points(ratio_chart(section_of([make_row(), failed]), {}), 1)) == 1
    assert ratio_chart(section_of([failed]), {}) is None


def test_absolute_throughput_has_no_percentile_line(make_row: MakeRow) -> None:
    offline = {"scenario": "offline", "p50_ms": None, "p90_ms": None, "p99_ms": None}
    chart = absolute_chart(section_of([make_row(**offline, throughput_per_s=20.0)]), {})
    assert chart is not None and len(chart.to_dict()["layer"]) == 1
    assert points(chart)[0]["value"] == 20.0
    single = absolute_chart(section_of([make_row()]), {})
    assert single is not None and len(single.to_dict()["layer"]) == 2


def test_colours_belong_to_hardware_models_whatever_is_shown(make_row: MakeRow) -> None:
    marks = markers(["Acme CPU 9000", "NVIDIA T4"])
    both = latency_chart([make_row(), make_row(hardware_model="NVIDIA T4")], marks)
    alone = latency_chart([make_row()], marks)
    scale = channel(both, 0, "color")["scale"]
    assert scale["domain"] == ["Acme CPU 9000", "NVIDIA T4"]
    assert scale["range"][0] == channel(alone, 0, "color")["scale"]["range"][0] == marks["Acme CPU 9000"].colour


def test_markers_are_unlike_each_other_and_stay_when_others_come() -> None:
    names = [f"model {number}" for number in range(len(COLOURS) * len(SHAPES))]
    chosen = markers(names)
    assert len({(mark.colour, mark.shape) for mark in chosen.values()}) == len(names)
    assert markers(["model 0"])["model 0"].colour == markers(["model 0", "zzz"])["model 0"].colour


def test_a_histogram_counts_every_sample_once() -> None:
    samples = np.random.RandomState(7).lognormal(16, 0.5, 10_000).astype(np.int64)
    bars = histogram(samples)
    assert sum(int(bar["count"]) for bar in bars) == 10_000
    assert len(bars) <= 60
    assert bars[0]["low"] == pytest.approx(samples.min() / 1e6)
    assert bars[-1]["high"] == pytest.approx(samples.max() / 1e6)


def test_a_histogram_of_equal_samples_is_one_bar() -> None:
    bars = histogram(np.full(50, 2_000_000))
    assert [bar["count"] for bar in bars] == [50]


def test_a_million_samples_go_to_the_browser_as_counts() -> None:
    samples = np.random.RandomState(1).lognormal(16, 0.3, 1_000_000).astype(np.int64)
    chart = distribution_chart(samples, {"p50": 9.0, "p99": None})
    assert chart is not None
    assert len(chart.to_json()) < 20_000
    assert [line["name"] for line in points(chart, 1)] == ["p50"]


def test_there_is_no_picture_without_samples_or_stages() -> None:
    assert distribution_chart(np.empty(0, dtype=np.int64), {}) is None
    assert stages_chart({"decode": None, "inference": None}) is None


def test_stages_keep_their_order() -> None:
    chart = stages_chart({"decode": 3.0, "preprocess": None, "inference": 50.0, "first_inference": 1.0})
    assert [point["stage"] for point in points(chart)] == ["decode", "inference", "first inference"]
