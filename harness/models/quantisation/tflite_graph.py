"""A TFLite file as quantising needs to see it: its first and last layers, its scales, and biases that int32 cannot hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.models.onnx_graph.graph import Array
from harness.models.tflite_writer.flatbuffer import pack_model, schema

# Operators with weights -> their name in ai-edge-quantizer.
LAYERS = {
    "CONV_2D": "CONV_2D",
    "DEPTHWISE_CONV_2D": "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED": "FULLY_CONNECTED",
    "TRANSPOSE_CONV": "CONV_2D_TRANSPOSE",
}
MAX_BIAS = 2**30  # leaves as much of an int32 accumulator to the products: 66,000 of int8 by int8
_ACTIVATIONS_AT = {"TRANSPOSE_CONV": 2}  # where a layer has its activations; 0 else, and its bias 3; 2 else
_BIAS_AT = {"TRANSPOSE_CONV": 3}


@dataclass(frozen=True)
class End:
    """An input or output of the file."""

    name: str
    dtype: str


class TfliteGraph:
    """The one subgraph of a file, for reading and for small repairs."""

    def __init__(self, data: bytes) -> None:
        self._schema = schema()
        self._model = self._schema.ModelT.InitFromObj(self._schema.Model.GetRootAs(data))
        self._graph = self._model.subgraphs[0]
        self._codes = {v: n for n, v in vars(self._schema.BuiltinOperator).items() if isinstance(v, int)}
        self._types = {v: n for n, v in vars(self._schema.TensorType).items() if isinstance(v, int)}
        self._buffers: list[Array | None] = [_content(buffer, data) for buffer in self._model.buffers]

    def inputs(self) -> tuple[End, ...]:
        """The file's inputs in its order."""
        return tuple(self._end(index) for index in self._graph.inputs)

    def outputs(self) -> tuple[End, ...]:
        """The file's outputs in its order."""
        return tuple(self._end(index) for index in self._graph.outputs)

    def operators(self) -> list[tuple[str, list[str]]]:
        """Every operator with the types of its operands: ("CONV_2D", ["INT8", "INT8", "INT32"])."""
        return [
            (self._code(operator), [self._types[self._graph.tensors[i].type] for i in operator.inputs if i >= 0])
            for operator in self._graph.operators
        ]

    def names(self) -> list[str]:
        """Names of all tensors, in the file's order."""
        return [_name(tensor) for tensor in self._graph.tensors]

    def quantised_tensors(self) -> list[str]:
        """Names of the constants in int8 or int4 that have scales."""
        return [
            _name(tensor)
            for tensor in self._graph.tensors
            if self._types[tensor.type] in ("INT8", "INT4")
            and self._buffers[tensor.buffer] is not None
            and tensor.quantization is not None
        ]

    def float16_tensors(self) -> list[str]:
        """Names of the constants in float16."""
        return [
            _name(tensor)
            for tensor in self._graph.tensors
            if self._types[tensor.type] == "FLOAT16" and self._buffers[tensor.buffer] is not None
        ]

    def constant(self, name: str) -> Array | None:
        """The values of a constant as they are stored; None where the file has none of this name. int4 has no dtype here."""
        index = self._index(name)
        return None if index is None else self._values(index)

    def scales(self, name: str) -> Array | None:
        """The scales of a tensor: one, or one per channel."""
        index = self._index(name)
        quantisation = None if index is None else self._graph.tensors[index].quantization
        return None if quantisation is None or quantisation.scale is None else np.asarray(quantisation.scale)

    def scopes_of_ends(self) -> tuple[str, ...]:
        """Patterns, as ai-edge-quantizer matches them, for the layers before which, and after which, there is no other."""
        tensors = self._graph.tensors
        layers = [operator for operator in self._graph.operators if self._is_layer(operator)]
        behind: set[int] = set()  # tensors that some layer leads to
        first = []
        for operator in self._graph.operators:  # the file has them in the order of execution
            deeper = any(index in behind for index in operator.inputs)
            if self._is_layer(operator):
                first += [] if deeper else [operator]
                deeper = True
            behind |= set(operator.outputs) if deeper else set()
        before: set[int] = set()  # tensors that lead to some layer
        last = []
        for operator in reversed(self._graph.operators):
            shallower = any(index in before for index in operator.outputs)
            if self._is_layer(operator):
                last += [] if shallower else [operator]
                shallower = True
            before |= set(operator.inputs) if shallower else set()
        ends = [operator for operator in layers if operator in first or operator in last]
        return tuple(
            f"^{re.escape(''.join(_name(tensors[index]) + ';' for index in operator.outputs))}$" for operator in ends
        )

    def repair_biases(self, exact: TfliteGraph) -> int:
        """Widen the scale of weights that are nearly nothing, so that the bias of their channel fits. Returns how many.

        A bias is stored as int32 in steps of (scale of the activations) x (scale of the channel's weights). Where a
        channel's weights are about 1e-9 (training switched it off, and its output is its bias), the bias needs more than 32
        bits and ai-edge-quantizer 0.10 cuts it to almost zero. `exact` is the float file.
        """
        repaired = 0
        uses: dict[int, int] = {}
        for operator in self._graph.operators:
            for index in operator.inputs:
                uses[index] = uses.get(index, 0) + 1
        for operator in self._graph.operators:
            if self._is_layer(operator):
                repaired += self._repair(operator, exact, uses)
        return repaired

    def _repair(self, operator: Any, exact: TfliteGraph, uses: dict[int, int]) -> int:
        code, inputs, tensors = self._code(operator), operator.inputs, self._graph.tensors
        place = _BIAS_AT.get(code, 2)
        if len(inputs) <= place or inputs[place] < 0 or self._types[tensors[inputs[place]].type] != "INT32":
            return 0
        bias, weights = inputs[place], inputs[1]
        wanted, whole = exact.constant(_name(tensors[bias])), exact.constant(_name(tensors[weights]))
        step = tensors[inputs[_ACTIVATIONS_AT.get(code, 0)]].quantization.scale[0]
        scale = np.array(tensors[weights].quantization.scale, dtype=np.float64)
        if wanted is None or whole is None or uses[bias] > 1 or uses[weights] > 1:
            return 0
        least = np.abs(wanted.astype(np.float64)) / (step * MAX_BIAS)
        wide = np.flatnonzero(least > scale) if scale.size == wanted.size else np.array([], dtype=np.int64)
        if not wide.size:
            return 0
        scale[wide] = least[wide]
        single = scale.astype(np.float32)
        axis = tensors[weights].quantization.quantizedDimension
        new_weights, new_bias = np.array(self._values(weights)), np.array(self._values(bias))
        for channel in wide:
            where = (slice(None),) * axis + (channel,)
            new_weights[where] = np.rint(whole[where] / float(single[channel])).astype(np.int8)
            new_bias[channel] = np.rint(float(wanted[channel]) / (float(step) * float(single[channel])))
        self._buffers[tensors[weights].buffer] = new_weights.reshape(-1).view(np.uint8)
        self._buffers[tensors[bias].buffer] = new_bias.reshape(-1).view(np.uint8)
        tensors[weights].quantization.scale = single
        tensors[bias].quantization.scale = (single.astype(np.float64) * float(step)).astype(np.float32)
        return int(wide.size)

    def pack(self) -> bytes:
        """The file, with every buffer inside the flatbuffer and aligned as the schema asks."""
        for buffer in self._model.buffers:
            buffer.offset = buffer.size = 0
        return pack_model(self._model, self._buffers)

    def _is_layer(self, operator: Any) -> bool:
        return self._code(operator) in LAYERS and self._values(operator.inputs[1]) is not None

    def _code(self, operator: Any) -> str:
        code = self._model.operatorCodes[operator.opcodeIndex]
        return str(self._codes[max(code.builtinCode, code.deprecatedBuiltinCode)])

    def _end(self, index: int) -> End:
        tensor = self._graph.tensors[index]
        return End(_name(tensor), self._types[tensor.type].lower())

    def _index(self, name: str) -> int | None:
        return next((i for i, tensor in enumerate(self._graph.tensors) if _name(tensor) == name), None)

    def _values(self, index: int) -> Array | None:
        tensor = self._graph.tensors[index]
        data: Array | None = self._buffers[tensor.buffer]
        if data is None:
            return None
        kind = self._types[tensor.type].lower()
        if kind in ("int4", "int2", "string"):
            return data
        shape: Sequence[int] = [] if tensor.shape is None else [int(size) for size in tensor.shape]
        made: Array = data.view(np.dtype(kind)).reshape(shape)
        return made


def _name(tensor: Any) -> str:
    return str(tensor.name.decode("utf-8") if isinstance(tensor.name, bytes) else tensor.name)


def _content(buffer: Any, data: bytes) -> Array | None:
    """A buffer's bytes: inside the flatbuffer, or behind it, where the buffer has an offset into the file."""
    if buffer.data is not None and len(buffer.data):
        return np.asarray(buffer.data, dtype=np.uint8)
    if buffer.offset > 1:
        return np.frombuffer(data, dtype=np.uint8, count=buffer.size, offset=buffer.offset)
    return None
