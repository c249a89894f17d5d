"""What a node's attributes and constant inputs say, in one form for all opsets."""

from __future__ import annotations

import numpy as np

from harness.models.onnx_graph.graph import Array, Graph, Node


def text(node: Node, key: str, default: str) -> str:
    """A text attribute, which ONNX stores as bytes."""
    value = node.attributes.get(key, default)
    return value.decode() if isinstance(value, bytes) else str(value)


def constant_input(graph: Graph, node: Node, index: int, what: str) -> Array | None:
    """A constant input as a vector, None where it is absent; ModelError where it is computed."""
    if node.input(index) is None:
        return None
    value = graph.constant(node.inputs[index])
    if value is None:
        raise node.refuse(f"its {what} are not constants")
    return value.reshape(-1)


def reduce_axes(graph: Graph, node: Node) -> list[int]:
    """The axes of a Reduce node, non-negative and sorted; all of them where it names none."""
    rank = graph.types[node.inputs[0]].rank
    axes = node.attributes.get("axes")
    if axes is None and node.input(1):
        value = graph.constant(node.input(1))
        if value is None:
            raise node.refuse("its axes are not constants")
        axes = value.reshape(-1).tolist()
    if axes is None or len(axes) == 0:
        return [] if node.attributes.get("noop_with_empty_axes", 0) else list(range(rank))
    return sorted(int(axis) % rank for axis in axes)


def pad_widths(graph: Graph, node: Node) -> list[tuple[int, int]]:
    """(before, after) for every axis of a Pad node; both ways in which opsets say them."""
    rank = graph.types[node.inputs[0]].rank
    if node.opset < 11:
        flat = [int(v) for v in node.attributes.get("pads", node.attributes.get("paddings", ()))]
    else:
        value = graph.constant(node.input(1))
        if value is None:
            raise node.refuse("its widths are not constants")
        flat = [int(v) for v in value.reshape(-1)]
    axes = list(range(rank))
    if node.input(3):
        chosen = graph.constant(node.input(3))
        if chosen is None:
            raise node.refuse("its axes are not constants")
        axes = [int(v) % rank for v in chosen.reshape(-1)]
    widths = [(0, 0)] * rank
    for position, axis in enumerate(axes):
        widths[axis] = (flat[position], flat[position + len(axes)])
    return widths


def pad_value(graph: Graph, node: Node) -> float:
    """The constant that a Pad node fills with."""
    if node.opset < 11:
        return float(node.attributes.get("value", 0.0))
    if node.input(2) is None:
        return 0.0
    value = graph.scalar(node.input(2))
    if value is None:
        raise node.refuse("its value is not a constant")
    return value


def slice_bounds(graph: Graph, node: Node) -> tuple[list[int], list[int], list[int]]:
    """Begin, size and step of a Slice for every axis; only forward steps."""
    shape = graph.types[node.inputs[0]].shape
    given_axes: Array | None
    given_steps: Array | None
    if node.opset < 10:
        starts, ends = np.array(node.attributes["starts"]), np.array(node.attributes["ends"])
        given_axes, given_steps = np.array(node.attributes.get("axes", range(len(starts)))), None
    else:
        first, last = constant_input(graph, node, 1, "starts"), constant_input(graph, node, 2, "ends")
        if first is None or last is None:
            raise node.refuse("its starts or ends are missing")
        starts, ends = first, last
        given_axes, given_steps = constant_input(graph, node, 3, "axes"), constant_input(graph, node, 4, "steps")
    axes = np.arange(len(starts)) if given_axes is None else given_axes
    steps = np.ones(len(starts), dtype=np.int64) if given_steps is None else given_steps
    begin, size, stride = [0] * len(shape), list(shape), [1] * len(shape)
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes.tolist(), steps.tolist(), strict=True):
        if step < 1:
            raise node.refuse("its steps are not positive")
        position = axis % len(shape)
        chosen = range(shape[position])[slice(start, end, step)]
        begin[position], size[position], stride[position] = chosen.start, len(chosen), step
    return begin, size, stride


def softmax_axis(graph: Graph, node: Node) -> int:
    """The axis of a Softmax. Before opset 13 the axes from it on were one: alike only if all others of them have size 1."""
    shape = graph.types[node.inputs[0]].shape
    axis = int(node.attributes.get("axis", -1 if node.opset >= 13 else 1)) % len(shape)
    if node.opset < 13 and any(size != 1 for size in shape[axis + 1 :]):
        raise node.refuse("its old form over several axes is not written")
    return axis


def transposed_begin(node: Node, axis: int, full: int, out: int) -> int:
    """How many of `full` cells ONNX cuts before the output of a transposed convolution along a spatial axis."""
    auto = text(node, "auto_pad", "NOTSET")
    extra, pads = node.attributes.get("output_padding"), node.attributes.get("pads")
    total = full + (int(extra[axis]) if extra else 0) - out
    if auto == "SAME_LOWER":
        return total - total // 2
    if auto == "SAME_UPPER" or node.attributes.get("output_shape"):
        return total // 2  # for an explicit output shape, the specification's default split
    return int(pads[axis]) if pads else 0
