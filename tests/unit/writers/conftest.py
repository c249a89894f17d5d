"""Small ONNX networks, run by onnxruntime, and by LiteRT or a numpy interpreter of MIL on what the writers made of them."""

from __future__ import annotations

import importlib.util
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from ai_edge_litert.interpreter import Interpreter
from onnx import helper, numpy_helper

from harness.models import coreml_writer, tflite_writer
from harness.models.converted import Converted

Arrays = Mapping[str, np.ndarray]


def make_net(
    nodes: Sequence[Any],
    inputs: Arrays,
    constants: Arrays | None = None,
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
) -> bytes:
    """ONNX bytes. Inputs are given as example arrays; their shapes become the file's."""
    graph = helper.make_graph(
        list(nodes),
        "net",
        [
            helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for k, v in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    typed = onnx.shape_inference.infer_shapes(model)
    known = {value.name: value for value in typed.graph.value_info}
    for output in typed.graph.output:
        if not output.type.HasField("tensor_type") and output.name in known:
            output.CopyFrom(known[output.name])
    return bytes(typed.SerializeToString())


def run_onnx(data: bytes, inputs: Arrays) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return list(onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, dict(inputs)))


def run_tflite(converted: Converted, inputs: Arrays) -> tuple[list[np.ndarray], list[str]]:
    """Outputs in canonical layout, and the names of the operators in the file."""
    interpreter = Interpreter(model_content=converted.data, num_threads=1)
    interpreter.allocate_tensors()
    ends = {d["name"]: d["index"] for d in [*interpreter.get_input_details(), *interpreter.get_output_details()]}
    for port in converted.inputs:
        value = inputs[port.role].astype(port.dtype)
        value = value.transpose(0, 2, 3, 1) if port.layout == "nhwc" else value
        interpreter.set_tensor(ends[port.tensor], np.ascontiguousarray(value).reshape(value.shape))
    interpreter.invoke()
    found = []
    for port in converted.outputs:
        value = interpreter.get_tensor(ends[port.tensor])
        found.append(value.transpose(0, 3, 1, 2) if port.layout == "nhwc" else value)
    operators = [entry["op_name"] for entry in interpreter._get_ops_details()]
    return found, [name for name in operators if name != "DELEGATE"]


@pytest.fixture(scope="session")
def net() -> Callable[..., bytes]:
    return make_net


@pytest.fixture(scope="session")
def agrees() -> Callable[..., list[str]]:
    """Convert to TFLite, run both, compare all outputs to 1e-5 of their scale; gives the operators of the TFLite file."""

    def check(
        nodes: Any,
        inputs: Arrays,
        constants: Arrays | None = None,
        outputs: Sequence[str] = ("y",),
        opset: int = 17,
    ) -> list[str]:
        data = make_net(nodes if isinstance(nodes, list) else [nodes], inputs, constants, outputs, opset)
        converted = tflite_writer.convert(data, batch=1)
        found, operators = run_tflite(converted, inputs)
        for port, ours, theirs in zip(converted.outputs, found, run_onnx(data, inputs), strict=True):
            assert ours.shape == theirs.shape == port.shape
            if theirs.dtype.kind == "f":
                scale = max(1.0, float(np.abs(theirs).max(initial=0)))
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * scale)
            else:
                np.testing.assert_array_equal(ours, theirs)
        return operators

    return check


@pytest.fixture(scope="session")
def mil() -> ModuleType:
    """The interpreter of MIL, a file beside the tests."""
    path = Path(__file__).parents[2] / "fixtures" / "mil_interpreter.py"
    spec = importlib.util.spec_from_file_location("mil_interpreter", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unpack(converted: Converted, folder: Path) -> Path:
    zipfile.ZipFile(io.BytesIO(converted.data)).extractall(folder)
    return folder


@pytest.fixture
def coreml_agrees(tmp_path: Path, mil: ModuleType) -> Callable[..., list[str]]:
    """Convert to Core ML, run the read-back program and onnxruntime, compare; gives the program's operators."""

    def check(
        nodes: Any,
        inputs: Arrays,
        constants: Arrays | None = None,
        outputs: Sequence[str] = ("y",),
        opset: int = 17,
        precision: str = "fp32",
        tolerance: float = 1e-5,
    ) -> list[str]:
        data = make_net(nodes if isinstance(nodes, list) else [nodes], inputs, constants, outputs, opset)
        converted = coreml_writer.convert(data, batch=1, precision=precision)
        program = mil.load_program(unpack(converted, tmp_path / f"{len(list(tmp_path.iterdir()))}.mlpackage"))
        feeds = {port.tensor: inputs[port.role].astype(port.dtype) for port in converted.inputs}
        found = mil.run(program, feeds)
        for port, theirs in zip(converted.outputs, run_onnx(data, inputs), strict=True):
            ours = found[port.tensor]
            assert ours.shape == theirs.shape == port.shape
            scale = max(1.0, float(np.abs(theirs).max(initial=0)))
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)
        return list(mil.operators(program))

    return check
