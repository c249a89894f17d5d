"""A user's own network and labelled folder in a suite file, without code."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image

pytestmark = pytest.mark.slow
WeighCommand = Callable[..., "subprocess.CompletedProcess[str]"]

SUITE = """
name = "colours"
version = "1"
accuracy = ["colour"]

[targets]
onnxruntime = ["cpu"]
openvino = ["cpu"]

[[workload]]
name = "colour"
task = "image_classification"
metric = "top1"
model = { path = "colour.onnx", format = "onnx", tensors = { image = "pixels", logits = "scores" } }
dataset = { name = "swatches", folder = "swatches", labels = "labels.tsv" }
parameters = { size = 32, resize = 32, std = 255.0 }

[[measure]]
scenario = "single_stream"
workloads = ["colour"]
duration_s = 0.2
warmup_s = 0.1
min_queries = 20
limit_s = 2
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A network that answers with the mean of red, green and blue: the brightest channel is the class."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixels"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["scores"]),
        helper.make_node("Relu", ["scores"], ["features"]),
    ]
    ports = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in ("features", "scores")}
    image = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, 32, 32])
    graph = helper.make_graph(nodes, "colour", [image], [ports["features"], ports["scores"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "colour.onnx")
    (tmp_path / "swatches").mkdir()
    colours = {"red": (200, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 200), "teal": (10, 120, 150)}
    for name, colour in colours.items():
        Image.new("RGB", (48, 64), colour).save(tmp_path / "swatches" / f"{name}.jpg")
    # teal is more blue than green: labelled green, it is the one error of four
    (tmp_path / "labels.tsv").write_text("red.jpg\t0\ngreen.jpg\t1\nblue.jpg\t2\nteal.jpg\t1\n", encoding="utf-8")
    path = tmp_path / "colours.toml"
    path.write_text(SUITE, encoding="utf-8")
    return path


def test_an_own_network_is_measured_on_an_own_folder(weigh: WeighCommand, suite: Path, tmp_path: Path) -> None:
    record = tmp_path / "run.json"
    done = weigh("run", str(suite), "--no-store", "--json", str(record))
    assert done.returncode == 0, done.stderr
    measurements = json.loads(record.read_text(encoding="utf-8"))["measurements"]
    assert {m["case"]["backend"] for m in measurements} == {"onnxruntime", "openvino"}
    for measurement in measurements:
        assert measurement["status"] == "ok"
        assert (measurement["accuracy"]["metric"], measurement["accuracy"]["value"]) == ("top1", 0.75)
        assert measurement["accuracy"]["samples"] == 4
        assert measurement["case"]["dataset"].startswith("swatches@")
        assert all(
            measurement["stages_ms"][stage] > 0 for stage in ("decode", "preprocess", "inference", "postprocess")
        )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('metric = "top1"', 'metric = "top2"', "line 13: the task image_classification has no metric 'top2'"),
        ('tensors = { image = "pixels", logits = "scores" }', "tensors = {}", "has no output logits"),
        ('folder = "swatches"', 'folder = "swatch"', "swatch of the dataset swatches does not exist"),
    ],
)
def test_what_is_wrong_is_one_sentence(weigh: WeighCommand, suite: Path, old: str, new: str, said: str) -> None:
    suite.write_text(SUITE.replace(old, new), encoding="utf-8")
    done = weigh("run", str(suite), "--no-store")
    assert said in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stdout + done.stderr
