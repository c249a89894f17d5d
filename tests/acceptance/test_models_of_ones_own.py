"""`weigh models build model.onnx`: a user's own network in a lower precision."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

Weigh = Callable[..., Any]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A classifier of two classes: how red, how blue."""
    weight = np.zeros((2, 3, 1, 1), np.float32)
    weight[0, 0], weight[1, 2] = 1.0, 1.0
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["input.1", "w"], ["c"], name="conv"),
            helper.make_node("GlobalAveragePool", ["c"], ["p"], name="pool"),
            helper.make_node("Flatten", ["p"], ["out"], name="flat"),
        ],
        "colours",
        [helper.make_tensor_value_info("input.1", TensorProto.FLOAT, ["batch", 3, 224, 224])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(weight, "w")],
    )
    path = tmp_path / "colours.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def pictures(folder: Path) -> Path:
    folder.mkdir()
    for number in range(12):
        Image.new("RGB", (240, 240), (number * 20, 10, 255 - number * 20)).save(folder / f"{number}.png")
    return folder


def test_int8_from_a_folder_of_pictures(weigh: Weigh, model: Path, tmp_path: Path) -> None:
    folder, output = pictures(tmp_path / "mine"), tmp_path / "int8.onnx"
    arguments = ["models", "build", str(model), "--precision", "int8", "--calibration", str(folder)]
    arguments += ["--workload", "efficientnet-lite0", "--output", str(output)]
    done = weigh(*arguments, WEIGHBRIDGE_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert "colours.onnx onnx int8: " in done.stdout and "calibrated by mine@" in done.stdout
    assert "holds 12 pictures; with fewer than 500, accuracy may suffer" in done.stderr
    written = onnx.load(output)
    assert "DequantizeLinear" in {node.op_type for node in written.graph.node}
    # Pixels 0 to 255 become (x - 127) / 128, from -127 / 128 to 1: 255 steps, rounded outward by a thousandth at most.
    scale = next(numpy_helper.to_array(w) for w in written.graph.initializer if w.name == "input.1_scale")
    assert float(scale) == pytest.approx((1 + 127 / 128) / 255, rel=2e-3)
    again = weigh(*arguments, WEIGHBRIDGE_CACHE=str(tmp_path / "cache"))
    assert again.stdout == done.stdout


def test_fp16_needs_no_data(weigh: Weigh, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "fp16.onnx"
    done = weigh("models", "build", str(model), "--precision", "fp16", "--output", str(output))
    assert done.returncode == 0, done.stderr
    assert {w.data_type for w in onnx.load(output).graph.initializer} == {TensorProto.FLOAT16}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--precision", "int8"), "Name a folder of them: --calibration FOLDER --workload NAME."),
        (("--precision", "int8", "--calibration", "."), "Say which workload prepares them alike"),
        (("--precision", "int8", "--calibration", ".", "--workload", "minilm-l6"), "is not possible yet"),
        (("--precision", "int4"), "no matrix product with constant weights"),
        (("--precision", "bf16"), "ask for the execution precision bf16"),
        ((), "in a precision that you name"),
    ],
)
def test_what_cannot_be_done_is_said_with_the_way_out(
    weigh: Weigh, model: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = weigh("models", "build", str(model), *arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr.replace("\n", " ") and "Traceback" not in done.stderr


def test_options_for_ones_own_models_are_refused_for_the_catalogues(weigh: Weigh) -> None:
    done = weigh("models", "build", "silero-vad", "--calibration", ".")
    assert done.returncode == 2 and "for an ONNX file of your own" in done.stderr
