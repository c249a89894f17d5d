"""A bare model file is called what its weights are, so that a quantised file is never asked for in fp32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.models.file_precision import file_precision
from harness.suites.bare_model import suite_for_model


def onnx_file(path: Path, nodes: list[onnx.NodeProto], *weights: tuple[str, np.ndarray]) -> Path:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    inits = [numpy_helper.from_array(values, name) for name, values in weights]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], inits)
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


MATMUL = [helper.make_node("MatMul", ["x", "w"], ["y"])]
QUANTISED = [
    helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"]),
    helper.make_node("MatMul", ["x", "d"], ["y"]),
]


@pytest.mark.parametrize(("kind", "name"), [(np.float32, "fp32"), (np.float16, "fp16"), (np.float64, "fp64")])
def test_onnx_by_its_floating_weights(tmp_path: Path, kind: type, name: str) -> None:
    assert file_precision(onnx_file(tmp_path / "a.onnx", MATMUL, ("w", np.ones((4, 4), kind))), "onnx") == name


def test_onnx_with_quantised_weights(tmp_path: Path) -> None:
    weights = ("w", np.ones((4, 4), np.int8)), ("s", np.float32(0.1)), ("z", np.int8(0))
    path = onnx_file(tmp_path / "a.onnx", QUANTISED, *((name, np.asarray(value)) for name, value in weights))
    assert file_precision(path, "onnx") == "int8"
    (group, _) = suite_for_model(path).groups
    assert (group.artifact_precisions, group.precisions) == (("int8",), ("default",))


def test_an_fp32_file_and_one_without_weights_are_asked_for_in_fp32(tmp_path: Path) -> None:
    for nodes, weights in ((MATMUL, [("w", np.ones((4, 4), np.float32))]), ([helper.make_node("Relu", "x", "y")], [])):
        (group, _) = suite_for_model(onnx_file(tmp_path / "a.onnx", nodes, *weights)).groups
        assert (group.artifact_precisions, group.precisions) == (("fp32",), ("fp32",))


@pytest.mark.parametrize(
    ("kind", "scale", "name"),
    [("FLOAT32", None, "fp32"), ("FLOAT16", None, "fp16"), ("INT8", 0.1, "int8"), ("INT8", None, None)],
)
def test_tflite_by_its_weights(tmp_path: Path, kind: str, scale: float | None, name: str | None) -> None:
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    weight = schema.TensorT()
    weight.type, weight.buffer = getattr(schema.TensorType, kind), 1
    weight.quantization = schema.QuantizationParametersT()
    weight.quantization.scale = None if scale is None else [scale]
    full, empty = schema.BufferT(), schema.BufferT()
    full.data = [1, 2, 3, 4]
    graph = schema.SubGraphT()
    graph.tensors = [weight]
    model = schema.ModelT()
    model.buffers, model.subgraphs = [empty, full], [graph]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    path = tmp_path / "a.tflite"
    path.write_bytes(bytes(builder.Output()))
    assert file_precision(path, "tflite") == name


@pytest.mark.parametrize("model_format", ["onnx", "tflite"])
def test_a_damaged_file_has_no_precision(tmp_path: Path, model_format: str) -> None:
    (tmp_path / "a").write_bytes(bytes(range(256)) * 4)
    assert file_precision(tmp_path / "a", model_format) is None
    (tmp_path / "a").write_bytes(b"")
    assert file_precision(tmp_path / "a", model_format) is None
