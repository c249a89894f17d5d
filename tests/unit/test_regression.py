"""The rule that calls a case worse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from db.history import _point
from harness.judgement.regression import Point, Thresholds, judge
from harness.judgement.spread import Kind, Spread

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


def spread(value: float, low: float, high: float, kind: Kind = "interval") -> Spread:
    return Spread(value, low, high, kind, 9)


def judged(new: Spread, old: Spread, **changes: object) -> str:
    newest = replace(NEW, p50_ms=new.value, p50=new, **changes)  # type: ignore[arg-type]
    return judge(newest, replace(OLD, p50_ms=old.value, p50=old)).verdict


@pytest.mark.parametrize("kind", ["interval", "range"])
def test_intervals_or_ranges_that_overlap_raise_no_alarm(kind: Kind) -> None:
    assert judged(spread(13, 9.8, 14, kind), spread(10, 9, 11, kind)) == "undecided"
    assert judged(spread(7, 6, 9.5, kind), spread(10, 9, 11, kind)) == "undecided"


def test_intervals_apart_and_beyond_the_threshold_are_a_regression() -> None:
    assert judged(spread(13, 12, 14), spread(10, 9, 11)) == "regression"
    assert judged(spread(7, 6, 8), spread(10, 9, 11)) == "better"


def test_intervals_apart_below_the_threshold_are_no_regression() -> None:
    assert judged(spread(10.5, 10.4, 10.6), spread(10, 9.9, 10.1)) == "same"


def test_an_interval_inside_one_trial_bounds_nothing_between_runs() -> None:
    assert judged(spread(13, 9, 14, "within_one"), spread(10, 9, 11)) == "regression"


@pytest.mark.parametrize("code", ["other_load", "steal", "throttled", "trials_disagree", "not_steady"])
def test_a_disturbed_measurement_raises_no_alarm_and_says_why(code: str) -> None:
    change = judge(replace(NEW, p50_ms=20.0, flags=(code,)), OLD)
    assert change.verdict == "undecided"
    assert "disturbed or did not settle" in change.reasons[0]
    assert judge(replace(NEW, p50_ms=20.0), replace(OLD, flags=(code,))).verdict == "undecided"
    assert judge(replace(NEW, p50_ms=20.0, flags=("random_inputs",)), OLD).verdict == "regression"


def test_a_disturbance_hides_no_lost_accuracy_and_no_failure() -> None:
    assert judge(replace(NEW, p50_ms=20.0, accuracy=0.5, flags=("steal",)), OLD).verdict == "regression"
    assert judge(replace(NEW, status="failed", reason="x", flags=("steal",)), OLD).verdict == "regression"


def server(highest: float | None, missed: float | None, p50_ms: float) -> Point:
    method = "highest rate at which p99 keeps 15 ms; high is the lowest that misses it"
    found = {"value": highest, "low": highest, "high": missed, "method": method}
    names = ("measurement_id", "run_id", "reason", "accuracy_value", "quantiles", "runtime", "runtime_version")
    row = {**dict.fromkeys(names), "scenario": "server", "status": "ok", "p50_ms": p50_ms, "throughput_per_s": highest}
    return _point({**row, "throughput": found, "flags": []})


def test_a_server_is_judged_by_its_rate_and_one_step_of_rates_is_no_regression() -> None:
    """Its latency is that of its own highest rate, and rises with it: 100 per second in 10 ms, 200 in 12 ms."""
    assert judge(server(200.0, 224.0, 12.0), server(100.0, 112.0, 10.0)).verdict == "better"
    assert judge(server(100.0, 112.0, 10.0), server(200.0, 224.0, 12.0)).verdict == "regression"
    assert judge(server(90.0, 100.0, 9.0), server(100.0, 112.0, 10.0)).verdict == "undecided"
    assert judge(server(90.0, None, 9.0), server(200.0, None, 10.0)).verdict == "undecided"  # no rate missed it
    gone = judge(server(None, None, 40.0), server(100.0, 112.0, 10.0))
    assert gone.verdict == "undecided"
    assert gone.reasons == ("throughput 100 per second before, none within the limit now.",)
