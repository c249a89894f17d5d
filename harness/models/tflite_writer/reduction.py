"""Operators that sum up along axes: reductions, softmax, layer normalisation."""

from __future__ import annotations

from harness.models.onnx_graph.graph import Node
from harness.models.onnx_graph.parameters import reduce_axes, softmax_axis
from harness.models.tflite_writer.flatbuffer import Tensor
from harness.models.tflite_writer.writer import NHWC_AXIS, Handler, TensorLayout, Writer

_REDUCE = {"ReduceMean": "MEAN", "ReduceSum": "SUM", "ReduceMax": "REDUCE_MAX", "ReduceMin": "REDUCE_MIN"}


def reduce(writer: Writer, node: Node) -> None:
    """MEAN, SUM, REDUCE_MAX, REDUCE_MIN, on NHWC as it lies where the axes that stay keep their order."""
    _reduce(writer, node, _REDUCE[node.op], reduce_axes(writer.graph, node), bool(node.attributes.get("keepdims", 1)))


def global_max_pool(writer: Writer, node: Node) -> None:
    """The maximum over all spatial axes."""
    _reduce(writer, node, "REDUCE_MAX", list(range(2, len(writer.shape(node.inputs[0])))), True)


def reduce_norm(writer: Writer, node: Node) -> None:
    """ReduceL2 and ReduceSumSquare: SQUARE and SUM, then SQRT for the former."""
    axes, keep = reduce_axes(writer.graph, node), bool(node.attributes.get("keepdims", 1))
    layout, out_layout = _reduced_layouts(writer, node.inputs[0], axes, keep)
    source, output = writer.want(node.inputs[0], layout), writer.make(node.output, out_layout)
    squares = writer.temporary(f"{node.output}_squares", source.dtype, source.shape)
    writer.emit("SQUARE", [source], [squares], ("SquareOptions", {}))
    root = node.op == "ReduceL2"
    total = writer.temporary(f"{node.output}_total", output.dtype, output.shape) if root else output
    positions = writer.integers(sorted(writer.axis(axis, layout) for axis in axes))
    writer.emit("SUM", [squares, positions], [total], ("ReducerOptions", {"keepDims": keep}))
    if root:
        writer.emit("SQRT", [total], [output])


def _reduced_layouts(writer: Writer, name: str, axes: list[int], keep: bool) -> tuple[TensorLayout, TensorLayout]:
    """The layouts in which to read the input and to make the output of a reduction."""
    nhwc = writer.has_nhwc(name)
    staying = [axis for axis in range(len(writer.shape(name))) if axis not in axes]
    if nhwc and not keep:
        nhwc = sorted(staying, key=lambda axis: NHWC_AXIS[axis]) == staying
    layout: TensorLayout = "nhwc" if nhwc else "plain"
    return layout, layout if keep else "plain"


def _reduce(writer: Writer, node: Node, code: str, axes: list[int], keep: bool) -> None:
    name = node.inputs[0]
    layout, out_layout = _reduced_layouts(writer, name, axes, keep)
    source = writer.want(name, layout)
    output = writer.make(node.output, out_layout)
    positions = writer.integers(sorted(writer.axis(axis, layout) for axis in axes))
    writer.emit(code, [source, positions], [output], ("ReducerOptions", {"keepDims": keep}))


def softmax(writer: Writer, node: Node) -> None:
    """SOFTMAX over the last axis; over channels where the value is a feature map in NHWC."""
    name = node.inputs[0]
    shape = writer.shape(name)
    axis = softmax_axis(writer.graph, node)
    code = "SOFTMAX" if node.op == "Softmax" else "LOG_SOFTMAX"
    options = ("SoftmaxOptions", {"beta": 1.0}) if node.op == "Softmax" else ("LogSoftmaxOptions", {})
    if len(shape) == 4 and axis == 1:
        writer.emit(code, [writer.want(name, "nhwc")], [writer.make(node.output, "nhwc")], options)
        return
    if axis == len(shape) - 1:
        writer.emit(code, [writer.want(name)], [writer.make(node.output)], options)
        return
    order = [a for a in range(len(shape)) if a != axis] + [axis]
    back = [order.index(a) for a in range(len(shape))]
    moved_shape = [shape[a] for a in order]
    moved = writer.temporary(f"{node.output}_moved", "float32", moved_shape)
    result = writer.temporary(f"{node.output}_softmax", "float32", moved_shape)
    writer.emit("TRANSPOSE", [writer.want(name), writer.integers(order)], [moved], ("TransposeOptions", {}))
    writer.emit(code, [moved], [result], options)
    writer.emit("TRANSPOSE", [result, writer.integers(back)], [writer.make(node.output)], ("TransposeOptions", {}))


def layer_norm(writer: Writer, node: Node) -> None:
    """(x - mean) * rsqrt(mean(squared difference) + eps) * gamma + beta over the last axis: TFLite has no one operator."""
    source_shape = writer.shape(node.inputs[0])
    axis = node.attributes.get("axis", -1) % len(source_shape)
    if axis != len(source_shape) - 1 or len([name for name in node.outputs if name]) > 1:
        raise node.refuse("only the last axis, without statistics, is written", "The TFLite writer")
    source = writer.want(node.inputs[0])
    row = (*source_shape[:-1], 1)

    def step(
        code: str, inputs: list[Tensor], name: str, shape: tuple[int, ...], options: str, **values: bool
    ) -> Tensor:
        made = writer.temporary(f"{node.output}_{name}", "float32", shape)
        writer.emit(code, inputs, [made], (options, values))
        return made

    last = writer.integers([axis])
    epsilon = writer.number(float(node.attributes.get("epsilon", 1e-5)))
    mean = step("MEAN", [source, last], "mean", row, "ReducerOptions", keepDims=True)
    centred = step("SUB", [source, mean], "centred", source_shape, "SubOptions")
    squares = step("SQUARE", [centred], "squares", source_shape, "SquareOptions")
    variance = step("MEAN", [squares, last], "variance", row, "ReducerOptions", keepDims=True)
    raised = step("ADD", [variance, epsilon], "raised", row, "AddOptions")
    inverse = writer.temporary(f"{node.output}_inverse", "float32", row)
    writer.emit("RSQRT", [raised], [inverse])
    scaled = step("MUL", [centred, inverse], "normal", source_shape, "MulOptions")
    gained = step("MUL", [scaled, writer.want(node.inputs[1])], "gained", source_shape, "MulOptions")
    if not node.input(2):
        writer.reshape(gained, writer.make(node.output))
        return
    writer.emit("ADD", [gained, writer.want(node.inputs[2])], [writer.make(node.output)], ("AddOptions", {}))


def argmax(writer: Writer, node: Node) -> None:
    """ARG_MAX or ARG_MIN of the first of equals."""
    if node.attributes.get("select_last_index", 0):
        raise node.refuse("the last of equal values is asked for", "The TFLite writer")
    shape = writer.shape(node.inputs[0])
    axis = node.attributes.get("axis", 0) % len(shape)
    source = writer.want(node.inputs[0])
    output = writer.make(node.output)
    found = writer.temporary(f"{node.output}_flat", "int32", [s for a, s in enumerate(shape) if a != axis])
    name = "ArgMax" if node.op == "ArgMax" else "ArgMin"
    options = (f"{name}Options", {"outputType": writer.model.type_number("int32")})
    writer.emit("ARG_MAX" if name == "ArgMax" else "ARG_MIN", [source, writer.integers([axis])], [found], options)
    writer.reshape(found, output)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_REDUCE, reduce),
    "ReduceL2": reduce_norm,
    "ReduceSumSquare": reduce_norm,
    "GlobalMaxPool": global_max_pool,
    "Softmax": softmax,
    "LogSoftmax": softmax,
    "LayerNormalization": layer_norm,
    "ArgMax": argmax,
    "ArgMin": argmax,
}
