"""Operators that compute: element by element, along axes, and matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.models.coreml_writer.program import WRITER, Handler, ProgramWriter
from harness.models.onnx_graph.graph import Node
from harness.models.onnx_graph.parameters import reduce_axes, softmax_axis

_BINARY = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Div": "real_div",
    "Pow": "pow",
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "And": "logical_and",
    "Or": "logical_or",
}
_UNARY = {
    "Relu": "relu",
    "Relu6": "relu6",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Exp": "exp",
    "Sqrt": "sqrt",
    "Abs": "abs",
    "Floor": "floor",
    "Ceil": "ceil",
    "Round": "round",
    "Sin": "sin",
    "Cos": "cos",
    "Sign": "sign",
    "Erf": "erf",
    "Softplus": "softplus",
    "Not": "logical_not",
    "Identity": "identity",
    "Dropout": "identity",
}
_REDUCE = {
    "ReduceMean": "reduce_mean",
    "ReduceSum": "reduce_sum",
    "ReduceMax": "reduce_max",
    "ReduceMin": "reduce_min",
    "ReduceProd": "reduce_prod",
    "ReduceL2": "reduce_l2_norm",
    "ReduceSumSquare": "reduce_sum_square",
}


def binary(writer: ProgramWriter, node: Node) -> Any:
    """Two operands with broadcasting."""
    if node.op == "Div" and not str(writer.graph.types[node.inputs[0]].dtype).startswith("float"):
        raise node.refuse("division of integers is not written", WRITER)
    x, y = (writer.value(name) for name in node.inputs)
    return getattr(writer.mb, _BINARY[node.op])(x=x, y=y, name=writer.name(node.output))


def unary(writer: ProgramWriter, node: Node) -> Any:
    """One operand, no parameters."""
    return getattr(writer.mb, _UNARY[node.op])(x=writer.value(node.inputs[0]), name=writer.name(node.output))


def log(writer: ProgramWriter, node: Node) -> Any:
    """The natural logarithm."""
    return writer.mb.log(x=writer.value(node.inputs[0]), name=writer.name(node.output))


def negative(writer: ProgramWriter, node: Node) -> Any:
    """-x, as a product."""
    minus = np.int32(-1) if writer.type_name(node.output) == "int32" else np.float32(-1)
    return writer.mb.mul(x=writer.value(node.inputs[0]), y=minus, name=writer.name(node.output))


def reciprocal(writer: ProgramWriter, node: Node) -> Any:
    """1 / x; MIL's `inverse` adds an epsilon, so a division it is."""
    return writer.mb.real_div(x=np.float32(1), y=writer.value(node.inputs[0]), name=writer.name(node.output))


def extremum(writer: ProgramWriter, node: Node) -> Any:
    """Max and Min of any number of operands, pairwise."""
    combine = writer.mb.maximum if node.op == "Max" else writer.mb.minimum
    result = writer.value(node.inputs[0])
    if len(node.inputs) == 1:
        return writer.mb.identity(x=result, name=writer.name(node.output))
    for position, other in enumerate(node.inputs[1:], start=2):
        last = position == len(node.inputs)
        name = writer.name(node.output) if last else writer.name(node.output, f"_{position}")
        result = combine(x=result, y=writer.value(other), name=name)
    return result


def clip(writer: ProgramWriter, node: Node) -> Any:
    """CLIP between two numbers; an open side is a maximum or minimum."""
    x, name = writer.value(node.inputs[0]), writer.name(node.output)
    low, high = node.attributes["min"], node.attributes["max"]
    if writer.type_name(node.output) != "fp32":
        raise node.refuse("only floating-point values are clipped", WRITER)
    if low is not None and high is not None:
        return writer.mb.clip(x=x, alpha=np.float32(low), beta=np.float32(high), name=name)
    if low is not None:
        return writer.mb.maximum(x=x, y=np.float32(low), name=name)
    if high is not None:
        return writer.mb.minimum(x=x, y=np.float32(high), name=name)
    return writer.mb.identity(x=x, name=name)


def gelu(writer: ProgramWriter, node: Node) -> Any:
    """GELU, exact or in its tanh form."""
    tanh = node.attributes.get("approximate", b"none") in (b"tanh", "tanh")
    mode = "TANH_APPROXIMATION" if tanh else "EXACT"
    return writer.mb.gelu(x=writer.value(node.inputs[0]), mode=mode, name=writer.name(node.output))


def with_alpha(writer: ProgramWriter, node: Node) -> Any:
    """LeakyRelu and Elu."""
    operator, default = (writer.mb.leaky_relu, 0.01) if node.op == "LeakyRelu" else (writer.mb.elu, 1.0)
    alpha = np.float32(node.attributes.get("alpha", default))
    return operator(x=writer.value(node.inputs[0]), alpha=alpha, name=writer.name(node.output))


def hard_sigmoid(writer: ProgramWriter, node: Node) -> Any:
    """max(0, min(1, alpha x + beta)); HardSwish is x times that with 1/6 and 1/2."""
    x = writer.value(node.inputs[0])
    swish = node.op == "HardSwish"
    alpha = np.float32(1 / 6 if swish else node.attributes.get("alpha", 0.2))
    beta = np.float32(node.attributes.get("beta", 0.5))
    name = writer.name(node.output)
    gate = writer.mb.sigmoid_hard(
        x=x, alpha=alpha, beta=beta, name=writer.name(node.output, "_gate") if swish else name
    )
    return writer.mb.mul(x=x, y=gate, name=name) if swish else gate


def prelu(writer: ProgramWriter, node: Node) -> Any:
    """max(x, 0) + slope min(x, 0), which broadcasts as ONNX does."""
    x, slope = writer.value(node.inputs[0]), writer.value(node.inputs[1])
    below = writer.mb.minimum(x=x, y=np.float32(0), name=writer.name(node.output, "_below"))
    scaled = writer.mb.mul(x=below, y=slope, name=writer.name(node.output, "_scaled"))
    above = writer.mb.relu(x=x, name=writer.name(node.output, "_above"))
    return writer.mb.add(x=above, y=scaled, name=writer.name(node.output))


def where(writer: ProgramWriter, node: Node) -> Any:
    """Choose element by element."""
    condition, a, b = (writer.value(name) for name in node.inputs)
    shape = writer.shape(node.output)
    # MIL's select wants its operands in one shape; constants are spread here, computed values by arithmetic.
    spread = []
    for name, value in zip(node.inputs, (condition, a, b), strict=True):
        if name in writer.graph.constants:
            spread.append(np.ascontiguousarray(np.broadcast_to(value, shape)))
        elif writer.shape(name) != shape:
            raise node.refuse("its computed operands have different shapes", WRITER)
        else:
            spread.append(value)
    return writer.mb.select(cond=spread[0], a=spread[1], b=spread[2], name=writer.name(node.output))


def cast(writer: ProgramWriter, node: Node) -> Any:
    """A change of type; ONNX's int64 is int32 here."""
    target = writer.type_name(node.output)
    return writer.mb.cast(x=writer.value(node.inputs[0]), dtype=target, name=writer.name(node.output))


def reduce(writer: ProgramWriter, node: Node) -> Any:
    """A reduction over constant axes."""
    axes = np.array(reduce_axes(writer.graph, node), dtype=np.int32)
    keep = bool(node.attributes.get("keepdims", 1))
    operator = getattr(writer.mb, _REDUCE[node.op])
    return operator(x=writer.value(node.inputs[0]), axes=axes, keep_dims=keep, name=writer.name(node.output))


def argmax(writer: ProgramWriter, node: Node) -> Any:
    """The index of the largest or smallest element; of the first of equals."""
    if node.attributes.get("select_last_index", 0):
        raise node.refuse("the last of equal values is asked for", WRITER)
    operator = writer.mb.reduce_argmax if node.op == "ArgMax" else writer.mb.reduce_argmin
    axis = np.int32(node.attributes.get("axis", 0) % len(writer.shape(node.inputs[0])))
    keep = bool(node.attributes.get("keepdims", 1))
    return operator(x=writer.value(node.inputs[0]), axis=axis, keep_dims=keep, name=writer.name(node.output))


def softmax(writer: ProgramWriter, node: Node) -> Any:
    """Softmax over one axis; LogSoftmax as x - log sum exp x."""
    axis = softmax_axis(writer.graph, node)
    x, name = writer.value(node.inputs[0]), writer.name(node.output)
    if node.op == "Softmax":
        return writer.mb.softmax(x=x, axis=np.int32(axis), name=name)
    axes = np.array([axis], dtype=np.int32)
    total = writer.mb.reduce_log_sum_exp(x=x, axes=axes, keep_dims=True, name=writer.name(node.output, "_total"))
    return writer.mb.sub(x=x, y=total, name=name)


def layer_norm(writer: ProgramWriter, node: Node) -> Any:
    """Layer normalisation from an axis to the last."""
    rank = len(writer.shape(node.inputs[0]))
    if len([name for name in node.outputs if name]) > 1:
        raise node.refuse("its statistics are asked for", WRITER)
    gamma = writer.graph.constant(node.inputs[1])
    beta = writer.graph.constant(node.input(2))
    if gamma is None or (node.input(2) and beta is None):
        raise node.refuse("its weights are not constants", WRITER)
    axes = np.arange(node.attributes.get("axis", -1) % rank, rank, dtype=np.int32)
    return writer.mb.layer_norm(
        x=writer.value(node.inputs[0]),
        axes=axes,
        gamma=gamma,
        beta=np.zeros_like(gamma) if beta is None else beta,
        epsilon=np.float32(node.attributes.get("epsilon", 1e-5)),
        name=writer.name(node.output),
    )


def linear(writer: ProgramWriter, node: Node) -> Any:
    """A product with constant weights [out, in]."""
    weights = writer.graph.constants[node.inputs[1]]
    bias = writer.graph.constant(node.input(2))
    bias = np.zeros(weights.shape[0], dtype=np.float32) if bias is None else bias
    return writer.mb.linear(x=writer.value(node.inputs[0]), weight=weights, bias=bias, name=writer.name(node.output))


def matmul(writer: ProgramWriter, node: Node) -> Any:
    """A product of matrices, batched over the leading axes."""
    if any(len(writer.shape(name)) < 2 for name in node.inputs):
        raise node.refuse("an operand is a vector", WRITER)
    x, y = (writer.value(name) for name in node.inputs)
    return writer.mb.matmul(x=x, y=y, name=writer.name(node.output))


def gemm(writer: ProgramWriter, node: Node) -> Any:
    """A Gemm whose matrices are computed."""
    if node.attributes.get("alpha", 1.0) != 1.0 or (node.input(2) and node.attributes.get("beta", 1.0) != 1.0):
        raise node.refuse("its factors are not 1", WRITER)
    bias, name = node.input(2), writer.name(node.output)
    product = writer.mb.matmul(
        x=writer.value(node.inputs[0]),
        y=writer.value(node.inputs[1]),
        transpose_x=bool(node.attributes.get("transA", 0)),
        transpose_y=bool(node.attributes.get("transB", 0)),
        name=writer.name(node.output, "_product") if bias else name,
    )
    return writer.mb.add(x=product, y=writer.value(bias), name=name) if bias else product


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_BINARY, binary),
    **dict.fromkeys(_UNARY, unary),
    **dict.fromkeys(_REDUCE, reduce),
    "Log": log,
    "Neg": negative,
    "Reciprocal": reciprocal,
    "Max": extremum,
    "Min": extremum,
    "Clip": clip,
    "Gelu": gelu,
    "LeakyRelu": with_alpha,
    "Elu": with_alpha,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": hard_sigmoid,
    "PRelu": prelu,
    "Where": where,
    "Cast": cast,
    "ArgMax": argmax,
    "ArgMin": argmax,
    "Softmax": softmax,
    "LogSoftmax": softmax,
    "LayerNormalization": layer_norm,
    "Linear": linear,
    "MatMul": matmul,
    "Gemm": gemm,
}
