"""In a comparison, what failed its gate wins nothing; variants are told apart; AUTO is no device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from db.queries import ResultRow
from harness.judgement.comparison import Entry, compare
from harness.judgement.spread import spread_of
from harness.judgement.systems import systems_of
from harness.judgement.verdict import barred

MakeRow = Callable[..., ResultRow]


def entries(rows: list[ResultRow]) -> list[Entry]:
    (base,) = [system for system in systems_of(rows) if system.backend == "onnxruntime" and system.device == "bench-1"]
    return list(compare(rows, base.id).sections[0].entries)


def test_the_fastest_that_failed_its_gate_stands_behind_the_slowest_that_did_not(make_row: MakeRow) -> None:
    rows = [
        make_row(),
        make_row(backend="fast-and-wrong", p50_ms=1.0, accuracy={"gate": "failed"}),
        make_row(backend="slow", p50_ms=500.0, accuracy={"gate": "passed"}),
        make_row(backend="broken", p50_ms=None, status="failed", reason="x"),
    ]
    found = entries(rows)
    assert [entry.system.backend for entry in found] == ["onnxruntime", "slow", "fast-and-wrong", "broken"]
    assert found[2].barred == "failed the accuracy gate"
    assert "It can win nothing." in (found[2].note or "")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"accuracy": {"gate": "passed"}}, None),
        ({"accuracy": {"gate": "undecided"}}, None),
        ({}, None),
        ({"accuracy": {"gate": "failed"}}, "It failed the accuracy gate."),
        ({"flags": (("gate_failed", "x"),)}, "It failed the accuracy gate."),
        ({"accuracy": {"gate": "passed"}, "flags": (("overlapping_calibration", "x"),)}, "data that had calibrated it"),
        ({"flags": (("low_fidelity", "x"),)}, "outputs differ"),
    ],
)
def test_what_may_not_win_says_why(make_row: MakeRow, changes: dict[str, Any], reason: str | None) -> None:
    found = barred(make_row(**changes))
    assert found is None if reason is None else reason in (found or "")


def test_states_of_the_caches_are_entries_of_their_own_against_their_like(make_row: MakeRow) -> None:
    def start(backend: str, cache: str, load: float) -> ResultRow:
        parts = {"process": 10.0, "import": 20.0, "load": load, "compile": None, "first_inference": 5.0}
        return make_row(
            backend=backend, scenario="cold_start", scenario_parameters={"file_cache": cache, "compile_cache": "off"},
            cold_start_ms=parts, p50_ms=None, p90_ms=None, p99_ms=None, throughput_per_s=None,
        )  # fmt: skip

    rows = [start("onnxruntime", "warm", 65.0), start("onnxruntime", "cold", 165.0),
            start("openvino", "warm", 15.0), start("openvino", "cold", 65.0)]  # fmt: skip
    found = {(entry.system.backend, entry.variant): entry for entry in entries(rows)}
    warm = found["openvino", "file cache warm, compile cache off"]
    cold = found["openvino", "file cache cold, compile cache off"]
    assert warm.headline is not None and cold.headline is not None
    assert (warm.headline.value, cold.headline.value) == (50.0, 100.0)
    assert (warm.headline.ratio, cold.headline.ratio) == (0.5, 0.5)  # over 100 and over 200: each beside its like
    judged = warm.judged("first_answer")
    assert judged is not None and judged.verdict.kind == "like_for_like"


def test_a_sweep_of_streams_is_told_apart(make_row: MakeRow) -> None:
    rows = [make_row(scenario="offline", p50_ms=None, streams=streams) for streams in (1, 4)]
    assert [entry.variant for entry in entries(rows)] == ["1 streams", "4 streams"]


def test_auto_is_never_shown_as_a_device(make_row: MakeRow) -> None:
    row = make_row(backend="openvino", target="AUTO", effective={"devices": ["CPU"]})
    assert systems_of([row])[0].label == "Acme CPU 9000, openvino AUTO (ran on CPU)"
    silent = make_row(backend="openvino", target="auto", effective_target=None)
    assert systems_of([silent])[0].label == "Acme CPU 9000, openvino auto (ran on devices it does not tell)"


@pytest.mark.parametrize(
    ("method", "kind", "trials"),
    [
        ("95 % interval of the median over 9 trials, one unit measured", "interval", 9),
        ("95 % interval of the median over 12 trials, 98.75 % at this look, one unit measured", "interval", 12),
        ("floor(n p), 95 % interval of the median over 6 trials, widened to the pooled value", "interval", 6),
        ("floor(n p) of all trials together, range of 3 trials, one unit measured", "range", 3),
        ("floor(n p), 95 % interval within one trial, 20 of 30 samples count as independent", "within_one", 1),
        ("floor(n p)", "none", None),
    ],
)
def test_the_method_of_a_quantile_says_what_its_bounds_promise(method: str, kind: str, trials: int | None) -> None:
    found = spread_of({"value": 5.0, "low": 4.0, "high": 6.0, "method": method})
    assert (found.kind, found.trials) == (kind, trials)
    interval = found.interval
    assert interval is not None and (interval.kind == "interval") == (kind == "interval")


def test_one_trial_without_bounds_is_known_as_one(make_row: MakeRow) -> None:
    found = spread_of({"value": 5.0, "low": None, "high": None, "method": "one trial, no interval over trials"})
    assert (found.kind, found.low) == ("within_one", None)
    assert spread_of(None, 5.0).kind == "none"
    assert spread_of(None).value is None
