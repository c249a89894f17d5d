"""Accuracy from predictions that a worker wrote, beside the labels that only the parent has."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

from harness.canonical import sha256_hex
from harness.datasets import Dataset
from harness.records import Accuracy
from harness.runner.accuracy import accuracy_of, with_reference
from harness.runner.cases import PlannedCase, case_of
from harness.runner.plan import Intent
from harness.runner.trial_process import Outcome
from harness.suites import Group
from harness.tasks.base import Sample
from harness.workloads.definition import Workload

SAMPLES = tuple(Sample(name, label=label) for name, label in (("a", 1), ("b", 2), ("c", [0, 3]), ("d", 1)))
DATA = Dataset("mine", "Mine", "d" * 64, SAMPLES, note="Not ImageNet.")


def planned(data: Dataset | None = DATA, reason: str | None = None, metric: str | None = "top1") -> PlannedCase:
    group = Group("single_stream", ("w",), {})
    workload = Workload("w", "W", "w", "image_classification", "w", metric=metric)
    intent = Intent(workload, "onnxruntime", "cpu", "single_stream", "fp32", "fp32", 1, 1, None, 0, group)
    return PlannedCase(intent, case_of(intent, None, None), "m", None, accuracy_data=data, accuracy_reason=reason)


def predictions(**classes: list[int]) -> Outcome:
    lines = [
        json.dumps({"id": name, "prediction": {"classes": found, "scores": [0.0] * len(found)}}) + "\n"
        for name, found in classes.items()
    ]
    return Outcome("ok", None, {}, {"predictions": "".join(lines).encode()})


def test_the_share_of_right_answers_with_its_data_and_predictions() -> None:
    outcome = predictions(a=[1, 2], b=[0, 2], c=[3, 1], d=[1, 0])
    accuracy = accuracy_of(planned(), outcome, "quick")
    assert accuracy is not None
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
        accuracy = accuracy_of(case, given, "quick")
        assert accuracy is not None
        assert accuracy.value is None
        assert words in (accuracy.reason or "")
    assert accuracy_of(planned(None, metric=None), None, "quick") is None


def test_a_reference_gives_the_relative_value_and_the_gate() -> None:
    judged = with_reference(Accuracy("top1", 0.6, samples=1000), 0.8, 0.99)
    assert (judged.reference, judged.gate) == (0.8, "failed")
    assert judged.relative is not None
    assert abs(judged.relative - 0.75) < 1e-12
    alone = with_reference(Accuracy("top1", 0.6, samples=1000), None, 0.99)
    assert (alone.relative, alone.gate) == (None, "undecided")
    assert with_reference(Accuracy("top1", None, reason="no"), 0.8, 0.99).gate is None
