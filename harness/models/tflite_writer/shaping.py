"""Operators that only move elements: reshapes, transposes, slices, pads, concatenation, look-ups."""

from __future__ import annotations

import numpy as np

from harness.models.onnx_graph.graph import Node
from harness.models.onnx_graph.moving import moving_operators, split_parts
from harness.models.onnx_graph.parameters import constant_input, pad_value, pad_widths, slice_bounds, text
from harness.models.tflite_writer.elementwise import common_layout
from harness.models.tflite_writer.writer import TO_NCHW, TO_NHWC, Handler, TensorLayout, Writer


def reshape(writer: Writer, node: Node) -> None:
    """Anything that keeps the elements in order."""
    writer.reshape(writer.want_flat(node.inputs[0]), writer.make(node.output))


def transpose(writer: Writer, node: Node) -> None:
    """TRANSPOSE; nothing where the exporter's own change between NCHW and NHWC meets ours."""
    name = node.inputs[0]
    rank = len(writer.shape(name))
    permutation = tuple(int(a) for a in node.attributes.get("perm", range(rank - 1, -1, -1)))
    if (
        permutation == TO_NHWC
        and writer.has_nhwc(name)
        and writer.alias(node.output, writer.want(name, "nhwc"), "plain")
    ):
        return
    if permutation == TO_NCHW and not writer.has_nhwc(name) and writer.alias(node.output, writer.want(name), "nhwc"):
        return
    source = writer.want(name)
    output = writer.make(node.output)
    moving = [a for a in permutation if source.shape[a] != 1]
    if moving == sorted(moving):
        writer.reshape(source, output)
    else:
        writer.emit("TRANSPOSE", [source, writer.integers(permutation)], [output], ("TransposeOptions", {}))


def concat(writer: Writer, node: Node) -> None:
    """CONCATENATION along the axis, wherever the layout has it."""
    layout = common_layout(writer, node.inputs, node.output)
    axis = writer.axis(node.attributes["axis"] % len(writer.shape(node.output)), layout)
    inputs = [writer.want(name, layout) for name in node.inputs]
    writer.emit("CONCATENATION", inputs, [writer.make(node.output, layout)], ("ConcatenationOptions", {"axis": axis}))


def slice_(writer: Writer, node: Node) -> None:
    """SLICE, or STRIDED_SLICE where steps are larger than 1."""
    _emit_slice(writer, node.inputs[0], node.output, *slice_bounds(writer.graph, node))


def _emit_slice(
    writer: Writer, name: str, output_name: str, begin: list[int], size: list[int], stride: list[int]
) -> None:
    layout = common_layout(writer, [name], output_name)
    order = TO_NHWC if layout == "nhwc" else range(len(begin))
    begin, size, stride = ([values[axis] for axis in order] for values in (begin, size, stride))
    source, output = writer.want(name, layout), writer.make(output_name, layout)
    if all(step == 1 for step in stride):
        writer.emit("SLICE", [source, writer.integers(begin), writer.integers(size)], [output], ("SliceOptions", {}))
        return
    ends = [b + (n - 1) * s + 1 for b, n, s in zip(begin, size, stride, strict=True)]
    inputs = [source, writer.integers(begin), writer.integers(ends), writer.integers(stride)]
    writer.emit("STRIDED_SLICE", inputs, [output], ("StridedSliceOptions", {}))


def split(writer: Writer, node: Node) -> None:
    """One SLICE per part: the parts that nobody reads cost nothing."""
    for name, begin, size in split_parts(writer.graph, node):
        _emit_slice(writer, node.inputs[0], name, begin, size, [1] * len(begin))


def gather(writer: Writer, node: Node) -> None:
    """GATHER; one constant index is a SLICE, which XNNPACK takes."""
    shape = writer.shape(node.inputs[0])
    axis = node.attributes.get("axis", 0) % len(shape)
    indices = writer.graph.constant(node.inputs[1])
    if indices is not None and indices.size == 1 and node.inputs[0] not in writer.graph.constants:
        index = int(indices.reshape(-1)[0]) % shape[axis]
        begin = [index if a == axis else 0 for a in range(len(shape))]
        size = [1 if a == axis else s for a, s in enumerate(shape)]
        source = writer.want(node.inputs[0])
        part = writer.temporary(f"{node.output}_part", source.dtype, size)
        writer.emit("SLICE", [source, writer.integers(begin), writer.integers(size)], [part], ("SliceOptions", {}))
        writer.reshape(part, writer.make(node.output))
        return
    if indices is not None:
        chosen = writer.model.constant((indices % shape[axis]).astype(np.int32), node.inputs[1])
    else:
        chosen = writer.want(node.inputs[1])
    inputs = [writer.want(node.inputs[0]), chosen]
    writer.emit("GATHER", inputs, [writer.make(node.output)], ("GatherOptions", {"axis": axis}))


def expand(writer: Writer, node: Node) -> None:
    """BROADCAST_TO."""
    output = writer.make(node.output)
    source = writer.want(node.inputs[0])
    if len(source.shape) > len(output.shape):  # ONNX broadcasts both ways; the result then has the larger rank
        raise node.refuse("its shape has fewer dimensions than its input", "The TFLite writer")
    writer.emit("BROADCAST_TO", [source, writer.integers(output.shape)], [output], ("BroadcastToOptions", {}), 2)


def tile(writer: Writer, node: Node) -> None:
    """TILE."""
    repeats = constant_input(writer.graph, node, 1, "repeats")
    if repeats is None:
        raise node.refuse("its repeats are missing", "The TFLite writer")
    inputs = [writer.want(node.inputs[0]), writer.integers(repeats.tolist())]
    writer.emit("TILE", inputs, [writer.make(node.output)], ("TileOptions", {}))


def pad(writer: Writer, node: Node) -> None:
    """PAD, PADV2 or MIRROR_PAD."""
    mode = text(node, "mode", "constant")
    widths = pad_widths(writer.graph, node)
    if mode not in ("constant", "reflect") or any(min(width) < 0 for width in widths):
        raise node.refuse(f"the mode {mode} or a negative width has no counterpart", "The TFLite writer")
    layout: TensorLayout = common_layout(writer, node.inputs[:1], node.output)
    order = TO_NHWC if layout == "nhwc" else range(len(widths))
    paddings = writer.model.constant(np.array([widths[axis] for axis in order], dtype=np.int32), "paddings")
    source, output = writer.want(node.inputs[0], layout), writer.make(node.output, layout)
    if mode == "reflect":
        writer.emit("MIRROR_PAD", [source, paddings], [output], ("MirrorPadOptions", {"mode": 0}))
        return
    value = pad_value(writer.graph, node)
    if value == 0:
        writer.emit("PAD", [source, paddings], [output], ("PadOptions", {}))
    else:
        fill = writer.model.constant(np.array(value, dtype=source.dtype), "fill")
        writer.emit("PADV2", [source, paddings, fill], [output], ("PadV2Options", {}))


HANDLERS: dict[str, Handler] = moving_operators(
    reshape=reshape,
    transpose=transpose,
    concat=concat,
    slice_=slice_,
    split=split,
    gather=gather,
    expand=expand,
    tile=tile,
    pad=pad,
)
