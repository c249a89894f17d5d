"""What a suite's own workloads name and is not there is said at once, with every path."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.suites import Suite, read_suite
from harness.suites.own_files import check_own_files

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


def test_every_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_own_files(suite(tmp_path).workloads.values(), "mine.toml")
    words = str(caught.value)
    assert f"mine.toml: there is no model file {tmp_path / 'model.onnx'} for the workload shelf" in words
    assert f"there is no folder {tmp_path / 'fotos'} for the dataset shop of the workload shelf" in words


def test_a_table_of_labels_is_looked_for_where_the_folder_is_there(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()
    (tmp_path / "fotos").mkdir()
    with pytest.raises(UsageError, match="no table of labels"):
        check_own_files(suite(tmp_path).workloads.values(), "mine.toml")
    (tmp_path / "labels.tsv").touch()
    check_own_files(suite(tmp_path).workloads.values(), "mine.toml")
