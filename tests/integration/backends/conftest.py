"""Tiny models made in the test itself, in each backend's own format, with weights that numpy can multiply too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FileMaker = Callable[..., Path]


@pytest.fixture
def weights() -> np.ndarray:
    """A dense layer's weights, 64 inputs and 32 outputs, large enough for bf16 to be seen."""
    return np.random.default_rng(7).standard_normal((64, 32)).astype(np.float32)


@pytest.fixture
def samples() -> list[np.ndarray]:
    """Five different inputs of a batch of four."""
    generator = np.random.default_rng(8)
    return [generator.standard_normal((4, 64)).astype(np.float32) for _ in range(5)]


@pytest.fixture
def onnx_file(tmp_path: Path, weights: np.ndarray) -> FileMaker:
    """Write y = x @ weights, with a free batch unless a size is given, in float32 unless told otherwise."""
    from onnx import TensorProto, helper, numpy_helper

    def make(batch: int | str = "N", dtype: str = "float32") -> Path:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        assert kind in (TensorProto.FLOAT, TensorProto.FLOAT16)
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"], name="dense")],
            "dense",
            [helper.make_tensor_value_info("x", kind, [batch, 64])],
            [helper.make_tensor_value_info("y", kind, [batch, 32])],
            [numpy_helper.from_array(weights.astype(dtype), "w")],
        )
        path = tmp_path / f"dense-{batch}-{dtype}.onnx"
        path.write_bytes(onnx_bytes(graph))
        return path

    return make


def onnx_bytes(graph: Any) -> bytes:
    """A model around a graph, in an opset that all runtimes read."""
    from onnx import helper

    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data


@pytest.fixture
def onnx_graph(tmp_path: Path) -> FileMaker:
    """Write any graph of onnx.helper to a file."""

    def make(graph: Any, name: str = "graph.onnx") -> Path:
        path = tmp_path / name
        path.write_bytes(onnx_bytes(graph))
        return path

    return make


class TinyTflite:
    """Writes TFLite files with the schema that ships in ai-edge-litert."""

    def __init__(self) -> None:
        from ai_edge_litert import schema_py_generated

        self.schema: Any = schema_py_generated

    def _pack(
        self, tensors: list[Any], operators: list[Any], codes: list[int], buffers: list[Any], output: int
    ) -> bytes:
        import flatbuffers

        graph = self.schema.SubGraphT()
        graph.tensors, graph.operators, graph.inputs, graph.outputs = tensors, operators, [0], [output]
        model = self.schema.ModelT()
        model.version, model.subgraphs, model.buffers = 3, [graph], buffers
        model.operatorCodes = [self._code(code) for code in codes]
        builder = flatbuffers.Builder(256)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())

    def _code(self, builtin: int) -> Any:
        made = self.schema.OperatorCodeT()
        made.builtinCode, made.deprecatedBuiltinCode, made.version = builtin, min(builtin, 127), 1
        return made

    def _tensor(self, name: str, shape: list[int], buffer: int = 0, free: bool = False) -> Any:
        made = self.schema.TensorT()
        made.name, made.shape, made.buffer, made.type = name, shape, buffer, self.schema.TensorType.FLOAT32
        made.shapeSignature = [-1, *shape[1:]] if free else None
        return made

    def _node(self, code: int, inputs: list[int], output: int, options: str) -> Any:
        made = self.schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = code, inputs, [output]
        made.builtinOptionsType = getattr(self.schema.BuiltinOptions, options)
        made.builtinOptions = getattr(self.schema, f"{options}T")()
        return made

    def _buffer(self, data: np.ndarray | None = None) -> Any:
        made = self.schema.BufferT()
        if data is not None:
            made.data = np.frombuffer(data.astype(np.float32).tobytes(), dtype=np.uint8)
        return made

    def addition(self) -> bytes:
        """y = x + x, float32[1,2]."""
        return self._pack(
            [self._tensor("x", [1, 2]), self._tensor("y", [1, 2])],
            [self._node(0, [0, 0], 1, "AddOptions")],
            [self.schema.BuiltinOperator.ADD],
            [self._buffer()],
            1,
        )

    def dense(self, weights: np.ndarray, remainder: float | None = None) -> bytes:
        """y = x @ weights with a free batch; then y mod `remainder`, a node that XNNPACK does not take."""
        rows, columns = weights.shape
        tensors = [
            self._tensor("x", [1, rows], free=True),
            self._tensor("w", [columns, rows], buffer=1),
            self._tensor("y", [1, columns], free=True),
        ]
        nodes = [self._node(0, [0, 1, -1], 2, "FullyConnectedOptions")]
        codes = [self.schema.BuiltinOperator.FULLY_CONNECTED]
        buffers = [self._buffer(), self._buffer(weights.T)]
        if remainder is not None:
            tensors += [self._tensor("r", [1], buffer=2), self._tensor("z", [1, columns], free=True)]
            nodes.append(self._node(1, [2, 3], 4, "FloorModOptions"))
            codes.append(self.schema.BuiltinOperator.FLOOR_MOD)
            buffers.append(self._buffer(np.array([remainder])))
        return self._pack(tensors, nodes, codes, buffers, len(tensors) - 1)


@pytest.fixture
def tiny_tflite() -> TinyTflite:
    """The writer of tiny TFLite files."""
    return TinyTflite()


@pytest.fixture
def tflite_file(tmp_path: Path, tiny_tflite: TinyTflite, weights: np.ndarray) -> FileMaker:
    """Write y = x @ weights, as TFLite."""

    def make(remainder: float | None = None) -> Path:
        path = tmp_path / f"dense-{remainder}.tflite"
        path.write_bytes(tiny_tflite.dense(weights, remainder))
        return path

    return make
