"""The inputs and outputs of an ONNX file, read from its bytes without a runtime and without the onnx package.

A device that only runs models has neither. The file is protobuf (onnx.proto): ModelProto.graph is field 7; in GraphProto
`initializer` is 5, `input` 11, `output` 12. Weights are stepped over by their length, so a large file costs nothing.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.errors import ModelError

# TensorProto.DataType -> numpy name
DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip
MAX_PORTS = 256
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class OnnxPort:
    """One input or output; None in `shape` is a size that the file leaves free."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


def read_onnx_ports(path: Path) -> tuple[tuple[OnnxPort, ...], tuple[OnnxPort, ...]]:
    """Return inputs (weights that stand among them left out) and outputs. Raises ModelError when it is no ONNX file."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            view = memoryview(data)
            try:
                return _graph_ports(view)
            finally:
                view.release()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is not an ONNX file that can be read: {error}.", "Is it damaged?") from error


def external_files(path: Path) -> tuple[str, ...]:
    """Return the files beside an ONNX file that hold its weights, by the names that it gives them. Raises ModelError.

    TensorProto.external_data is field 13, entries of key (1) and value (2); "location" is a path below the file's folder.
    """
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            view = memoryview(data)
            try:
                found = {name for span in _spans(view, _one(view, 7), 5) for name in _locations(view, span)}
            finally:
                view.release()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is not an ONNX file that can be read: {error}.", "Is it damaged?") from error
    for name in found:
        place = PurePosixPath(name)
        if not name or place.is_absolute() or ".." in place.parts or "\\" in name or "\0" in name:
            raise ModelError(f"{path} is refused: it keeps weights in {name!r}, which lies outside its folder.")
    return tuple(sorted(found))


def _locations(data: memoryview, tensor: tuple[int, int]) -> Iterator[str]:
    for entry in _spans(data, tensor, 13):
        if _text(data, *entry, 1) == "location":
            yield _text(data, *entry, 2)


def _spans(data: memoryview, span: tuple[int, int] | None, wanted: int) -> Iterator[tuple[int, int]]:
    if span is not None:
        for field, kind, low, high in _fields(data, *span):
            if field == wanted and kind == _BYTES:
                yield low, high


def _graph_ports(data: memoryview) -> tuple[tuple[OnnxPort, ...], tuple[OnnxPort, ...]]:
    graph = _one(data, 7)
    if graph is None:
        raise ValueError("it holds no graph")
    start, end = graph
    weights: set[str] = set()
    inputs: list[tuple[int, int]] = []
    outputs: list[tuple[int, int]] = []
    for field, kind, low, high in _fields(data, start, end):
        if kind == _BYTES and field in (11, 12):
            (inputs if field == 11 else outputs).append((low, high))
        elif kind == _BYTES and field == 5:
            weights.add(_text(data, low, high, 8))
    names = [(low, high) for low, high in inputs if _text(data, low, high, 1) not in weights]
    if not outputs or len(names) > MAX_PORTS or len(outputs) > MAX_PORTS:
        raise ValueError("its graph has no outputs, or too many inputs or outputs")
    return tuple(_port(data, *span) for span in names), tuple(_port(data, *span) for span in outputs)


def _port(data: memoryview, start: int, end: int) -> OnnxPort:
    """Read a ValueInfoProto: name 1, type 2; in it tensor_type 1 with elem_type 1 and shape 2, whose dim is 1."""
    name = _text(data, start, end, 1)
    tensor = _inside(data, _inside(data, (start, end), 2), 1)
    if tensor is None:
        raise ValueError(f"{name} is no tensor")
    element = next((low for field, kind, low, _ in _fields(data, *tensor) if field == 1 and kind == _VARINT), 0)
    shape: list[int | None] = []
    dims = _inside(data, tensor, 2)
    if dims is not None:
        for field, kind, low, high in _fields(data, *dims):
            if field == 1 and kind == _BYTES:  # a dimension: dim_value is 1, dim_param 2
                sizes = [value for f, k, value, _ in _fields(data, low, high) if f == 1 and k == _VARINT]
                shape.append(sizes[0] if sizes and 0 < sizes[0] < 1 << 31 else None)
    if element not in DTYPES:
        raise ValueError(f"{name} has the element type {element}, which is not supported")
    return OnnxPort(name, DTYPES[element], tuple(shape))


def _inside(data: memoryview, span: tuple[int, int] | None, field: int) -> tuple[int, int] | None:
    return None if span is None else _one(data, field, *span)


def _one(data: memoryview, field: int, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
    for found, kind, low, high in _fields(data, start, len(data) if end is None else end):
        if found == field and kind == _BYTES:
            return low, high
    return None


def _text(data: memoryview, start: int, end: int, field: int) -> str:
    span = _one(data, field, start, end)
    return "" if span is None else bytes(data[span[0] : span[1]]).decode("utf-8")


def _fields(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield field number, wire kind, and where its bytes begin and end; for a number, the number itself and zero."""
    while start < end:
        tag, start = _varint(data, start, end)
        field, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, start = _varint(data, start, end)
            yield field, kind, value, 0
            continue
        if kind == _BYTES:
            length, start = _varint(data, start, end)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError("it is not protobuf")
        if field == 0 or start + length > end:
            raise ValueError("it is cut, or not protobuf")
        yield field, kind, start, start + length
        start += length


def _varint(data: memoryview, start: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if start >= end:
            raise ValueError("it is cut")
        byte = data[start]
        start += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, start
    raise ValueError("it holds a number that is too long")
