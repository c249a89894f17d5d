"""Reads what an ONNX file says about itself before a session exists: free dimensions, element types, operators.

onnxruntime tells the names of free dimensions only after a session was made, which is too late to pin them, and the
worker has no `onnx` package. So this walks the protobuf wire format of onnx.proto and jumps over the weights:
ModelProto.graph = 7; GraphProto.node = 1, initializer = 5, input = 11; NodeProto.op_type = 4, attribute = 5;
AttributeProto.t = 5, g = 6. Anything unexpected gives None: onnxruntime then judges.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

Buffer = memoryview
Dimension = int | str | None

FLOAT_TYPES = {1: "fp32", 10: "fp16", 11: "fp64", 16: "bf16"}  # TensorProto.DataType
QUANTISED = ("QLinear", "Integer", "DequantizeLinear", "DynamicQuantize", "QGemm", "QAttention")
# Its kernel multiplies in fp32 or in int8, by an attribute and by what the processor can.
FEW_BIT_WEIGHTS = "MatMulNBits"

MOST_NESTED = 16  # graphs inside graphs; deeper ones are left to onnxruntime


@dataclass(frozen=True)
class Graph:
    """The facts that a session's options and report need."""

    inputs: dict[str, tuple[Dimension, ...]]
    tensor_types: dict[int, int]  # of weights and constants: TensorProto.DataType -> bytes in the file
    operators: set[str]

    @property
    def precision(self) -> str | None:
        """The precision that the file itself asks for; "mixed" where its floating-point weights differ."""
        if any(mark in name for name in self.operators for mark in QUANTISED):
            return "int8"
        if FEW_BIT_WEIGHTS in self.operators:
            return "mixed"
        floats = {FLOAT_TYPES[kind] for kind in self.tensor_types if kind in FLOAT_TYPES}
        if len(floats) == 1:
            return floats.pop()
        return "mixed" if floats else None


def read_graph(path: Path) -> Graph | None:
    """Return the graph's facts, or None where the file is not what onnx.proto describes.

    A file that has not changed is read once in a process: a cold start looks at it before its pages are dropped.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return _read_graph(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _read_graph(path: Path, changed_ns: int, size: int) -> Graph | None:
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
    found = Graph({}, {}, set())
    initialised: set[str] = set()
    bodies = list(_fields(model, 0, len(model), 7))
    for start, end in bodies:
        _collect(model, start, end, found, initialised, depth=0)
    # Old files list their weights among the inputs.
    for name in initialised & set(found.inputs):
        del found.inputs[name]
    return found if bodies else None


def _collect(model: Buffer, start: int, end: int, found: Graph, initialised: set[str], depth: int) -> None:
    """Gather from one GraphProto and those inside its nodes (the branches of If, the body of Loop)."""
    for part, begin, stop in _parts(model, start, end):
        if part == 1:
            found.operators.add(_text(model, begin, stop, 4))
            for attribute_start, attribute_end in _fields(model, begin, stop, 5):
                for tensor_start, tensor_end in _fields(model, attribute_start, attribute_end, 5):
                    _weigh(model, tensor_start, tensor_end, found)
                if depth < MOST_NESTED:
                    for body_start, body_end in _fields(model, attribute_start, attribute_end, 6):
                        _collect(model, body_start, body_end, found, initialised, depth + 1)
        elif part == 5:
            _weigh(model, begin, stop, found)
            initialised.add(_text(model, begin, stop, 8))
        elif part == 11 and depth == 0:
            found.inputs[_text(model, begin, stop, 1)] = _shape(model, begin, stop)


def _weigh(model: Buffer, start: int, end: int, found: Graph) -> None:
    kind = _number(model, start, end, 2)
    found.tensor_types[kind] = found.tensor_types.get(kind, 0) + (end - start)


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
