"""Verdicts: a table of pairs, each with the verdict that the design's text gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from db.queries import ResultRow
from harness.judgement.side_by_side import METRICS, metrics_of, sentence, side_by_side
from harness.judgement.verdict import Verdict, judge_pair

MakeRow = Callable[..., ResultRow]
PASSED, FAILED, UNDECIDED = ({"gate": gate, "relative": share, "target": 0.99} for gate, share in (
    ("passed", 0.995), ("failed", 0.621), ("undecided", 0.985),
))  # fmt: skip
ENERGY: dict[str, Any] = {
    "workload": "mobilenet",
    "energy_j": 0.5,
    "energy_scope": "gpu_board",
    "energy_quality": "metered",
}


def over_trials(value: float, low: float, high: float, trials: int = 9) -> dict[str, Any]:
    method = f"floor(n p), 95 % interval of the median over {trials} trials"
    return {"p50": {"value": value, "low": low, "high": high, "method": method, "reason": None}}


def judged(make_row: MakeRow, a: dict[str, Any], b: dict[str, Any], metric: str = "p50") -> Verdict:
    return judge_pair(make_row(**a), make_row(**b), metric)


@pytest.mark.parametrize(
    ("a", "b", "metric"),
    [
        ({}, {}, "p50"),
        ({}, {"hardware_model": "NVIDIA T4", "device_uuid": "u-2"}, "p50"),  # hardware is what is compared
        ({}, {"backend": "openvino", "runtime": "openvino", "runtime_version": "2026.1"}, "p50"),
        ({"input_size": "1x3x224x224"}, {"input_size": "1x224x224x3"}, "p50"),  # the same picture, channels last
        ({}, {"artifact_format": "openvino", "artifact_sha256": "f" * 64}, "p50"),  # format is implementation
        ({}, {"effective_threads": 8, "streams": 4}, "throughput"),
        ({"scenario_parameters": {"duration_s": 2.0}}, {"scenario_parameters": {"duration_s": 10.0}}, "p50"),
        ({"accuracy": PASSED}, {"accuracy": PASSED}, "p99"),
        ({"accuracy": None}, {"accuracy": None}, "p50"),  # the same model needs no gate
        ({"requested_precision": "default"}, {}, "p50"),  # asked for the vendor's choice, which was fp32
        (ENERGY, ENERGY, "energy"),
        (
            {"scenario": "multi_stream", "scenario_parameters": {"samples_per_query": 8}},
            {"scenario": "multi_stream", "scenario_parameters": {"samples_per_query": 8}},
            "p50",
        ),
    ],
)
def test_the_same_contract_and_the_same_precision_are_like_for_like(
    make_row: MakeRow, a: dict[str, Any], b: dict[str, Any], metric: str
) -> None:
    verdict = judged(make_row, a, b, metric)
    assert (verdict.kind, verdict.contract, verdict.caveats) == ("like_for_like", (), ())


@pytest.mark.parametrize(
    ("b", "said"),
    [
        ({"effective_precision": "int8", "artifact_precision": "int8"}, "effective precision: fp32 (A), int8 (B)"),
        ({"effective_precision": "bf16", "requested_precision": "default"}, "effective precision: fp32 (A), bf16 (B)"),
        ({"source_weights": "b" * 64}, "source weights"),
        ({"effective_precision": "fp32", "artifact_precision": "int4"}, "precision of the model file"),
    ],
)
def test_another_precision_or_model_with_both_gates_passed_is_tuned(
    make_row: MakeRow, b: dict[str, Any], said: str
) -> None:
    verdict = judged(make_row, {"accuracy": PASSED, "source_weights": "a" * 64},
                     {"accuracy": PASSED, "source_weights": "a" * 64, **b})  # fmt: skip
    assert (verdict.kind, verdict.contract, verdict.caveats) == ("tuned", (), ())
    assert any(said in reason for reason in verdict.implementation)


@pytest.mark.parametrize(
    ("b", "said"),
    [
        ({"source_kind": "imported", "source_name": "MLPerf"}, "B is imported: MLPerf."),
        ({"effective_precision": None}, "The precision in which B computed is not known."),
        ({"batch": None}, "The batch of B is not known."),
        ({"input_size": None}, "The input size of B is not known."),
        (
            {"accuracy": UNDECIDED},
            "The accuracy gate of B is undecided (it keeps 98.5 % of the reference; 99 % is asked for).",
        ),
        ({"flags": (("throttled", "The clock fell to 1.2 GHz."),)}, "B: The clock fell to 1.2 GHz."),
        ({"flags": (("other_load", "Another process used 40 %."),)}, "B: Another process used 40 %."),
        ({"flags": (("from_the_future", "Something."),)}, "B: Something."),  # a newer version's flag is not ignored
        ({"effective_precision": "int8", "accuracy": None}, "B has passed no accuracy gate"),
        ({"effective_precision": "int8", "accuracy": UNDECIDED}, "of B is undecided"),
        # openvino 28032: the request said f32, the hardware ran bf16; marked even where an old record calls it ok
        ({"effective_precision": "bf16"}, "B was asked for fp32 and ran bf16."),
        ({"target": "auto", "effective": {"devices": ["CPU"]}}, "B let the runtime choose (auto); it used CPU."),
        ({"dataset": "pictures"}, "Whether both used the same edition of pictures is not known."),
    ],
)
def test_what_is_not_known_or_disturbed_is_a_caveat(make_row: MakeRow, b: dict[str, Any], said: str) -> None:
    same = {"accuracy": PASSED, "input_size": "1x3x224x224", "dataset": "pictures@" + "d" * 64}
    verdict = judged(make_row, same, {**same, **b})
    assert (verdict.kind, verdict.contract) == ("with_caveats", ())
    assert any(said in caveat for caveat in verdict.caveats), verdict.caveats


@pytest.mark.parametrize(
    ("b", "said"),
    [
        (
            {"workload": "mlperf-resnet50", "workload_title": "ResNet-50 (MLPerf)"},
            "Other workloads of the family resnet50",
        ),
        ({"workload": "other", "family": "other"}, "Other workloads:"),
        ({"dataset": "photos@" + "d" * 64}, "dataset: pictures (A), photos (B)"),
        ({"dataset": "pictures@" + "e" * 64}, "Other editions of the dataset pictures"),
        ({"dataset": None}, "dataset: pictures (A), random inputs (B)"),
        ({"accuracy_metric": "map50"}, "accuracy metric: top1 (A), map50 (B)"),
        ({"scenario": "duty_cycle"}, "scenario: single stream (A), duty cycle (B)"),
        ({"batch": 8}, "batch: 1 (A), 8 (B)"),
        ({"input_size": "1x3x512x512"}, "input size: 1x3x224x224 (A), 1x3x512x512 (B)"),
        ({"boundary": "device_resident"}, "timed boundary: host to host (A), device resident (B)"),
        (
            {"status": "invalid", "reason": "Not valid: cuda was asked for, but cpu ran."},
            "B is invalid: Not valid: cuda",
        ),
        ({"status": "failed", "reason": "It crashed."}, "B is failed: It crashed."),
        ({"accuracy": FAILED}, "B failed the accuracy gate (it keeps 62.1 % of the reference"),
        ({"p50_ms": None}, "B has no p50."),
    ],
)
def test_another_contract_or_a_bad_side_is_not_comparable(make_row: MakeRow, b: dict[str, Any], said: str) -> None:
    same = {
        "dataset": "pictures@" + "d" * 64,
        "accuracy_metric": "top1",
        "input_size": "1x3x224x224",
        "accuracy": PASSED,
    }
    verdict = judged(make_row, same, {**same, **b})
    assert verdict.kind == "not_comparable"
    assert any(said in reason for reason in verdict.contract), verdict.contract


@pytest.mark.parametrize(
    ("rates", "kind", "said"),
    [
        ((100.0, 100.0), "like_for_like", None),
        ((100.0, 400.0), "not_comparable", "offered rate behind the latency: 100 samples/s (A), 400 samples/s (B)"),
        ((100.0, None), "not_comparable", "B kept its limit at no rate that is known"),
    ],
)
def test_a_server_s_latency_belongs_to_its_rate(
    make_row: MakeRow, rates: tuple[float | None, ...], kind: str, said: str | None
) -> None:
    """The faster of two servers is looked at under more load: its latency there is no slower system."""
    a, b = ({"scenario": "server", "throughput_per_s": rate} for rate in rates)
    verdict = judged(make_row, a, b, "p99")
    assert verdict.kind == kind
    assert said is None or said in verdict.contract[0]
    assert "rate" not in " ".join(judged(make_row, a, b, "throughput").contract)


@pytest.mark.parametrize(
    ("scenario", "key", "here", "there"),
    [
        ("multi_stream", "samples_per_query", 8, 4),
        ("server", "limit_ms", 15.0, 20.0),
        ("server", "percentile", 99, 95),
        ("duty_cycle", "period_s", 1.0, 5.0),
        ("sustained", "duration_s", 300, 60),
        ("cold_start", "file_cache", "warm", "cold"),
        ("cold_start", "compile_cache", "off", "warm"),
        ("of_the_future", "anything", 1, 2),
    ],
)
def test_a_scenario_s_parameters_are_part_of_the_contract(
    make_row: MakeRow, scenario: str, key: str, here: object, there: object
) -> None:
    a, b = ({"scenario": scenario, "scenario_parameters": {key: value}} for value in (here, there))
    verdict = judged(make_row, a, b)
    assert verdict.kind == "not_comparable"
    assert key.replace("_", " ") in verdict.contract[0]
    assert judged(make_row, a, a).kind == "like_for_like"


@pytest.mark.parametrize(
    ("b", "said"),
    [
        ({"energy_scope": "wall"}, "place of metering: gpu_board (A), wall (B)"),
        ({"energy_scope": None}, "place of metering: gpu_board (A), not known (B)"),
        ({"energy_quality": "estimated"}, "An estimate of energy is never compared with a measurement."),
        ({"energy_j": None, "energy_reason": "No meter."}, "B has no energy: No meter."),
    ],
)
def test_energy_also_needs_one_scope_and_real_readings(make_row: MakeRow, b: dict[str, Any], said: str) -> None:
    verdict = judged(make_row, ENERGY, {**ENERGY, **b}, "energy")
    assert verdict.kind == "not_comparable"
    assert any(said in reason for reason in verdict.contract), verdict.contract
    assert judged(make_row, ENERGY, {**ENERGY, **b}).kind == "like_for_like"  # of time nothing changes


def test_energy_of_seeded_weights_is_not_compared(make_row: MakeRow) -> None:
    seeded = {**ENERGY, "workload": "resnet50-seeded"}
    assert "Seeded weights" in judged(make_row, seeded, seeded, "energy").contract[0]


def test_a_flag_on_energy_says_nothing_about_time(make_row: MakeRow) -> None:
    shaky = {**ENERGY, "flags": (("energy_window_short", "2 s only."),)}
    assert judged(make_row, shaky, ENERGY, "energy").kind == "with_caveats"
    assert judged(make_row, shaky, ENERGY, "p50").kind == "like_for_like"


def test_the_verdict_is_the_same_from_either_side(make_row: MakeRow) -> None:
    rows = [make_row(**changes) for changes in (
        {}, {"batch": 8}, {"effective_precision": "int8", "accuracy": PASSED}, {"status": "failed"}, {"batch": None},
        {"accuracy": UNDECIDED}, {"source_kind": "imported", "dataset": "imagenet"},
    )]  # fmt: skip
    for metric in METRICS:
        for a in rows:
            for b in rows:
                assert judge_pair(a, b, metric).kind == judge_pair(b, a, metric).kind


def test_the_sentence_has_ratio_interval_units_and_verdict(make_row: MakeRow) -> None:
    # 10 (9.8 to 10.2) and 13.2 (13.0 to 13.4) ms: speed 1.32, from 13.0 / 10.2 = 1.27 to 13.4 / 9.8 = 1.37
    a = make_row(p50_ms=10.0, quantiles=over_trials(10.0, 9.8, 10.2))
    b = make_row(p50_ms=13.2, quantiles=over_trials(13.2, 13.0, 13.4), device_uuid="u-2")
    compared = side_by_side(a, b, "p50")
    assert sentence(compared, a) == (
        "A is 1.32 times as fast as B at p50 (95 % interval 1.27 to 1.37, 1 unit of each measured): like for like."
    )
    assert compared.difference == "shown"
    assert compared.as_document()["ratio"] == pytest.approx(10 / 13.2)
    assert compared.as_document()["ratio_high"] == pytest.approx(10.2 / 13.0)


def test_an_interval_that_holds_one_shows_no_difference(make_row: MakeRow) -> None:
    a = make_row(p50_ms=10.0, quantiles=over_trials(10.0, 9.5, 10.5))
    b = make_row(p50_ms=10.2, quantiles=over_trials(10.2, 9.9, 10.8))
    assert sentence(side_by_side(a, b, "p50"), a) == (
        "No difference is shown between A and B at p50 (ratio 1.02, 95 % interval 0.943 to 1.14, both on the same unit): "
        "like for like."
    )


def test_a_range_gives_no_interval_and_says_so(make_row: MakeRow) -> None:
    ranged = {"p50": {"value": 10.0, "low": 9.0, "high": 11.0, "method": "floor(n p), range of 3 trials"}}
    other = {"p50": {"value": 20.0, "low": 18.0, "high": 22.0, "method": "floor(n p), range of 3 trials"}}
    a, b = make_row(p50_ms=10.0, quantiles=ranged), make_row(p50_ms=20.0, quantiles=other)
    compared = side_by_side(a, b, "p50")
    assert (compared.difference, compared.ratio is not None and compared.ratio.low) == ("unknown", None)
    assert "2 times as fast as B at p50 (no interval, ranges 9 to 11 ms and 18 to 22 ms" in sentence(compared, a)


def test_an_interval_inside_one_trial_is_no_interval_of_a_comparison(make_row: MakeRow) -> None:
    within = {
        "p50": {"value": 10.0, "low": 9.9, "high": 10.1, "method": "floor(n p), 95 % interval within one trial, x"}
    }
    compared = side_by_side(
        make_row(p50_ms=10.0, quantiles=within), make_row(quantiles=over_trials(50.0, 49, 51)), "p50"
    )
    assert compared.difference == "unknown"
    assert "no interval, one trial on a side" in sentence(compared, make_row())


def test_what_is_not_comparable_gets_no_ratio_in_words(make_row: MakeRow) -> None:
    a, b = make_row(), make_row(batch=8)
    assert sentence(side_by_side(a, b, "p50"), a) == (
        "A and B are not comparable at p50: Differs in batch: 1 (A), 8 (B)."
    )


def test_each_metric_has_words_of_its_own(make_row: MakeRow) -> None:
    offline = {"scenario": "offline", "p50_ms": None, "p90_ms": None, "p99_ms": None}
    a, b = make_row(**offline, throughput_per_s=30.0), make_row(**offline, throughput_per_s=20.0)
    assert metrics_of(a, b) == ("throughput",)
    assert sentence(side_by_side(a, b, "throughput"), a).startswith("A has 1.5 times the throughput of B (no interval")
    energy = side_by_side(make_row(**ENERGY), make_row(**{**ENERGY, "energy_j": 0.25}), "energy")
    assert sentence(energy, make_row()).startswith("A takes 2 times the energy of B for one inference (")
    right = {"accuracy_metric": "top1", "accuracy_value": 0.8}
    accuracy = side_by_side(make_row(**right), make_row(**{**right, "accuracy_value": 0.4}), "accuracy")
    assert sentence(accuracy, make_row(**right)).startswith("A has 2 times the accuracy of B (top1) (")
