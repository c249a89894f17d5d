"""The TFLite file itself: tensors, buffers, operators, packed with the schema that ships in the ai-edge-litert wheel.

Only this module knows the schema. Operators and their options are named as in the schema ("CONV_2D", "Conv2DOptions").
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.errors import ModelError
from harness.models.onnx_graph.graph import Array

SAME, VALID = 0, 1  # schema enum Padding
ACTIVATIONS = {"": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}  # schema enum ActivationFunctionType

_BUFFER_ALIGNMENT = 16  # schema: `data:[ubyte] (force_align: 16)`; kernels read constants in place
_DTYPES = {
    "float32": "FLOAT32",
    "float16": "FLOAT16",
    "float64": "FLOAT64",
    "int8": "INT8",
    "uint8": "UINT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
}


@dataclass(frozen=True)
class Tensor:
    """What the writer remembers of a tensor in the file."""

    index: int
    name: str
    dtype: str
    shape: tuple[int, ...]


def schema() -> Any:
    """The generated schema module, imported when it is needed."""
    try:
        from ai_edge_litert import schema_py_generated
    except ImportError as error:
        raise ModelError(
            "Writing a TFLite file needs the packages ai-edge-litert and flatbuffers, which are not installed.",
            "Install them with `pip install 'weighbridge[convert]'`.",
        ) from error
    return schema_py_generated


class FlatModel:
    """Collects one subgraph and packs it. Equal calls in equal order give equal bytes."""

    def __init__(self) -> None:
        self._schema = schema()
        self._model = self._schema.ModelT()
        self._subgraph = self._schema.SubGraphT()
        self._tensors: list[Any] = []
        self._buffers: list[Array | None] = [None]  # by the format's rule buffer 0 is the empty one
        self._operators: list[Any] = []
        self._codes: dict[tuple[int, int], int] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Tensor] = {}
        self._names: set[str] = set()

    def type_number(self, dtype: str) -> int:
        """The schema's number of an element type, for options that carry one."""
        return int(getattr(self._schema.TensorType, _DTYPES[dtype]))

    def tensor(self, name: str, dtype: str, shape: Sequence[int]) -> Tensor:
        """A computed tensor. `dtype` is a numpy name."""
        return self._add(name, dtype, shape, 0)

    def constant(self, value: Array, name: str) -> Tensor:
        """A constant tensor; the same content is stored once."""
        # ascontiguousarray alone makes a scalar one-dimensional
        data: Array = np.ascontiguousarray(value).reshape(value.shape)
        key = (str(data.dtype), tuple(data.shape), hashlib.sha256(data.tobytes()).digest())
        if key not in self._constants:
            self._buffers.append(data.reshape(-1).view(np.uint8))
            self._constants[key] = self._add(name, str(data.dtype), data.shape, len(self._buffers) - 1)
        return self._constants[key]

    def _add(self, name: str, dtype: str, shape: Sequence[int], buffer: int) -> Tensor:
        if dtype not in _DTYPES:
            raise ModelError(f"Tensor '{name}' has the type {dtype}, which a TFLite file cannot hold.")
        unique, count = name, 1
        while unique in self._names:
            unique, count = f"{name}_{count}", count + 1
        self._names.add(unique)
        made = self._schema.TensorT()
        made.name = unique
        made.type = getattr(self._schema.TensorType, _DTYPES[dtype])
        made.shape = [int(size) for size in shape]
        made.hasRank = True
        made.buffer = buffer
        self._tensors.append(made)
        return Tensor(len(self._tensors) - 1, unique, dtype, tuple(int(size) for size in shape))

    def operator(
        self,
        code: str,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
        options: tuple[str, Mapping[str, Any]] | None = None,
        version: int = 1,
    ) -> None:
        """Append an operator. None is an absent optional input; `version` the lowest that has the feature."""
        number = getattr(self._schema.BuiltinOperator, code)
        made = self._schema.OperatorT()
        made.opcodeIndex = self._codes.setdefault((number, version), len(self._codes))
        made.inputs = [-1 if item is None else item.index for item in inputs]
        made.outputs = [item.index for item in outputs]
        if options is not None:
            name, values = options
            made.builtinOptionsType = getattr(self._schema.BuiltinOptions, name)
            made.builtinOptions = getattr(self._schema, f"{name}T")()
            for key, value in values.items():
                if not hasattr(made.builtinOptions, key):  # a typing mistake must not pass silently
                    raise AttributeError(f"{name} has no field {key}")
                setattr(made.builtinOptions, key, value)
        self._operators.append(made)

    def pack(self, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> bytes:
        """The file. The mappings, from public names to tensors, become the graph's ends and its default signature."""
        schema = self._schema
        self._subgraph.name = "main"
        self._subgraph.tensors = self._tensors
        self._subgraph.operators = self._operators
        self._subgraph.inputs = [item.index for item in inputs.values()]
        self._subgraph.outputs = [item.index for item in outputs.values()]
        codes = []
        for number, version in self._codes:
            code = schema.OperatorCodeT()
            code.builtinCode = number
            code.deprecatedBuiltinCode = min(number, 127)  # 127: "look at builtinCode", for readers older than it
            code.version = version
            codes.append(code)
        signature = schema.SignatureDefT()
        signature.signatureKey = "serving_default"
        signature.inputs = [_tensor_map(schema, name, item) for name, item in inputs.items()]
        signature.outputs = [_tensor_map(schema, name, item) for name, item in outputs.items()]
        model = self._model
        model.version = 3
        model.description = "Weighbridge"
        model.operatorCodes = codes
        model.subgraphs = [self._subgraph]
        model.signatureDefs = [signature]
        return pack_model(model, self._buffers)


def pack_model(model: Any, buffers: Sequence[Array | None]) -> bytes:
    """The bytes of a file from the schema's ModelT and the content of its buffers (None: an empty one)."""
    import flatbuffers

    model.buffers = [_AlignedBuffer(schema(), data) for data in buffers]
    size = sum(data.nbytes for data in buffers if data is not None)
    if size >= 2**31 - 2**20:
        raise ModelError("The network's weights exceed the 2 GB that a TFLite file can hold.")
    builder = flatbuffers.Builder(size + 2**20)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _tensor_map(schema: Any, name: str, tensor: Tensor) -> Any:
    entry = schema.TensorMapT()
    entry.name = name
    entry.tensorIndex = tensor.index
    return entry


class _AlignedBuffer:
    """Packs a buffer as the schema asks (16-byte aligned); the generated Python packer ignores the alignment."""

    def __init__(self, schema: Any, data: Array | None) -> None:
        self._schema = schema
        self._data = data

    def Pack(self, builder: Any) -> int:  # noqa: N802  the generated packers call it so
        vector = None
        if self._data is not None and self._data.nbytes:
            builder.StartVector(1, self._data.nbytes, _BUFFER_ALIGNMENT)
            builder.head -= self._data.nbytes
            builder.Bytes[builder.head : builder.head + self._data.nbytes] = self._data.tobytes()
            vector = builder.EndVector()
        self._schema.BufferStart(builder)
        if vector is not None:
            self._schema.BufferAddData(builder, vector)
        return int(self._schema.BufferEnd(builder))
