"""Element-wise operators: they take their operands in the layout that is there, so feature maps stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.models.onnx_graph.graph import Node
from harness.models.tflite_writer.flatbuffer import ACTIVATIONS, Tensor
from harness.models.tflite_writer.writer import Handler, TensorLayout, Writer

_BINARY = {
    "Add": ("ADD", "AddOptions"),
    "Sub": ("SUB", "SubOptions"),
    "Mul": ("MUL", "MulOptions"),
    "Div": ("DIV", "DivOptions"),
    "Pow": ("POW", "PowOptions"),
    "Equal": ("EQUAL", "EqualOptions"),
    "Less": ("LESS", "LessOptions"),
    "LessOrEqual": ("LESS_EQUAL", "LessEqualOptions"),
    "Greater": ("GREATER", "GreaterOptions"),
    "GreaterOrEqual": ("GREATER_EQUAL", "GreaterEqualOptions"),
    "And": ("LOGICAL_AND", "LogicalAndOptions"),
    "Or": ("LOGICAL_OR", "LogicalOrOptions"),
    "PRelu": ("PRELU", None),
}
_UNARY = {
    "Relu": ("RELU", None),
    "Relu6": ("RELU6", None),
    "Sigmoid": ("LOGISTIC", None),
    "Tanh": ("TANH", None),
    "Exp": ("EXP", "ExpOptions"),
    "Log": ("LOG", None),
    "Sqrt": ("SQRT", None),
    "Rsqrt": ("RSQRT", None),
    "Neg": ("NEG", "NegOptions"),
    "Abs": ("ABS", "AbsOptions"),
    "Floor": ("FLOOR", None),
    "Ceil": ("CEIL", None),
    "Round": ("ROUND", None),
    "Sin": ("SIN", None),
    "Cos": ("COS", "CosOptions"),
    "Square": ("SQUARE", "SquareOptions"),
    "HardSwish": ("HARD_SWISH", "HardSwishOptions"),
    "Not": ("LOGICAL_NOT", "LogicalNotOptions"),
    "Sign": ("SIGN", "SignOptions"),
}
_FUSES = ("ADD", "SUB", "MUL", "DIV")

KEEPS_LAYOUT = frozenset(
    {*_BINARY, *_UNARY, "Max", "Min", "Clip", "Cast", "Where", "Gelu", "LeakyRelu", "Elu", "Reciprocal", "HardSigmoid"}
    | {"Concat", "Pad", "Identity", "Dropout", "Slice", "Split"}
)


def common_layout(writer: Writer, names: list[str], output: str) -> TensorLayout:
    """NHWC where an operand is a feature map in NHWC and all computed ones have rank 4, else plain."""
    computed = [name for name in names if name not in writer.graph.constants]
    rank_four = all(len(writer.shape(name)) == 4 for name in computed) and len(writer.shape(output)) == 4
    if rank_four and any(writer.has_nhwc(name) for name in computed):
        return "nhwc"
    return "plain"


def operands(writer: Writer, names: list[str], output: str) -> tuple[list[Tensor], Tensor]:
    """The inputs in their common layout, and the output in it."""
    layout = common_layout(writer, names, output)
    return [writer.want(name, layout) for name in names], writer.make(output, layout)


def binary(writer: Writer, node: Node) -> None:
    """Two operands with broadcasting; a following ReLU is fused where TFLite has a field for it."""
    code, options_name = _BINARY[node.op]
    if node.op == "Pow" and not writer.dtype(node.inputs[0]).startswith("float"):
        raise node.refuse("only floating-point powers are written", "The TFLite writer")
    inputs, output = operands(writer, node.inputs, node.output)
    values: dict[str, Any] = {}
    if code in _FUSES:
        values["fusedActivationFunction"] = ACTIVATIONS[node.attributes.get("activation", "")]
    writer.emit(code, inputs, [output], None if options_name is None else (options_name, values))


def unary(writer: Writer, node: Node) -> None:
    """One operand, no parameters."""
    code, options_name = _UNARY[node.op]
    inputs, output = operands(writer, node.inputs[:1], node.output)
    writer.emit(code, inputs, [output], None if options_name is None else (options_name, {}))


def _one(writer: Writer, node: Node, code: str, options: tuple[str, Mapping[str, Any]] | None) -> None:
    inputs, output = operands(writer, node.inputs[:1], node.output)
    writer.emit(code, inputs, [output], options)


def gelu(writer: Writer, node: Node) -> None:
    """GELU, exact or in its tanh form."""
    approximate = node.attributes.get("approximate", b"none") in (b"tanh", "tanh")
    _one(writer, node, "GELU", ("GeluOptions", {"approximate": approximate}))


def leaky_relu(writer: Writer, node: Node) -> None:
    """LEAKY_RELU."""
    _one(writer, node, "LEAKY_RELU", ("LeakyReluOptions", {"alpha": float(node.attributes.get("alpha", 0.01))}))


def elu(writer: Writer, node: Node) -> None:
    """ELU; TFLite's has no alpha."""
    if node.attributes.get("alpha", 1.0) != 1.0:
        raise node.refuse("its alpha is not 1", "The TFLite writer")
    _one(writer, node, "ELU", None)


def clip(writer: Writer, node: Node) -> None:
    """MAXIMUM, then MINIMUM; the common limits are activations of their own."""
    low, high = node.attributes["min"], node.attributes["max"]
    if (low, high) == (-1, 1):
        return _one(writer, node, "RELU_N1_TO_1", None)
    inputs, output = operands(writer, node.inputs[:1], node.output)
    steps = [(code, limit) for code, limit in (("MAXIMUM", low), ("MINIMUM", high)) if limit is not None]
    if not steps:
        return writer.reshape(inputs[0], output)
    source = inputs[0]
    for position, (code, limit) in enumerate(steps):
        last = position == len(steps) - 1
        target = output if last else writer.temporary(f"{node.output}_low", output.dtype, output.shape)
        bound = writer.model.constant(np.array(limit, dtype=output.dtype), "limit")
        writer.emit(code, [source, bound], [target], ("MaximumMinimumOptions", {}))
        source = target
    return None


def hard_sigmoid(writer: Writer, node: Node) -> None:
    """max(0, min(1, alpha x + beta)), in steps."""
    inputs, output = operands(writer, node.inputs, node.output)
    scaled = writer.temporary(f"{node.output}_scaled", output.dtype, output.shape)
    shifted = writer.temporary(f"{node.output}_shifted", output.dtype, output.shape)
    alpha, beta = float(node.attributes.get("alpha", 0.2)), float(node.attributes.get("beta", 0.5))
    writer.emit("MUL", [inputs[0], writer.number(alpha)], [scaled], ("MulOptions", {}))
    bottom = ("AddOptions", {"fusedActivationFunction": ACTIVATIONS["RELU"]})
    writer.emit("ADD", [scaled, writer.number(beta)], [shifted], bottom)
    writer.emit("MINIMUM", [shifted, writer.number(1.0)], [output], ("MaximumMinimumOptions", {}))


def extremum(writer: Writer, node: Node) -> None:
    """Max and Min of two or more operands, pairwise."""
    code = "MAXIMUM" if node.op == "Max" else "MINIMUM"
    if len(node.inputs) == 1:
        return identity(writer, node)
    inputs, output = operands(writer, node.inputs, node.output)
    source = inputs[0]
    for position, other in enumerate(inputs[1:], start=2):
        last = position == len(inputs)
        shape = np.broadcast_shapes(source.shape, other.shape)
        target = output if last else writer.temporary(f"{node.output}_{position}", output.dtype, shape)
        writer.emit(code, [source, other], [target], ("MaximumMinimumOptions", {}))
        source = target
    return None


def reciprocal(writer: Writer, node: Node) -> None:
    """1 / x."""
    inputs, output = operands(writer, node.inputs, node.output)
    writer.emit("DIV", [writer.number(1.0), inputs[0]], [output], ("DivOptions", {}))


def where(writer: Writer, node: Node) -> None:
    """SELECT_V2, which broadcasts."""
    inputs, output = operands(writer, node.inputs, node.output)
    writer.emit("SELECT_V2", inputs, [output], ("SelectV2Options", {}))


def cast(writer: Writer, node: Node) -> None:
    """CAST; nothing where both types are the same in the file (int64 is narrowed to int32)."""
    layout = common_layout(writer, node.inputs, node.output)
    source = writer.want(node.inputs[0], layout)
    if source.dtype == writer.dtype(node.output):
        if not writer.alias(node.output, source, layout):
            writer.reshape(source, writer.make(node.output, layout))
        return
    output = writer.make(node.output, layout)
    types = writer.model.type_number(source.dtype), writer.model.type_number(output.dtype)
    writer.emit("CAST", [source], [output], ("CastOptions", {"inDataType": types[0], "outDataType": types[1]}))


def identity(writer: Writer, node: Node) -> None:
    """Only left in the graph where input and output are both its ends: a copy."""
    layout = common_layout(writer, node.inputs[:1], node.output)
    writer.reshape(writer.want(node.inputs[0], layout), writer.make(node.output, layout))


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_BINARY, binary),
    **dict.fromkeys(_UNARY, unary),
    "Max": extremum,
    "Min": extremum,
    "Gelu": gelu,
    "LeakyRelu": leaky_relu,
    "Elu": elu,
    "Clip": clip,
    "HardSigmoid": hard_sigmoid,
    "Reciprocal": reciprocal,
    "Where": where,
    "Cast": cast,
    "Identity": identity,
    "Dropout": identity,
}
