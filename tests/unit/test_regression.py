"""The rule that calls a case worse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.judgement.regression import Point, Thresholds, judge

OLD = Point("m1", "r1", "ok", None, 10.0, 100.0, 0.87, "onnxruntime 1.31")
NEW = replace(OLD, measurement_id="m2", run_id="r2")


@pytest.mark.parametrize(
    ("p50_ms", "verdict"),
    [(10.0, "same"), (10.9, "same"), (11.0, "same"), (11.1, "regression"), (9.2, "same"), (9.0, "better")],
)
def test_a_tenth_slower_is_a_regression(p50_ms: float, verdict: str) -> None:
    assert judge(replace(NEW, p50_ms=p50_ms), OLD).verdict == verdict


def test_offline_cases_are_judged_by_throughput() -> None:
    old, new = replace(OLD, p50_ms=None), replace(NEW, p50_ms=None, throughput_per_s=85.0)
    change = judge(new, old)
    assert change.verdict == "regression"
    assert change.time_ratio == pytest.approx(100 / 85)
    assert "throughput 100 -> 85 per second, 17.6 % slower." in change.reasons


@pytest.mark.parametrize(
    ("accuracy", "verdict"), [(0.865, "same"), (0.8601, "same"), (0.859, "regression"), (0.99, "same")]
)
def test_more_than_one_point_of_accuracy_lost_is_a_regression(accuracy: float, verdict: str) -> None:
    assert judge(replace(NEW, accuracy=accuracy), OLD).verdict == verdict


def test_ok_before_and_not_now_is_a_regression_with_the_reason() -> None:
    change = judge(replace(NEW, status="failed", reason="The worker was killed.", p50_ms=None), OLD)
    assert change.verdict == "regression"
    assert "The worker was killed." in change.reasons[0]


def test_a_changed_runtime_is_named_as_an_explanation() -> None:
    change = judge(replace(NEW, p50_ms=20.0, runtime="onnxruntime 1.32"), OLD)
    assert change.reasons[1] == "The runtime changed from onnxruntime 1.31 to onnxruntime 1.32."


def test_nothing_is_claimed_where_there_is_nothing_to_compare() -> None:
    assert judge(NEW, None).verdict == "nothing_to_compare"
    assert judge(replace(NEW, status="skipped", reason="Interrupted."), OLD).verdict == "not_measured"
    bare = replace(OLD, p50_ms=None, throughput_per_s=None, accuracy=None)
    assert judge(NEW, bare).verdict == "nothing_to_compare"


def test_the_threshold_can_be_chosen() -> None:
    assert judge(replace(NEW, p50_ms=10.6), OLD, Thresholds(slower_ratio=1.05)).verdict == "regression"
    assert judge(replace(NEW, p50_ms=14.0), OLD, Thresholds(slower_ratio=1.5)).verdict == "same"
