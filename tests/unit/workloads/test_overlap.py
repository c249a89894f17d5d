"""Data that set a quantised file's scales must not judge it: seen by identity and, under any name, by content."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.artifacts import ModelFile
from harness.datasets import Dataset
from harness.datasets.definition import contents_of
from harness.datasets.overlap import refuse_shared, shared_with_calibration
from harness.errors import ModelError
from harness.records import Artifact
from harness.tasks.base import Sample


def pictures(name: str, *contents: str) -> Dataset:
    samples = tuple(Sample(f"{name}-{number}", (f"/{name}/{number}",)) for number in range(len(contents)))
    files = {f"/{name}/{number}": content * 64 for number, content in enumerate(contents)}
    return Dataset(name, name, name[0] * 64, samples, files=files)


def quantised(calibration: Dataset | None) -> ModelFile:
    identity = calibration.identity if calibration is not None else None
    artifact = Artifact("onnx", "int8", "c" * 64, 1, "m.onnx", calibration=identity)
    contents = contents_of(calibration) if calibration is not None else ()
    return ModelFile(artifact, Path("m.onnx"), (), (), calibrated_on=contents)


def test_two_sets_without_a_common_picture_are_fine() -> None:
    evaluation = pictures("judging", "a", "b")
    assert shared_with_calibration(quantised(pictures("scales", "d", "e")), evaluation) is None
    assert shared_with_calibration(quantised(None), evaluation) is None
    refuse_shared("scales@1", contents_of(pictures("scales", "d", "e")), evaluation)


def test_one_common_picture_under_another_name_is_found() -> None:
    evaluation, calibration = pictures("judging", "a", "b", "f"), pictures("scales", "d", "b")
    said = shared_with_calibration(quantised(calibration), evaluation)
    assert said is not None
    assert said.startswith(f"1 of the 3 contents of {evaluation.identity} also set the scales of the file")
    with pytest.raises(ModelError, match="share 1 contents with the evaluation data judging@"):
        refuse_shared(calibration.identity, contents_of(calibration), evaluation)


def test_the_same_set_is_found_by_its_identity_alone() -> None:
    """An artifact of which only the record is known has no list of contents."""
    evaluation = pictures("judging", "a", "b")
    model = replace(quantised(evaluation), calibrated_on=())
    assert "the same data that judge it" in (shared_with_calibration(model, evaluation) or "")
    with pytest.raises(ModelError, match="share everything"):
        refuse_shared(evaluation.identity, (), evaluation)


def test_texts_are_told_by_their_words() -> None:
    def texts(name: str, *words: str) -> Dataset:
        return Dataset(name, name, name[0] * 64, tuple(Sample(word, data={"text": word}) for word in words))

    assert shared_with_calibration(quantised(texts("s", "one", "two")), texts("j", "two", "three")) is not None
    assert shared_with_calibration(quantised(texts("s", "one", "two")), texts("j", "three")) is None
