"""Trust: each reason for doubt, and the grade that follows from them by the stated rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from db.queries import ResultRow
from harness.judgement import flags
from harness.judgement.trust import Doubt, grade_of, trust_of_measurement, trust_of_row
from harness.records import (
    Accuracy,
    Case,
    Effective,
    Environment,
    Fidelity,
    Flag,
    Latency,
    Measurement,
    Quantile,
    Sampling,
    Source,
    Trial,
)

MakeRow = Callable[..., ResultRow]
SURE = {"value": 50.0, "low": 49.0, "high": 51.0, "method": "floor(n p), 95 % interval of the median over 9 trials"}
RANGED: dict[str, Any] = {"value": 50.0, "low": 49.0, "high": 51.0, "method": "floor(n p), range of 3 trials"}
ALONE = {"value": 50.0, "low": 49.0, "high": 51.0, "method": "floor(n p), 95 % interval within one trial, 9 of 10"}
SOUND: dict[str, Any] = {
    "quantiles": {"p50": SURE}, "trials": 9, "accuracy": {"gate": "passed"}, "accuracy_value": 0.8,
    "environment_digest": "e" * 64,
}  # fmt: skip


def codes(row: ResultRow) -> list[tuple[str, int]]:
    return [(doubt.code, doubt.weight) for doubt in trust_of_row(row).doubts]


def test_nothing_against_it_is_an_a(make_row: MakeRow) -> None:
    trust = trust_of_row(make_row(**SOUND))
    assert (trust.grade, trust.doubts) == ("A", ())


@pytest.mark.parametrize(
    ("total", "grade"), [(0, "A"), (1, "B"), (2, "B"), (3, "C"), (4, "C"), (5, "D"), (6, "D"), (7, "E"), (40, "E")]
)
def test_the_grade_is_the_sum_of_the_doubts(total: int, grade: str) -> None:
    assert grade_of([Doubt(f"x{place}", 1, "x") for place in range(total)]) == grade


@pytest.mark.parametrize(
    ("changes", "code", "weight"),
    [
        ({"quantiles": {"p50": RANGED}}, "range_only", 1),
        ({"quantiles": {"p50": ALONE}}, "one_trial", 2),
        ({"quantiles": None}, "no_spread", 2),
        ({"trials": 0}, "no_raw_samples", 1),
        ({"source_kind": "imported"}, "imported", 1),
        ({"accuracy": {"gate": "undecided"}}, "gate_undecided", 1),
        ({"accuracy": None, "accuracy_value": None}, "not_verified", 1),
        ({"effective_precision": None}, "precision_unknown", 1),
        ({"batch": None}, "batch_unknown", 1),
        ({"runtime_version": None}, "runtime_unknown", 1),
        ({"environment_digest": Environment({}, {}).digest}, "environment_unknown", 1),
        ({"flags": (("other_load", "40 % elsewhere"),)}, "other_load", 2),
        ({"flags": (("not_steady", "x"),)}, "not_steady", 2),
        ({"flags": (("reduced_precision", "x"),)}, "reduced_precision", 3),
        ({"flags": (("random_inputs", "x"),)}, "random_inputs", 1),
        ({"flags": (("from_the_future", "x"),)}, "from_the_future", 2),
    ],
)
def test_each_doubt_is_found_once(make_row: MakeRow, changes: dict[str, Any], code: str, weight: int) -> None:
    assert codes(make_row(**{**SOUND, **changes})) == [(code, weight)]


def test_fidelity_verifies_where_accuracy_cannot(make_row: MakeRow) -> None:
    seeded = {**SOUND, "accuracy": None, "accuracy_value": None}
    assert trust_of_row(make_row(**seeded, fidelity={"cosine": 0.99999})).grade == "A"
    assert codes(make_row(**seeded, fidelity={"reason": "no reference"})) == [("not_verified", 1)]


def test_a_flag_and_what_it_stands_for_count_once(make_row: MakeRow) -> None:
    row = make_row(**{**SOUND, "effective_precision": None, "flags": (("precision_unknown", "It does not tell."),)})
    assert [doubt.sentence for doubt in trust_of_row(row).doubts] == ["It does not tell."]


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "invalid", "reason": "cpu ran"},
        {"status": "failed", "reason": "crashed"},
        {"accuracy": {"gate": "failed"}},
        {"flags": (("gate_failed", "It lost 30 %."),)},
    ],
)
def test_what_is_no_number_to_use_is_an_f(make_row: MakeRow, changes: dict[str, Any]) -> None:
    trust = trust_of_row(make_row(**{**SOUND, **changes}))
    assert trust.grade == "F"
    assert trust.doubts[0].sentence


def test_the_gravest_doubt_stands_first(make_row: MakeRow) -> None:
    row = make_row(**{**SOUND, "batch": None, "flags": (("threads_differ", "x"), ("throttled", "y"))})
    weights = [doubt.weight for doubt in trust_of_row(row).doubts]
    assert weights == sorted(weights, reverse=True)
    assert trust_of_row(row).grade == "C"  # 2 + 1 + 1


def test_throughput_carries_a_row_without_latency(make_row: MakeRow) -> None:
    offline = {**SOUND, "scenario": "offline", "p50_ms": None, "throughput_per_s": 20.0, "quantiles": None}
    sure = {"value": 20.0, "low": 19.0, "high": 21.0, "method": "95 % interval of the median over 6 trials"}
    assert trust_of_row(make_row(**offline, throughput=sure)).grade == "A"
    assert codes(make_row(**offline, throughput=None)) == [("no_spread", 2)]


# As harness.runner.scenario_figures writes them: of the rate that meets the limit, and of a percentile at it.
MET: dict[str, Any] = {"value": 63.0, "low": 63.0, "high": 80.0, "reason": None,
       "method": "highest rate at which p99 keeps 15 ms; high is the lowest that misses it"}  # fmt: skip


@pytest.mark.parametrize(
    ("throughput", "trials", "expected"),
    [
        (MET, 3, []),
        (MET, 1, [("one_trial", 2)]),
        (MET, None, []),
        ({**MET, "high": None}, 3, []),  # no rate missed it
        ({**MET, "low": None, "high": None}, 3, [("no_spread", 2)]),
        ({"value": None, "reason": "no rate meets it"}, 3, [("range_only", 1)]),
        ({"value": None, "reason": "no rate meets it"}, 1, [("one_trial", 2)]),
    ],
)
def test_a_server_s_rate_stands_between_the_rates_that_were_offered(
    make_row: MakeRow, throughput: dict[str, Any], trials: int | None, expected: list[tuple[str, int]]
) -> None:
    held = f"bounds hold the range of {trials} trials and the 95 % interval of 900 independent samples"
    p50 = {
        "value": 5.0,
        "low": 4.9,
        "high": 5.1,
        "method": f"floor(n p) of all trials together; {held}, 1 unit measured",
    }
    row = make_row(
        **{**SOUND, "scenario": "server", "quantiles": {"p50": p50}, "p50_ms": 5.0, "trials": trials or 3},
        throughput=throughput, throughput_per_s=throughput["value"], sampling={"trials": trials} if trials else None,
    )  # fmt: skip
    assert codes(row) == expected


def test_a_server_s_record_and_its_row_are_graded_alike(make_row: MakeRow) -> None:
    case = Case("w", None, None, "fp32", "fp32", "onnxruntime", "cpu", "cpu", "server")
    record = Measurement(
        "m", case, case.key, "ok", effective=Effective("cpu", precision="fp32", runtime_version="1.32"),
        throughput_per_s=63.0, throughput=Quantile(**MET), trials=(Trial("t", "timing", "ok"),),
        sampling=Sampling(1, "capacity", "fixed", "x"), fidelity=Fidelity("fp32", cosine=0.9999),
    )  # fmt: skip
    row = make_row(
        scenario="server", p50_ms=None, throughput_per_s=63.0, throughput=MET, sampling={"trials": 1},
        fidelity={"cosine": 0.9999}, environment_digest="e" * 64,
    )  # fmt: skip
    found = trust_of_measurement(record, Source("measured", "weighbridge"), Environment({"cpu": "x"}, {}))
    assert found == trust_of_row(row)
    assert [doubt.code for doubt in found.doubts] == ["one_trial"]


def test_a_cold_start_needs_no_window(make_row: MakeRow) -> None:
    row = make_row(**{**SOUND, "scenario": "cold_start", "p50_ms": None, "throughput_per_s": None, "quantiles": None})
    assert trust_of_row(row).grade == "A"


def test_a_record_and_its_row_are_graded_alike(make_row: MakeRow) -> None:
    quantile = Quantile(**RANGED)
    case = Case("w", None, None, "fp32", "fp32", "onnxruntime", "cpu", "cpu", "single_stream")
    record = Measurement(
        "m", case, case.key, "ok", effective=Effective("cpu", precision="fp32", runtime_version="1.32"),
        latency_ms=Latency(10, 50.0, 45.0, 60.0, quantile, quantile, quantile, quantile, quantile),
        flags=(Flag("steal", "7 % stolen"),), trials=(Trial("t", "timing", "ok"),),
        accuracy=Accuracy("top1", None, "no data", gate="undecided"), fidelity=Fidelity("fp32", cosine=0.9999),
    )  # fmt: skip
    row = make_row(
        quantiles={"p50": RANGED}, flags=(("steal", "7 % stolen"),), accuracy={"gate": "undecided"},
        fidelity={"cosine": 0.9999}, environment_digest="e" * 64,
    )  # fmt: skip
    source, environment = Source("measured", "weighbridge"), Environment({"cpu": "x"}, {})
    assert trust_of_measurement(record, source, environment) == trust_of_row(row)
    assert trust_of_measurement(replace(record, status="failed", reason="x"), source, environment).grade == "F"


def test_every_flag_says_what_it_means() -> None:
    constants = {value for name, value in vars(flags).items() if name.isupper() and isinstance(value, str)}
    assert constants == set(flags.KINDS)
    for code, kind in flags.KINDS.items():
        assert (
            code == kind.code and kind.title and kind.meaning.endswith(".") and 0 <= kind.weight <= 3 and kind.touches
        )
    assert set(flags.KINDS) >= flags.UNSETTLED
