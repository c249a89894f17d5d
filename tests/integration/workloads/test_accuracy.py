"""Each network's accuracy on its data, against what others measured with it, and across runtimes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.datasets import DatasetSpec, open_dataset
from harness.tasks import create
from harness.tasks.metrics import Evaluation
from harness.workloads.definition import load_workloads

Measure = Callable[..., Evaluation]
RUNTIMES = ("onnxruntime", "openvino", "tflite")
pytestmark = pytest.mark.slow


def test_efficientnet_is_as_accurate_on_every_runtime(measure: Measure) -> None:
    """98 of the 113 labelled pictures, 86.7 %, was measured with the published weights in another framework."""
    found = {backend: measure("efficientnet-lite0", backend) for backend in RUNTIMES}
    for result in found.values():
        assert result.metric == "top1"
        assert result.value == pytest.approx(98 / 113, abs=0.01)
        assert result.details["top5"] == pytest.approx(107 / 113, abs=0.01)
    assert max(r.value for r in found.values()) - min(r.value for r in found.values()) <= 0.01


def test_basic_pitch_hears_the_notes_on_every_runtime(measure: Measure) -> None:
    for backend in RUNTIMES:
        result = measure("basic-pitch", backend)
        assert result.metric == "frame_f1" and result.value == pytest.approx(0.88, abs=0.01)


def test_basic_pitch_gives_the_same_numbers_on_every_runtime(outputs: Callable[..., object], cache: Path) -> None:
    dataset = open_dataset(DatasetSpec("synthesised-notes"), cache=cache)
    task = create("note_transcription", {})
    inputs = [task.preprocess(task.decode(sample)) for sample in dataset.samples[:6]]
    found = {backend: outputs("basic-pitch", backend, inputs) for backend in RUNTIMES}
    for backend in RUNTIMES[1:]:
        for reference, other in zip(found["onnxruntime"], found[backend], strict=True):  # type: ignore[call-overload]
            assert set(reference) == set(other) == {"note", "onset", "contour"}
            for role in reference:
                assert np.abs(reference[role] - other[role]).max() < 1e-4, (backend, role)


def test_sentences_keep_their_feeling(measure: Measure) -> None:
    """89.7 % was measured on all tweets; on the workload's thousand a point more or less is sampling."""
    result = measure("minilm-l6", "onnxruntime")
    assert result.metric == "linear_probe" and result.value == pytest.approx(0.897, abs=0.02)
    assert result.value > result.details["majority_class"] + 0.1


@pytest.mark.parametrize("backend", RUNTIMES)
def test_voices_are_told_from_music_and_noise(measure: Measure, backend: str) -> None:
    result = measure("silero-vad", backend)
    assert result.metric == "auc" and result.value > 0.99
    assert result.details["frame_auc"] > 0.95


def test_a_stream_without_its_state_is_worse(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is really carried: dropped after every frame, the answers get worse."""
    with_state = measure("silero-vad", "onnxruntime")
    monkeypatch.setattr("harness.worker.accuracy.carried", lambda task, sample, inputs, previous: inputs)
    without = measure("silero-vad", "openvino")
    assert without.details["frame_auc"] < with_state.details["frame_auc"] - 0.005


def test_faces_are_found_alike_on_every_runtime(measure: Measure) -> None:
    """Small faces under noise: most are found, some missed, so that damage to the network would show."""
    found = [measure("centerface", backend) for backend in RUNTIMES]
    assert {result.metric for result in found} == {"ap50"}
    assert all(0.5 < result.value < 0.95 for result in found)
    assert max(result.value for result in found) - min(result.value for result in found) <= 0.01


def test_faces_are_found_in_photographs_of_people_and_not_in_others(
    outputs: Callable[..., list[dict[str, np.ndarray]]], cache: Path
) -> None:
    dataset = open_dataset(DatasetSpec("photos"), cache=cache)
    task = create("face_detection", load_workloads()["centerface"].parameters)
    inputs = [task.preprocess(task.decode(sample)) for sample in dataset.samples]
    counts = {}
    for sample, maps in zip(dataset.samples, outputs("centerface", "onnxruntime", inputs), strict=True):
        counts[sample.id] = len(task.postprocess(maps)[0]["boxes"])
    assert counts["china"] == counts["flower"] == 0
    assert all(count == 1 for name, count in counts.items() if name not in ("china", "flower"))
