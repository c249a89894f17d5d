"""The one rule of what may stand as a valid measurement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.judgement.validity import faults, judged
from harness.records import (
    Accuracy,
    Artifact,
    Case,
    ColdStart,
    Effective,
    Energy,
    Latency,
    Measurement,
    OverTime,
    Quantile,
    RateCurve,
    RatePoint,
    Slice,
    Source,
)

MEASURED, IMPORTED = Source("measured", "weighbridge"), Source("imported", "Somebody")
NONE = Quantile(None, reason="too few")


def latency(p50: float | None = 5.0, p90: float | None = 6.0, least: float | None = 4.0) -> Latency:
    return Latency(10, p50, least, 9.0, Quantile(p50), Quantile(p90), NONE, NONE, NONE)


def measurement(scenario: str = "single_stream", target: str = "cpu", ran: str | None = "cpu") -> Measurement:
    case = Case("w", None, None, "fp32", "fp32", "onnxruntime", target, "cpu", scenario)
    return Measurement(
        "m", case, case.key, "ok", effective=Effective(ran), latency_ms=latency(), throughput_per_s=200.0
    )


def test_a_sound_measurement_is_ok() -> None:
    assert judged(measurement(), MEASURED) == ("ok", None)


def test_a_fallback_is_invalid_and_says_what_ran() -> None:
    assert judged(measurement(target="cuda"), MEASURED) == ("invalid", "Not valid: cuda was asked for, but cpu ran.")
    assert faults(measurement(ran=None), MEASURED) == ("the runtime did not say which target really ran",)
    assert faults(replace(measurement(), effective=None), MEASURED)
    assert faults(measurement(target="CPU"), MEASURED) == ()


@pytest.mark.parametrize("target", ["auto", "AUTO:GPU,CPU", "all", "cpu_and_ne"])
def test_where_the_runtime_may_choose_it_must_only_tell(target: str) -> None:
    assert faults(measurement(target=target), MEASURED) == ()
    assert faults(measurement(target=target, ran=None), MEASURED)


def test_an_imported_result_need_not_tell_its_target() -> None:
    assert faults(replace(measurement(), effective=None), IMPORTED) == ()


def test_a_result_needs_a_number() -> None:
    empty = replace(measurement(), latency_ms=None, throughput_per_s=None)
    assert faults(empty, MEASURED) == ("there is neither a latency nor a throughput",)
    hollow = replace(
        measurement(), latency_ms=Latency(0, None, None, None, NONE, NONE, NONE, NONE, NONE), throughput_per_s=None
    )
    assert faults(hollow, MEASURED)


def test_offline_has_throughput_and_no_latency() -> None:
    offline = replace(measurement("offline"), latency_ms=None)
    assert faults(offline, MEASURED) == ()
    assert "queue times" in faults(measurement("offline"), MEASURED)[0]
    assert "no throughput" in faults(replace(offline, throughput_per_s=None), MEASURED)[0]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (latency(p50=7.0, p90=6.0), "not in order"),
        (latency(p50=0.0, least=None), "zero or less"),
        (latency(least=5.5), "not in order"),
        (latency(p90=9.5), "not in order"),
    ],
)
def test_impossible_latencies(bad: Latency, said: str) -> None:
    assert any(said in fault for fault in faults(replace(measurement(), latency_ms=bad), MEASURED))


def test_impossible_values() -> None:
    assert faults(replace(measurement(), throughput_per_s=0.0), MEASURED)
    assert faults(replace(measurement(), accuracy=Accuracy("top1", 1.2)), MEASURED)
    assert faults(replace(measurement(), energy=Energy(0.0)), MEASURED)


def test_what_does_not_call_itself_ok_keeps_its_status_and_always_has_a_reason() -> None:
    failed = replace(measurement(), status="failed", reason="Crashed.", latency_ms=None)
    assert judged(failed, MEASURED) == ("failed", "Crashed.")
    assert judged(replace(failed, reason=None), MEASURED) == ("failed", "The record gives no reason.")


POINT = RatePoint(100.0, 99.0, 5000, Quantile(5.0), Quantile(6.0), Quantile(9.0))
SLICE = Slice(0.0, 10.0, 500, 5.0, 9.0, 50.0)


@pytest.mark.parametrize(
    ("scenario", "missing", "given"),
    [
        ("server", "no latency at any offered rate", {"rate_curve": RateCurve((POINT,))}),
        ("cold_start", "no time of a first inference", {"cold_start_ms": ColdStart(first_inference=80.0)}),
        ("sustained", "no course over time", {"over_time": OverTime((SLICE,))}),
    ],
)
def test_a_scenario_has_what_it_is_about(scenario: str, missing: str, given: dict[str, object]) -> None:
    bare = measurement(scenario)
    assert any(missing in fault for fault in faults(bare, MEASURED))
    assert faults(replace(bare, **given), MEASURED) == ()  # type: ignore[arg-type]


def test_an_imported_server_result_is_the_number_that_its_source_publishes() -> None:
    assert faults(measurement("server"), IMPORTED) == ()


@pytest.mark.parametrize("scenario", ["single_stream", "multi_stream", "duty_cycle"])
def test_what_is_timed_query_by_query_has_a_latency(scenario: str) -> None:
    assert faults(measurement(scenario), MEASURED) == ()
    rate_only = replace(measurement(scenario), latency_ms=None)
    assert faults(rate_only, MEASURED) == (f"the scenario {scenario} has no latency",)


def precise(asked: str, ran: str | None, file: str = "fp32") -> Measurement:
    case = Case("w", None, None, file, asked, "openvino", "cpu", "cpu", "single_stream")
    artifact = Artifact("onnx", file, "a" * 64, 1, "w.onnx")
    return replace(measurement(), case=case, artifact=artifact, effective=Effective("cpu", precision=ran))


@pytest.mark.parametrize(
    ("asked", "ran", "file"),
    [
        ("fp32", "fp32", "fp32"),
        ("default", "bf16", "fp32"),  # measured under the vendor's own name
        ("fp32", None, "fp32"),  # not told: a flag, not a fault
        ("fp32", "int8", "int8"),
        ("fp32", "int8", "int8-float-ends"),
        ("fp32", "int8", "int4"),
        ("fp32", "mixed", "int8"),
        ("fp32", "fp16", "fp16"),
        ("bf16", "bf16", "fp32"),
    ],
)
def test_a_precision_that_holds(asked: str, ran: str | None, file: str) -> None:
    assert faults(precise(asked, ran, file), MEASURED) == ()


@pytest.mark.parametrize(
    ("asked", "ran", "file"),
    [
        ("fp32", "bf16", "fp32"),  # openvino 28032: the request said f32, the hardware ran bf16
        ("fp32", "tf32", "fp32"),
        ("fp32", "mixed", "fp32"),
        ("bf16", "fp32", "fp32"),
        ("fp32", "fp16", "int8"),
    ],
)
def test_another_precision_under_the_name_that_was_asked_for_is_invalid(asked: str, ran: str, file: str) -> None:
    assert faults(precise(asked, ran, file), MEASURED) == (f"{asked} was asked for, but {ran} is what ran",)
    assert faults(precise(asked, ran, file), IMPORTED) == ()
