"""The table at the end of a run, and what makes the exit status 1."""

from __future__ import annotations

from dataclasses import replace

from agents.device.run_report import COLUMNS, complaints, table_rows
from harness.records import (
    Accuracy,
    Case,
    Device,
    Effective,
    Environment,
    Flag,
    Latency,
    Measurement,
    MeasurementStatus,
    Quantile,
    Run,
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
