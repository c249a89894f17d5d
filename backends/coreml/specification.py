"""Reads a Core ML model's specification, which works on every system: inputs, outputs, shapes, precision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.base import ModelRejected, TensorInfo
from backends.slots import first_line

# ArrayFeatureType.ArrayDataType in FeatureTypes.proto, and MILSpec.DataType in MIL.proto.
ARRAYS = {65600: "float64", 65568: "float32", 65552: "float16", 131104: "int32", 131080: "int8"}
FLOATS = {"FLOAT16": "fp16", "FLOAT32": "fp32", "FLOAT64": "fp64", "BFLOAT16": "bf16"}
STORING = {"const", "cast"}  # operations that hold or convert data and compute nothing
COMPRESSED = {"constexpr_affine_dequantize", "constexpr_blockwise_shift_scale", "dequantize", "quantize"}


@dataclass(frozen=True)
class Specification:
    """What the file says of itself."""

    kind: str  # "mlProgram", "neuralNetwork", ...
    version: int  # specificationVersion: 7 is iOS 16 and macOS 13
    inputs: tuple[TensorInfo, ...]
    free: dict[str, tuple[tuple[int, int], ...]]  # flexible inputs: (least, most) per dimension, most -1 is unbounded
    choices: dict[str, tuple[tuple[int, ...], ...]]  # flexible inputs with enumerated shapes
    outputs: tuple[TensorInfo, ...]
    precision: str | None

    def shape_of(self, info: TensorInfo, asked: tuple[int, ...] | None) -> tuple[int, ...]:
        """The shape to feed. Raises ModelRejected where the file does not allow the asked one."""
        if asked is None or asked == info.shape:
            return info.shape
        ranges = self.free.get(info.name)
        if ranges is not None and len(ranges) == len(asked):
            inside = all(
                low <= size and (size <= high or high < 0) for size, (low, high) in zip(asked, ranges, strict=True)
            )
            if inside:
                return asked
        if asked in self.choices.get(info.name, ()):
            return asked
        raise ModelRejected(
            f"Input {info.name!r} has shape {'x'.join(map(str, info.shape))} in the package; it cannot take "
            f"{'x'.join(map(str, asked))}.",
            "Convert the model again for this shape.",
        )


def read_specification(ct: Any, model: Path) -> tuple[Any, Specification]:
    """Return the protobuf message and what it says. Raises ModelRejected for what is no Core ML model of tensors."""
    try:
        message = ct.utils.load_spec(str(model))
    except Exception as error:  # protobuf, file and package errors of many kinds
        raise ModelRejected(f"coremltools cannot read {model.name}: {first_line(error)}.") from error
    kind = message.WhichOneof("Type")
    if kind is None or not message.description.output:
        raise ModelRejected(f"{model.name} holds no Core ML model.")
    inputs, free, choices = [], {}, {}
    for feature in message.description.input:
        info = _tensor(feature, {})
        inputs.append(info)
        array = feature.type.multiArrayType
        flexibility = array.WhichOneof("ShapeFlexibility")
        if flexibility == "shapeRange":
            free[info.name] = tuple((int(r.lowerBound), int(r.upperBound)) for r in array.shapeRange.sizeRanges)
        elif flexibility == "enumeratedShapes":
            choices[info.name] = tuple(tuple(map(int, entry.shape)) for entry in array.enumeratedShapes.shapes)
    operations = list(_operations(message)) if kind == "mlProgram" else []
    known = _program_shapes(operations)
    outputs = tuple(_tensor(feature, known) for feature in message.description.output)
    precision = _precision(ct, operations) if operations else None
    version = int(message.specificationVersion)
    return message, Specification(kind, version, tuple(inputs), free, choices, outputs, precision)


def _tensor(feature: Any, known: dict[str, tuple[int, ...]]) -> TensorInfo:
    kind = feature.type.WhichOneof("Type")
    if kind != "multiArrayType":
        raise ModelRejected(
            f"{feature.name!r} is a {kind}; only arrays can be measured.",
            "Convert with ct.TensorType, not ct.ImageType.",
        )
    dtype = ARRAYS.get(feature.type.multiArrayType.dataType)
    if dtype is None:
        raise ModelRejected(f"{feature.name!r} has an unknown element type.")
    shape = tuple(int(size) for size in feature.type.multiArrayType.shape) or known.get(feature.name, ())
    return TensorInfo(feature.name, dtype, shape)


def _operations(message: Any) -> Sequence[Any]:
    found: list[Any] = []
    for function in message.mlProgram.functions.values():
        for block in function.block_specializations.values():
            found.extend(block.operations)
    return found


def _program_shapes(operations: Sequence[Any]) -> dict[str, tuple[int, ...]]:
    """Shapes by value name; an mlProgram leaves them out of its outputs' description. Free sizes are 0."""
    shapes = {}
    for operation in operations:
        for output in operation.outputs:
            tensor = output.type.tensorType
            shapes[output.name] = tuple(int(size.constant.size) for size in tensor.dimensions)
    return shapes


def _precision(ct: Any, operations: Sequence[Any]) -> str | None:
    """The element type of the computing operations' results; "mixed" where they differ, int8 where weights are packed."""
    from coremltools.proto import MIL_pb2

    counts: Counter[str] = Counter()
    for operation in operations:
        if operation.type in COMPRESSED:
            return "int8"
        if operation.type in STORING:
            continue
        for output in operation.outputs:
            name = FLOATS.get(MIL_pb2.DataType.Name(output.type.tensorType.dataType))
            if name is not None:
                counts[name] += 1
    if len(counts) == 1:
        return next(iter(counts))
    return "mixed" if counts else None
