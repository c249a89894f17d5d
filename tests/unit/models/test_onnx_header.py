"""The inputs and outputs of ONNX files, compared with what the onnx package reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from harness.errors import ModelError
from harness.models.onnx_header import OnnxPort, read_onnx_ports


def model(weights_among_inputs: bool = False) -> bytes:
    weight = numpy_helper.from_array(np.ones((4, 3), np.float32), "weight")
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3]),
        helper.make_tensor_value_info("ids", TensorProto.INT64, [2, None]),
    ]
    if weights_among_inputs:
        inputs.append(helper.make_tensor_value_info("weight", TensorProto.FLOAT, [4, 3]))
    nodes = [
        helper.make_node("Gemm", ["x", "weight"], ["y"], transB=1),
        helper.make_node("Cast", ["ids"], ["z"], to=TensorProto.FLOAT16),
    ]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4]),
        helper.make_tensor_value_info("z", TensorProto.FLOAT16, None),
    ]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, [weight])).SerializeToString()


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    return path


def test_names_types_and_shapes_are_read(tmp_path: Path) -> None:
    inputs, outputs = read_onnx_ports(written(tmp_path, model()))
    assert inputs == (OnnxPort("x", "float32", (None, 3)), OnnxPort("ids", "int64", (2, None)))
    assert outputs == (OnnxPort("y", "float32", (None, 4)), OnnxPort("z", "float16", ()))


def test_weights_that_stand_among_the_inputs_are_no_inputs(tmp_path: Path) -> None:
    inputs, _ = read_onnx_ports(written(tmp_path, model(weights_among_inputs=True)))
    assert [port.name for port in inputs] == ["x", "ids"]


@pytest.mark.parametrize("data", [b"", b"\x00", b"not a model at all", b"\x3a\xff\xff\xff\xff\x0f", bytes(1000)])
def test_what_is_no_onnx_file_is_said_in_one_sentence(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ModelError, match=r"model\.onnx (is not an ONNX file|cannot be read)"):
        read_onnx_ports(written(tmp_path, data))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(position=st.integers(0, 10_000), value=st.integers(0, 255))
def test_a_damaged_file_gives_ports_or_one_sentence(tmp_path: Path, position: int, value: int) -> None:
    data = bytearray(model())
    data[position % len(data)] = value
    try:
        read_onnx_ports(written(tmp_path, bytes(data)))
    except ModelError as error:
        assert "model.onnx" in str(error)
