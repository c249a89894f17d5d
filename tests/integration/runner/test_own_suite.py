"""A user's suite file with a model and labelled pictures of their own, without touching code."""

from __future__ import annotations

import json
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from harness.documents import read_run
from harness.records import Run

Weigh = Callable[..., "subprocess.CompletedProcess[str]"]

SUITE = """name = "colours"
version = "1"
accuracy = ["colours"]

[targets]
onnxruntime = ["cpu"]

[[measure]]
scenario = "single_stream"
workloads = ["colours"]
duration_s = 0.1
warmup_s = 0.02
min_queries = 10
threads = [1]

[[measure]]
scenario = "offline"
workloads = ["colours"]
batches = [3]
duration_s = 0.1
warmup_s = 0.02
threads = [1]

[[workload]]
name = "colours"
task = "image_classification"
model = { path = "colours.onnx", format = "onnx" }
dataset = { name = "my-colours", folder = "pictures" }
metric = "top1"
parameters = { size = 8, resize = 8 }
"""


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    """A network whose three logits are the mean red, green and blue, and four pictures, one of them in the wrong folder."""
    import onnx
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("GlobalAveragePool", ["x"], ["m"]), helper.make_node("Flatten", ["m"], ["y"])],
        "colours",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "colours.onnx"))
    pictures = (
        ("a-red", "one", "red"),
        ("b-green", "one", "lime"),
        ("c-blue", "one", "blue"),
        ("c-blue", "two", "red"),
    )
    for folder, name, colour in pictures:
        (tmp_path / "pictures" / folder).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 24), colour).save(tmp_path / "pictures" / folder / f"{name}.png")
    path = tmp_path / "colours.toml"
    path.write_text(SUITE)
    return path


def measured(weigh: Weigh, suite_file: Path, *more: str) -> Run:
    target = suite_file.with_suffix(".json")
    result = weigh("run", str(suite_file), "--no-store", "--json", str(target), *more)
    assert result.returncode == 0, result.stderr
    return read_run(target.read_bytes())


def test_three_of_four_pictures_are_right(weigh: Weigh, suite_file: Path) -> None:
    run = measured(weigh, suite_file)
    single, offline = run.measurements
    assert (single.status, offline.status) == ("ok", "ok")
    assert single.accuracy is not None
    assert (single.accuracy.metric, single.accuracy.value, single.accuracy.samples) == ("top1", 0.75, 4)
    assert offline.accuracy is not None
    assert offline.accuracy.value == 0.75  # the same artifact, runtime, target and precision
    assert (single.case.dataset or "").startswith("my-colours@")
    assert (single.case.input_size, offline.case.input_size) == ("1x3x8x8", "3x3x8x8")
    assert single.stages_ms is not None
    assert all(
        value is not None and value > 0
        for value in (single.stages_ms.decode, single.stages_ms.preprocess, single.stages_ms.postprocess)
    )


def test_predictions_are_kept_per_sample(weigh: Weigh, suite_file: Path, own_folders: Path) -> None:
    result = weigh("run", str(suite_file), "--store", f"sqlite:///{own_folders}/x.sqlite", "--json", "-")
    assert result.returncode == 0, result.stderr
    run = read_run(result.stdout.encode())
    trials = {t.kind: t for m in run.measurements for t in m.trials}
    (blob,) = trials["accuracy"].samples
    assert (blob.what, blob.count) == ("predictions", 4)
    assert run.measurements[0].accuracy is not None
    assert blob.sha256 == run.measurements[0].accuracy.predictions
    import sqlite3

    with sqlite3.connect(own_folders / "x.sqlite") as connection:
        data = connection.execute("select data from samples where sha256 = ?", (blob.sha256,)).fetchone()[0]
    lines = [json.loads(line) for line in zlib.decompress(data).splitlines()]
    best = {line["id"]: line["prediction"]["classes"][0] for line in lines}
    assert best == {"a-red/one.png": 0, "b-green/one.png": 1, "c-blue/one.png": 2, "c-blue/two.png": 0}


def test_without_its_pictures_it_is_measured_on_random_inputs_and_says_so(weigh: Weigh, suite_file: Path) -> None:
    suite_file.write_text(SUITE.replace('folder = "pictures"', 'folder = "absent"'))
    single = measured(weigh, suite_file).measurements[0]
    assert single.status == "ok"
    assert single.case.dataset is None
    assert "random_inputs" in {flag.code for flag in single.flags}
    assert single.accuracy is not None
    assert single.accuracy.value is None
    assert "absent of the dataset my-colours does not exist" in (single.accuracy.reason or "")
