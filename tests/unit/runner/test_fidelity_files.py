"""Raw outputs as a file, the fidelity made of two of them, and which cases get a reference of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records import Artifact
from harness.runner.cases import PlannedCase, PlannedTrial, case_of, pick_key
from harness.runner.fidelity import fidelity_of
from harness.runner.plan import Intent
from harness.runner.qualities import qualities_of
from harness.runner.references import is_reference, missing_references
from harness.runner.trial_process import Outcome
from harness.suites import Group
from harness.tasks.base import Sample
from harness.worker.finite import NotFinite, require_finite
from harness.worker.job import FidelityInputs, Job, read_job, write_job
from harness.worker.outputs import SampleOutputs, inputs_digest, read_outputs, write_outputs
from harness.workloads.definition import Workload

ARTIFACT = Artifact("onnx", "fp32", "a" * 64, 1, "m.onnx")


def planned(backend: str = "onnxruntime", precision: str = "fp32", kind: str | None = "fidelity") -> PlannedCase:
    workload = Workload("w", "W", "w", "image_classification", "w")
    group = Group("single_stream", ("w",), {})
    intent = Intent(
        workload, backend, "cpu", "offline", precision, "fp32", 8, 2, 2, 0, group, fidelity=kind is not None
    )
    job = Job(trial_id="t", kind=kind or "timing", backend=backend, out_dir="", timeout_s=1)
    trials = (PlannedTrial(f"{backend}-{precision}", job),)
    return PlannedCase(intent, case_of(intent, None, None), "m", ARTIFACT, trials)


def outcome(tmp_path: Path, *rows: list[float], shift: float = 0.0) -> Outcome:
    samples = [
        SampleOutputs(str(n), inputs_digest({"x": np.array([n + shift])}), {"logits": np.array([row], np.float32)})
        for n, row in enumerate(rows)
    ]
    path = tmp_path / "outputs"
    write_outputs(path, samples)
    report = {"precision": "fp32"}
    return Outcome("ok", None, {"report": report}, {"outputs": path.read_bytes()})


def test_outputs_come_back_as_they_were(tmp_path: Path) -> None:
    written = [
        SampleOutputs("a", "1" * 64, {"y": np.arange(6, dtype=np.float32).reshape(2, 3), "s": np.array(2.5)}),
        SampleOutputs("b", "2" * 64, {"y": np.array([[1, -7]], dtype=np.int64), "h": np.array([0.5], np.float16)}),
    ]
    write_outputs(tmp_path / "o", written)
    read = read_outputs((tmp_path / "o").read_bytes())
    assert [(one.id, one.inputs) for one in read] == [("a", "1" * 64), ("b", "2" * 64)]
    for one, other in zip(read, written, strict=True):
        assert {role: array.tolist() for role, array in one.outputs.items()} == {
            role: array.tolist() for role, array in other.outputs.items()
        }
    assert read[0].outputs["y"].dtype == np.float32 and read[1].outputs["y"].dtype == np.float64


@given(st.binary(max_size=200))
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_outputs(data)


def test_a_file_that_is_cut_or_too_long_is_refused(tmp_path: Path) -> None:
    data = outcome(tmp_path, [1, 2]).files["outputs"]
    for wrong in (data[:-1], data + b"\0"):
        with pytest.raises(ValueError, match=r"buffer|longer than they say"):
            read_outputs(wrong)


def test_inputs_are_alike_whatever_type_a_file_wants() -> None:
    ids = np.array([[3, 5]])
    assert inputs_digest({"ids": ids.astype(np.int32)}) == inputs_digest({"ids": ids.astype(np.int64)})
    assert inputs_digest({"ids": ids}) != inputs_digest({"ids": ids.T})


def test_the_job_carries_the_inputs_and_no_label(tmp_path: Path) -> None:
    inputs = FidelityInputs("image_classification", {"size": 8}, (Sample("a", ("/a",), label=3),))
    job = Job(trial_id="t", kind="fidelity", backend="tflite", out_dir="", timeout_s=1, fidelity=inputs)
    write_job(job, tmp_path / "job.json")
    assert "label" not in (tmp_path / "job.json").read_text()
    assert read_job(tmp_path / "job.json").fidelity == replace(inputs, samples=(Sample("a", ("/a",)),))


def test_fidelity_of_two_outcomes(tmp_path: Path) -> None:
    reference = outcome(tmp_path, [1, 2], [2, 1], [5, 0])
    mine = outcome(tmp_path, [1, 2.5], [1, 2])  # a slow device made two of three
    found = fidelity_of(planned("openvino"), mine, planned(), reference)
    assert (found.samples, found.agreement, found.worst_absolute) == (2, 0.5, 1.0)
    assert found.reference == f"onnxruntime cpu fp32, {'a' * 64}"


def test_why_there_is_no_fidelity(tmp_path: Path) -> None:
    good = outcome(tmp_path, [1, 2])
    for mine, its, words in (
        (good, None, "the reference's outputs are missing: the run was interrupted before"),
        (good, Outcome("unsupported", "No onnxruntime."), "outputs are missing: No onnxruntime"),
        (None, good, "Not measured: the run was interrupted before"),
        (Outcome("failed", "It crashed."), good, "Not measured: It crashed."),
        (outcome(tmp_path, [1, 2], shift=0.5), good, "the inputs 0 and 0 are not the same"),
    ):
        found = fidelity_of(planned("openvino"), mine, planned(), its)
        assert found.cosine is None and words in (found.reason or "")


def test_each_case_gets_the_fidelity_of_its_runtime_and_precision(tmp_path: Path) -> None:
    cases = [planned(), planned("openvino"), planned("openvino", kind=None), planned("tflite")]
    outcomes = {
        "onnxruntime-fp32": outcome(tmp_path, [1, 2]),
        "openvino-fp32": outcome(tmp_path, [1, 2]),
        "tflite-fp32": outcome(tmp_path, [2, 1]),
    }
    found = qualities_of(cases, outcomes, "s")
    assert [flag.code for flag in found[pick_key(cases[3])].flags] == ["low_fidelity"]
    shared = found[pick_key(cases[2])].fidelity
    assert shared is not None and shared.worst_absolute == 0.0
    own = found[pick_key(cases[0])].fidelity
    assert own is not None and own.reason == "This is the reference itself."


def test_a_reference_is_added_where_the_cases_hold_none() -> None:
    assert missing_references([planned(), planned("openvino")]) == []
    (intent,) = missing_references([planned("openvino"), planned("tflite"), planned("openvino", "default")])
    assert is_reference(intent) and (intent.scenario, intent.batch, intent.threads) == ("single_stream", 1, None)
    assert (intent.fidelity, intent.accuracy) == (True, False)
    assert missing_references([replace(planned("openvino"), status="failed")]) == []
    # One that cannot run is none: onnxruntime may be missing here.
    assert len(missing_references([replace(planned(), status="unsupported"), planned("openvino")])) == 1


def test_without_a_reference_its_reason_is_told(tmp_path: Path) -> None:
    absent = replace(planned(), status="unsupported", reason="There is no fp32 file.", reference_only=True)
    found = qualities_of([planned("openvino"), absent], {"openvino-fp32": outcome(tmp_path, [1, 2])}, "s")
    fidelity = found[pick_key(planned("openvino"))].fidelity
    assert fidelity is not None and fidelity.reason == "Not measured: There is no fp32 file."


def test_nan_and_infinity_are_no_answer() -> None:
    require_finite({"logits": np.array([1.0, -3.0]), "ids": np.array([1])}, "a")
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(NotFinite, match="'logits' for the sample a holds 1 values of 2"):
            require_finite({"logits": np.array([bad, 1.0])}, "a")
