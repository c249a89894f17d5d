"""The table at the end of a run, and what makes the exit status 1."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.device.run_report import COLUMNS, blank_percentiles, complaints, print_table, table_rows
from harness.records import (
    Accuracy,
    Case,
    ColdStart,
    Device,
    Effective,
    Environment,
    Flag,
    Latency,
    Measurement,
    MeasurementStatus,
    Quantile,
    RateCurve,
    Run,
    Sampling,
    Source,
    SuiteRef,
    Trial,
)
from harness.runner.plan import Selection

NONE = Quantile(None, reason="too few")


def measurement(
    workload: str = "w",
    backend: str = "onnxruntime",
    target: str = "cpu",
    status: MeasurementStatus = "ok",
    reason: str | None = None,
    asked: str = "fp32",
    threads: int | None = 2,
) -> Measurement:
    case = Case(workload, None, None, "fp32", asked, backend, target, "cpu", "single_stream", threads=threads)
    ok = status == "ok"
    return Measurement(
        measurement_id=f"{workload}-{backend}-{target}-{asked}-{threads}",
        case=case,
        case_key=case.key,
        status=status,
        reason=reason,
        effective=Effective("cpu", precision="bf16" if asked == "default" else "fp32") if ok else None,
        latency_ms=Latency(2, 1.0, 1.0, 1.0, Quantile(0.05123), NONE, NONE, NONE, NONE) if ok else None,
        throughput_per_s=19512.4 if ok else None,
        accuracy=Accuracy("top1", 0.867) if ok else None,
    )


def run_of(*measurements: Measurement, status: str = "complete") -> Run:
    return Run(
        run_id="r",
        status=status,  # type: ignore[arg-type]
        device=Device("d", "u", "h"),
        environment=Environment({}, {}),
        suite=SuiteRef("quick", "1", "0" * 64),
        trigger="manual",
        started_at="2026-01-01T00:00:00Z",
        finished_at=None,
        source=Source("measured", "weighbridge"),
        measurements=measurements,
    )


def rows(*measurements: Measurement) -> list[dict[str, str]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in table_rows(measurements)]


def test_numbers_keep_three_digits_and_nulls_are_empty() -> None:
    (row,) = rows(measurement())
    assert (row["p50 ms"], row["p99 ms"], row["per s"], row["accuracy"]) == ("0.0512", "", "19512", "86.7%")


def test_gaps_of_one_reason_are_one_line_at_the_end() -> None:
    gaps = [measurement(name, target="cuda", status="unsupported", reason="No CUDA.") for name in "abc"]
    first, last = rows(*gaps, measurement("d"))
    assert (first["workload"], last["workload"]) == ("d", "3 workloads")
    assert (last["status"], last["reason"]) == ("unsupported", "No CUDA.")


def test_the_vendor_s_choice_and_thread_counts_can_be_told_apart() -> None:
    found = rows(measurement(asked="default"), measurement(threads=1), measurement(threads=2))
    assert [(row["precision"], row["scenario"]) for row in found] == [
        ("bf16 (default)", "single_stream t2"),
        ("fp32", "single_stream t1"),
        ("fp32", "single_stream t2"),
    ]


GAP = measurement(target="cuda", status="unsupported", reason="No CUDA.")


def test_what_cannot_run_is_no_failure_unless_asked_for_by_name() -> None:
    run = run_of(measurement(), GAP)
    assert complaints(run, Selection()) == []
    assert complaints(run, Selection(backends=("onnxruntime",))) == []
    (text,) = complaints(run, Selection(targets=("cuda",)))
    assert text == "What was asked for did not run (cuda): No CUDA."
    assert len(complaints(run, Selection(targets=("CUDAExecutionProvider",)))) == 1


def test_a_run_of_which_nothing_ran_is_no_success() -> None:
    assert complaints(run_of(GAP), Selection()) == ["Nothing of it could run here; the reasons are above."]


def test_backend_and_target_that_fail_for_one_reason_are_one_sentence() -> None:
    (text,) = complaints(run_of(GAP), Selection(backends=("onnxruntime",), targets=("cuda",)))
    assert text == "What was asked for did not run (onnxruntime, cuda): No CUDA."


def test_failed_and_invalid_cases_always_count() -> None:
    run = run_of(measurement(), measurement("x", status="failed"), measurement("y", status="invalid"))
    (text,) = complaints(run, Selection())
    assert text.startswith("2 of 3 cases failed or are invalid")


def test_a_failed_accuracy_trial_counts_and_an_interrupted_run_too() -> None:
    lost = replace(measurement(), trials=(Trial("t", "accuracy", "failed", "It crashed."),))
    found = complaints(run_of(lost, status="interrupted"), Selection())
    assert found[0] == "1 trial beside the timing failed: It crashed."
    assert "weigh run --resume r" in found[1]


def test_trials_that_disagree_are_not_plainly_ok() -> None:
    shaken = replace(measurement(), flags=(Flag("trials_disagree", "The medians of 2 trials lie 80% apart."),))
    steady = measurement("v")
    status = COLUMNS.index("status")
    assert [row[status] for row in table_rows([shaken, steady])] == ["ok, unsteady", "ok"]


def test_what_tells_cases_of_one_scenario_apart_is_in_their_row() -> None:
    def scenario(name: str, **parameters: object) -> str:
        one = measurement()
        case = replace(
            one.case, scenario=name, scenario_parameters=parameters, streams=2 if name == "offline" else None
        )
        (row,) = table_rows([replace(one, case=case)])
        return row[COLUMNS.index("scenario")]

    assert scenario("cold_start", file_cache="cold", compile_cache="off") == "cold_start cold file"
    assert scenario("cold_start", file_cache="warm", compile_cache="warm") == "cold_start warm file warm compile cache"
    assert scenario("multi_stream", samples_per_query=8) == "multi_stream n8"
    assert scenario("server", limit_ms=15.0, percentile=99) == "server 15 ms"
    assert scenario("server", limit_ms=None, percentile=99) == "server"
    assert scenario("duty_cycle", period_s=0.5) == "duty_cycle 0.5 s"
    assert scenario("offline") == "offline s2"


def test_how_sure_a_case_is_stands_beside_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "p50: The interval over 9 trials is within 12.0% of the median, 5.0% was asked for; the budget is spent."
    sampling = Sampling(9, "p50", "budget_spent", f"{sentence} 1 unit measured.", (8, 12), 0.05, 0.12)
    one = replace(measurement(), sampling=sampling, flags=(Flag("not_narrow", sentence),))
    (row,) = table_rows([one])
    assert row[COLUMNS.index("within")] == "12.0%"
    print_table(run_of(one))
    assert "1 cases are less sure than was asked for (1: the budget is spent)." in capsys.readouterr().out
    print_table(run_of(measurement()))
    assert "within" not in capsys.readouterr().out


def test_a_cold_start_says_when_the_first_answer_came() -> None:
    one = measurement()
    case = replace(one.case, scenario="cold_start", scenario_parameters={"file_cache": "cold", "compile_cache": "off"})
    cold = ColdStart(process=50.0, import_=100.0, load=200.0, compile=None, first_inference=30.0)
    (row,) = table_rows([replace(one, case=case, latency_ms=None, cold_start_ms=cold)])
    assert row[COLUMNS.index("reason")] == "the first answer came after 380.0 ms (cold file)"


def test_an_empty_percentile_is_explained_once(capsys: pytest.CaptureFixture[str]) -> None:
    one = measurement()
    assert one.latency_ms is not None
    full = replace(one, latency_ms=replace(one.latency_ms, p99=Quantile(0.06)))
    unlike = Quantile(None, reason="the trials are too short and too unlike for this percentile")
    other = replace(one, latency_ms=replace(one.latency_ms, p99=unlike))
    offline = replace(one, latency_ms=None)
    assert blank_percentiles([full, offline, measurement(status="failed")]) == []
    # By hand: 0.99^367 = 0.0250102 and 0.99^368 = 0.0247601, so 368 is the least with 0.99^n <= 0.025.
    line = "No p99: it takes 368 independent samples; see `weigh results --json`."
    assert blank_percentiles([one, offline]) == [line]
    assert blank_percentiles([one, one, other, full]) == [
        "No p99 in 2 of 4 cases: it takes 368 independent samples; see `weigh results --json`.",
        f"No p99 in 1 of 4 cases: {unlike.reason}; see `weigh results --json`.",
    ]
    print_table(run_of(one))
    assert line in capsys.readouterr().out


def test_the_first_answer_told_is_the_recorded_median_of_the_starts() -> None:
    one = measurement()
    case = replace(one.case, scenario="cold_start", scenario_parameters={"file_cache": "cold", "compile_cache": "off"})
    told = {"first_answer": {"value": 390.0, "low": 350.0, "high": 420.0, "method": "95 % interval"}}
    cold = ColdStart(process=50.0, import_=100.0, load=200.0, compile=None, first_inference=30.0, intervals=told)
    (row,) = table_rows([replace(one, case=case, latency_ms=None, cold_start_ms=cold)])
    assert row[COLUMNS.index("reason")] == "the first answer came after 390.0 ms (cold file)"


def test_a_server_without_a_rate_says_why() -> None:
    one = measurement()
    case = replace(one.case, scenario="server", scenario_parameters={"limit_ms": 15.0, "percentile": 99})
    curve = RateCurve((), limit_ms=15.0, reason="At no rate is it sure that p99 keeps 15 ms.")
    (row,) = table_rows([replace(one, case=case, throughput_per_s=None, rate_curve=curve)])
    assert "At no rate is it sure that p99 keeps 15 ms" in row


def test_a_model_that_failed_its_gate_is_not_plainly_ok() -> None:
    broken = replace(measurement(), accuracy=Accuracy("top1", 0.283, relative=0.327, gate="failed", samples=113))
    sound = replace(measurement("x"), accuracy=Accuracy("top1", 0.867, relative=1.0, gate="passed", samples=113))
    status = COLUMNS.index("status")
    assert [row[status] for row in table_rows([broken, sound])] == ["gate failed", "ok"]
