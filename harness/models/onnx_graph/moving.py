"""ONNX operators that only move elements: which of them are one kind of work, and into which parts a Split cuts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from harness.models.onnx_graph.graph import Graph, Node

Handler = TypeVar("Handler")


def moving_operators(
    *,
    reshape: Handler,
    transpose: Handler,
    concat: Handler,
    slice_: Handler,
    split: Handler,
    gather: Handler,
    expand: Handler,
    tile: Handler,
    pad: Handler,
) -> dict[str, Handler]:
    """A writer's handlers by ONNX's names. Whatever keeps the elements in order is one reshape."""
    in_order = dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), reshape)
    others = {
        "Transpose": transpose,
        "Concat": concat,
        "Slice": slice_,
        "Split": split,
        "Gather": gather,
        "Expand": expand,
        "Tile": tile,
        "Pad": pad,
    }
    return {**in_order, **others}


def split_parts(graph: Graph, node: Node) -> Iterator[tuple[str, list[int], list[int]]]:
    """Name, begin and size of every output of a Split."""
    shape = graph.types[node.inputs[0]].shape
    axis = node.attributes.get("axis", 0) % len(shape)
    start = 0
    for name in node.outputs:
        size = list(shape)
        size[axis] = graph.types[name].shape[axis]
        yield name, [start if a == axis else 0 for a in range(len(shape))], size
        start += size[axis]
