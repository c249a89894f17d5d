"""Reads what an ONNX file says about itself before a session exists: free dimensions, element types, operators.

onnxruntime tells the names of free dimensions only after a session was made, which is too late to pin them, and the
worker has no `onnx` package. So this walks the protobuf wire format of onnx.proto (ModelProto.graph = 7; GraphProto.node
= 1, initializer = 5, input = 11) and jumps over the weights. Anything unexpected gives None: onnxruntime then judges.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Buffer = memoryview
Dimension = int | str | None

FLOAT_TYPES = {1: "fp32", 10: "fp16", 11: "fp64", 16: "bf16"}  # TensorProto.DataType
QUANTISED = ("QLinear", "Integer", "DequantizeLinear", "DynamicQuantize", "MatMulNBits", "QGemm", "QAttention")


@dataclass(frozen=True)
class Graph:
    """The facts that a session's options and report need."""

    inputs: dict[str, tuple[Dimension, ...]]
    initializer_types: dict[int, int]  # TensorProto.DataType -> bytes of elements counted, by size in the file
    operators: frozenset[str]

    @property
    def precision(self) -> str | None:
        """The precision that the file itself asks for; "mixed" where its floating-point weights differ."""
        if any(mark in name for name in self.operators for mark in QUANTISED):
            return "int8"
        floats = {FLOAT_TYPES[kind] for kind in self.initializer_types if kind in FLOAT_TYPES}
        if len(floats) == 1:
            return floats.pop()
        return "mixed" if floats else None


def read_graph(path: Path) -> Graph | None:
    """Return the graph's facts, or None where the file is not what onnx.proto describes."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            view = memoryview(mapped)
            try:
                return _graph(view)
            finally:
                view.release()
    except (OSError, ValueError, IndexError, UnicodeDecodeError, BufferError):
        return None


def _graph(model: Buffer) -> Graph | None:
    inputs: dict[str, tuple[Dimension, ...]] = {}
    types: dict[int, int] = {}
    operators: set[str] = set()
    initialised: set[str] = set()
    found = False
    for number, start, end in _parts(model, 0, len(model)):
        if number != 7:
            continue
        found = True
        for part, begin, stop in _parts(model, start, end):
            if part == 1:
                operators.add(_text(model, begin, stop, 4))
            elif part == 5:
                kind = _number(model, begin, stop, 2)
                types[kind] = types.get(kind, 0) + (stop - begin)
                initialised.add(_text(model, begin, stop, 8))
            elif part == 11:
                inputs[_text(model, begin, stop, 1)] = _shape(model, begin, stop)
    if not found:
        return None
    # Old files list their weights among the inputs.
    real = {name: shape for name, shape in inputs.items() if name not in initialised}
    return Graph(real, types, frozenset(operators))


def _shape(model: Buffer, start: int, end: int) -> tuple[Dimension, ...]:
    """ValueInfoProto.type = 2 -> TypeProto.tensor_type = 1 -> shape = 2 -> dim = 1 {dim_value = 1, dim_param = 2}."""
    dimensions: list[Dimension] = []
    for kind_start, kind_end in _fields(model, start, end, 2):
        for tensor_start, tensor_end in _fields(model, kind_start, kind_end, 1):
            for shape_start, shape_end in _fields(model, tensor_start, tensor_end, 2):
                for begin, stop in _fields(model, shape_start, shape_end, 1):
                    size = _number(model, begin, stop, 1)
                    dimensions.append(size if size > 0 else _text(model, begin, stop, 2) or None)
    return tuple(dimensions)


def _fields(model: Buffer, start: int, end: int, number: int) -> Iterator[tuple[int, int]]:
    return ((begin, stop) for part, begin, stop in _parts(model, start, end) if part == number)


def _text(model: Buffer, start: int, end: int, number: int) -> str:
    for begin, stop in _fields(model, start, end, number):
        return bytes(model[begin:stop]).decode()
    return ""


def _number(model: Buffer, start: int, end: int, number: int) -> int:
    for begin, _ in _fields(model, start, end, number):
        return _varint(model, begin, end)[0]
    return 0


def _parts(model: Buffer, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (field number, start, end) of each field; for a varint the range holds the varint itself."""
    while position < end:
        key, position = _varint(model, position, end)
        kind = key & 7
        if kind == 0:
            start, (_, position) = position, _varint(model, position, end)
        elif kind == 1:
            start, position = position, position + 8
        elif kind == 2:
            size, start = _varint(model, position, end)
            position = start + size
        elif kind == 5:
            start, position = position, position + 4
        else:
            raise ValueError(f"wire type {kind}")
        if position > end:
            raise ValueError("a field ends behind its message")
        yield key >> 3, start, position


def _varint(model: Buffer, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= end or shift > 63:
            raise ValueError("a number does not end")
        byte = model[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
