"""What a suite's own workloads name and is not there is said at once, with every path."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.suites import Suite, read_suite
from harness.suites.own_files import check_own_models, missing_data

SUITE = """
name = "mine"
version = "1"
targets = { onnxruntime = ["cpu"] }
[[measure]]
scenario = "single_stream"
workloads = ["shelf"]
[[workload]]
name = "shelf"
task = "image_classification"
model = { path = "model.onnx", format = "onnx" }
dataset = { name = "shop", folder = "fotos", labels = "labels.tsv" }
metric = "top1"
"""


def suite(tmp_path: Path) -> Suite:
    (tmp_path / "mine.toml").write_text(SUITE)
    return read_suite(str(tmp_path / "mine.toml"))[0]


def test_a_missing_model_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_own_models(suite(tmp_path).workloads.values(), "mine.toml")
    words = f"mine.toml: there is no model file {tmp_path / 'model.onnx'} for the workload shelf."
    assert str(caught.value).startswith(words)
    (tmp_path / "model.onnx").touch()
    check_own_models(suite(tmp_path).workloads.values(), "mine.toml")


def test_missing_data_are_said_with_what_follows(tmp_path: Path) -> None:
    what_follows = "shelf is measured on random inputs, its accuracy not at all."
    folder = f"The folder {tmp_path / 'fotos'} of the dataset shop does not exist: {what_follows}"
    assert missing_data(suite(tmp_path).workloads.values()) == (folder,)
    (tmp_path / "fotos").mkdir()
    labels = f"The table of labels {tmp_path / 'labels.tsv'} of the dataset shop does not exist: {what_follows}"
    assert missing_data(suite(tmp_path).workloads.values()) == (labels,)
    (tmp_path / "labels.tsv").touch()
    assert missing_data(suite(tmp_path).workloads.values()) == ()
