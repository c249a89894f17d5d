"""From a case's outcomes to its measurement: status, figures, flags, blobs."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.artifacts import ModelFile, Port
from harness.records import Accuracy, Artifact, Source
from harness.runner.cases import PlannedCase, PlannedTrial, case_of
from harness.runner.measurements import Assembled, assemble
from harness.runner.plan import Intent
from harness.runner.trial_process import Outcome
from harness.suites import Group
from harness.worker.job import Job
from harness.workloads.definition import Workload

SOURCE = Source("measured", "weighbridge", "0.1.0")
ARTIFACT = Artifact("onnx", "fp32", "a" * 64, 10, "m.onnx", source_sha256="b" * 64)
MODEL = ModelFile(ARTIFACT, None, (Port("image", "x", "float32", (0, 3, 4, 4)),), ())  # type: ignore[arg-type]


def planned(scenario: str = "single_stream", trials: int = 2, precision: str = "fp32", threads: int = 2) -> PlannedCase:
    group = Group(scenario, ("w",), {"onnxruntime": ("cpu",)}, trials=trials)
    workload = Workload("w", "Title", "family", "image_classification", "w")
    intent = Intent(workload, "onnxruntime", "cpu", scenario, precision, "fp32", 1, threads, None, 0, group)
    jobs = [Job(trial_id=f"t{n}", kind="timing", backend="onnxruntime", out_dir="", timeout_s=1) for n in range(trials)]
    case = case_of(intent, MODEL, "data@1")
    return PlannedCase(
        intent,
        case,
        "00000000-0000-0000-0000-000000000009",
        ARTIFACT,
        tuple(PlannedTrial(f"k{n}", job) for n, job in enumerate(jobs)),
        energy_reason="Not measured: no meter.",
    )


def good(milliseconds: list[float], throughput: float = 100.0, what: str = "latency_ns", **report: Any) -> Outcome:
    told = {"target": "cpu", "precision": "fp32", "threads": 2, "runtime": "onnxruntime", "runtime_version": "1.32.0"}
    data = np.array([round(value * 1e6) for value in milliseconds], dtype="<i8").tobytes()
    document = {
        "window_start_ns": 1,
        "window_end_ns": 2,
        "discarded_warmup": 3,
        "throughput_per_s": throughput,
        "cold_start_ms": {"process": 80.0},
        "report": {**told, **report},
        "peak_rss_bytes": 100_000_000,
        "python": "3.11.7",
    }
    return Outcome("ok", None, document, {what: data})


def joined(case: PlannedCase, *outcomes: Outcome, accuracy: Accuracy | None = None, processors: int = 2) -> Assembled:
    return assemble(case, list(zip(case.trials, outcomes, strict=False)), accuracy, processors, SOURCE)


def test_figures_of_all_trials_and_raw_samples_beside() -> None:
    made = joined(planned(), good([1, 2, 3], 100.0), good([2, 3, 4], 300.0))
    measurement = made.measurement
    assert measurement.status == "ok", measurement.reason
    assert measurement.latency_ms is not None
    assert (measurement.latency_ms.count, measurement.latency_ms.mean) == (6, 2.5)
    assert measurement.throughput_per_s == 200.0  # the median of the trials
    assert measurement.memory_mb is not None
    assert measurement.memory_mb.peak_rss == 100.0
    assert measurement.cold_start_ms is not None
    assert (measurement.cold_start_ms.process, measurement.cold_start_ms.load) == (80.0, None)
    assert measurement.energy is not None
    assert (measurement.energy.per_inference_j, measurement.energy.reason) == (None, "Not measured: no meter.")
    assert measurement.case.input_size == "1x3x4x4"
    (blob,) = measurement.trials[0].samples
    assert (blob.what, blob.count, blob.bytes) == ("latency_ns", 3, len(made.blobs[blob.sha256]))
    raw = zlib.decompress(made.blobs[blob.sha256])
    assert np.frombuffer(raw, "<i8").tolist() == [1_000_000, 2_000_000, 3_000_000]
    assert {flag.code for flag in measurement.flags} == {"trials_disagree"}  # 2 and 3 lie 40 % apart


def test_offline_has_throughput_and_no_latency() -> None:
    measurement = joined(planned("offline", 1), good([5, 6], 42.0, what="query_ns")).measurement
    assert measurement.status == "ok", measurement.reason
    assert (measurement.latency_ms, measurement.throughput_per_s, measurement.stages_ms) == (None, 42.0, None)


@pytest.mark.parametrize(
    ("case", "report", "reason"),
    [
        (planned(), {"precision": "bf16"}, "Not valid: fp32 was asked for, but bf16 is what ran."),
        (planned(), {"target": "other"}, "Not valid: "),
        (planned(precision="bf16"), {}, "Not valid: bf16 was asked for, but fp32 is what ran."),
    ],
)
def test_what_ran_otherwise_than_asked_is_invalid(case: PlannedCase, report: dict[str, str], reason: str) -> None:
    measurement = joined(case, good([1, 2], **report), good([1, 2], **report)).measurement
    assert measurement.status == "invalid"
    assert (measurement.reason or "").startswith(reason)


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ({"target": "gpu"}, "target cpu and gpu"),
        ({"precision": "bf16"}, "precision fp32 and bf16"),
        ({"precision": None}, "precision fp32 and unknown"),
        ({"devices": ["NVIDIA T4"]}, "devices unknown and NVIDIA T4"),
    ],
)
def test_trials_that_ran_otherwise_than_each_other_make_no_number(report: dict[str, Any], words: str) -> None:
    measurement = joined(planned(), good([1, 2]), good([1, 2], **report)).measurement
    assert measurement.status == "invalid"
    assert words in (measurement.reason or "")
    assert (measurement.latency_ms, measurement.throughput_per_s) == (None, None)


def test_the_vendor_s_own_choice_may_be_any_precision() -> None:
    measurement = joined(
        planned(precision="default"), good([1], precision="bf16"), good([1], precision="bf16")
    ).measurement
    assert measurement.status == "ok"
    assert measurement.effective is not None
    assert (measurement.effective.precision, measurement.case.requested_precision) == ("bf16", "default")


def test_one_failed_trial_takes_the_figures_with_it() -> None:
    crash = Outcome("failed", "The worker was killed by SIGKILL (out of memory?).", last_words="oops")
    measurement = joined(planned(), good([1, 2]), crash).measurement
    assert measurement.status == "failed"
    assert measurement.reason == "1 of 2 timing trials failed: The worker was killed by SIGKILL (out of memory?)."
    assert measurement.latency_ms is None
    assert measurement.throughput_per_s is None
    assert [trial.status for trial in measurement.trials] == ["ok", "failed"]
    assert measurement.trials[1].last_words == "oops"


def test_unsupported_known_only_by_the_worker_stays_unsupported() -> None:
    outcome = Outcome("unsupported", "There is no such option.")
    assert joined(planned(trials=1), outcome).measurement.status == "unsupported"


def test_an_interrupted_case_keeps_what_it_has_and_says_so() -> None:
    measurement = joined(planned(trials=3), good([1, 1])).measurement
    assert measurement.status == "ok"
    assert [flag.message for flag in measurement.flags if flag.code == "fewer_trials"] == [
        "1 of 3 timing trials ended before the run was interrupted."
    ]
    assert joined(planned(trials=3)).measurement.status == "skipped"


def test_flags_tell_what_a_reader_must_know() -> None:
    placement = {"CPUExecutionProvider": 0.4, "XnnpackExecutionProvider": 0.6}
    outcome = replace(good([1, 1], threads=4, precision=None, placement_nodes=placement), notes=("It ended badly.",))
    measurement = joined(replace(planned(trials=1), input_note="Inputs are random."), outcome).measurement
    messages = {flag.code: flag.message for flag in measurement.flags}
    assert set(messages) == {
        "precision_unknown", "threads_oversubscribed", "threads_differ", "mixed_placement", "random_inputs",
        "worker_ended_badly",
    }  # fmt: skip
    assert messages["threads_oversubscribed"] == "4 threads ran on 2 available processors."
    assert messages["threads_differ"] == "2 threads were asked for, 4 ran."
    assert "XnnpackExecutionProvider 60%" in messages["mixed_placement"]


def test_a_case_that_cannot_run_has_its_reason_and_nothing_else() -> None:
    case = replace(planned(trials=0), status="unsupported", reason="No GPU here.")
    measurement = joined(case).measurement
    assert (measurement.status, measurement.reason) == ("unsupported", "No GPU here.")
    assert measurement.effective is None
    assert measurement.trials == ()
