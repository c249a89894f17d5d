"""Accuracy from predictions that a worker wrote, beside the labels that only the parent has."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

import pytest

from harness.canonical import sha256_hex
from harness.datasets import Dataset
from harness.judgement import flags
from harness.runner.accuracy import Judged, accuracy_of, with_reference
from harness.runner.cases import PlannedCase, PlannedTrial, case_of, pick_key
from harness.runner.plan import Intent
from harness.runner.qualities import qualities_of
from harness.runner.trial_process import Outcome
from harness.suites import Group
from harness.tasks.base import Sample
from harness.worker.job import Job
from harness.workloads.definition import Workload

SAMPLES = tuple(Sample(name, label=label) for name, label in (("a", 1), ("b", 2), ("c", [0, 3]), ("d", 1)))
DATA = Dataset("mine", "Mine", "d" * 64, SAMPLES, note="Not ImageNet.")
MANY = Dataset("many", "Many", "e" * 64, tuple(Sample(str(n), label=1) for n in range(100)))


def planned(
    data: Dataset | None = DATA,
    reason: str | None = None,
    metric: str | None = "top1",
    backend: str = "onnxruntime",
    overlap: str | None = None,
) -> PlannedCase:
    group = Group("single_stream", ("w",), {})
    workload = Workload("w", "W", "w", "image_classification", "w", metric=metric)
    intent = Intent(workload, backend, "cpu", "single_stream", "fp32", "fp32", 1, 1, None, 0, group)
    job = Job(trial_id="t", kind="accuracy", backend=backend, out_dir="", timeout_s=1)
    return PlannedCase(
        intent,
        case_of(intent, None, None),
        "m",
        None,
        (PlannedTrial(f"{backend}-accuracy", job),),
        accuracy_data=data,
        accuracy_reason=reason,
        calibration_overlap=overlap,
    )


def predictions(**classes: list[int]) -> Outcome:
    lines = [
        json.dumps({"id": name, "prediction": {"classes": found, "scores": [0.0] * len(found)}}) + "\n"
        for name, found in classes.items()
    ]
    return Outcome("ok", None, {}, {"predictions": "".join(lines).encode()})


def right_in(first: int, wrong: int = 0) -> Outcome:
    """Predictions on MANY: the first so many are right, but for the first `wrong`."""
    return predictions(**{str(n): [1 if wrong <= n < first else 0] for n in range(100)})


def judged(outcome: Outcome, data: Dataset = MANY) -> Judged:
    found = accuracy_of(planned(data), outcome, "quick")
    assert found is not None
    return found


def test_the_share_of_right_answers_with_its_data_and_predictions() -> None:
    outcome = predictions(a=[1, 2], b=[0, 2], c=[3, 1], d=[1, 0])
    accuracy = judged(outcome, DATA).accuracy
    assert (accuracy.metric, accuracy.value, accuracy.samples) == ("top1", 0.75, 4)
    assert accuracy.dataset == f"mine@{'d' * 16}"
    assert accuracy.note == "Not ImageNet."
    assert accuracy.predictions == sha256_hex(zlib.compress(outcome.files["predictions"], 6))


def test_why_there_is_none() -> None:
    outcome = predictions(a=[1], b=[2])
    for case, given, words in (
        (planned(), None, "interrupted"),
        (planned(), Outcome("failed", "It crashed."), "The accuracy trial failed: It crashed."),
        (planned(), outcome, "2 of 4 predictions are missing"),
        (planned(), replace(outcome, files={"predictions": b"{"}), "cannot be judged"),
        (planned(None), None, "the suite quick does not measure the accuracy of w"),
        (planned(None, "No labels here."), None, "No labels here."),
    ):
        found = accuracy_of(case, given, "quick")
        assert found is not None
        assert (found.accuracy.value, found.accuracy.gate) == (None, None)
        assert words in (found.accuracy.reason or "")
    assert accuracy_of(planned(None, metric=None), None, "quick") is None


def test_a_network_without_finite_numbers_has_failed() -> None:
    found = judged(Outcome("failed", "The output 'logits' holds 5 values ...", {"error": "NotFinite"}), DATA)
    assert (found.accuracy.value, found.accuracy.gate, found.accuracy.target) == (None, "failed", 0.99)
    assert found.sentence == "Failed: The output 'logits' holds 5 values ..."


def test_a_reference_gives_the_relative_value_its_interval_and_the_gate() -> None:
    """80 of 100 right at the reference, of which 20 are lost, none gained."""
    found = with_reference(judged(right_in(80, wrong=20)), judged(right_in(80)), None, "").accuracy
    assert (found.reference, found.relative, found.disagreement) == (0.8, 0.75, 0.2)
    assert found.relative_low is not None and found.relative_high is not None
    assert found.relative_low < 0.75 < found.relative_high < 0.99
    assert (found.gate, found.target) == ("failed", 0.99)
    assert "20 lost, 0 gained, on 100 samples. Failed: it keeps 75 %" in (found.method or "")


def test_the_reference_keeps_all_of_itself() -> None:
    found = with_reference(judged(right_in(80)), judged(right_in(80)), 0.99, "").accuracy
    assert (found.relative, found.disagreement, found.gate) == (1.0, 0.0, "passed")


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        (None, "Undecided: no onnxruntime here."),
        (Judged(replace(judged(right_in(80)).accuracy, reason="it crashed")), "has no accuracy: it crashed"),
        (judged(predictions(a=[1], b=[2], c=[0], d=[1]), DATA), "measured on other data, mine@"),
        (judged(right_in(0)), "the reference has no right answer"),
    ],
)
def test_without_a_reference_on_the_same_samples_the_gate_is_undecided(reference: Judged | None, words: str) -> None:
    found = with_reference(judged(right_in(80)), reference, 0.99, "no onnxruntime here.").accuracy
    assert (found.relative, found.gate) == (None, "undecided")
    assert words in (found.method or "")


def test_data_that_calibrated_a_file_pass_no_gate() -> None:
    mine, reference = judged(right_in(80)), judged(right_in(80))
    overlap = "7 of the samples set the scales of the file."
    found = with_reference(mine, reference, 0.99, "", overlap)
    assert (found.accuracy.gate, found.sentence) == ("undecided", f"Undecided: {overlap}")
    broken = with_reference(judged(right_in(80, wrong=70)), reference, 0.99, "", overlap)
    assert broken.accuracy.gate == "failed"


def test_each_runtime_is_held_against_the_reference_and_flagged() -> None:
    cases = [planned(MANY), planned(MANY, backend="openvino", overlap="7 samples."), planned(MANY, backend="tflite")]
    outcomes = {
        "onnxruntime-accuracy": right_in(80),
        "openvino-accuracy": right_in(80),
        "tflite-accuracy": right_in(80, wrong=60),
    }
    found = qualities_of(cases, outcomes, "quick")
    codes = {case.intent.backend: [flag.code for flag in found[pick_key(case)].flags] for case in cases}
    assert codes == {
        "onnxruntime": [],
        "openvino": [flags.GATE_UNDECIDED, flags.OVERLAPPING_CALIBRATION],
        "tflite": [flags.GATE_FAILED],
    }
    alone = qualities_of(cases[2:], outcomes, "quick")[pick_key(cases[2])]
    assert alone.accuracy is not None and alone.accuracy.gate == "undecided"
