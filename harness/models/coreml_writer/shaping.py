"""Operators that only move elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.models.coreml_writer.program import WRITER, Handler, ProgramWriter
from harness.models.onnx_graph.graph import Node
from harness.models.onnx_graph.moving import moving_operators, split_parts
from harness.models.onnx_graph.parameters import constant_input, pad_value, pad_widths, slice_bounds, text


def reshape(writer: ProgramWriter, node: Node) -> Any:
    """Anything that keeps the elements in order."""
    shape = np.array(writer.shape(node.output), dtype=np.int32)
    return writer.mb.reshape(x=writer.value(node.inputs[0]), shape=shape, name=writer.name(node.output))


def transpose(writer: ProgramWriter, node: Node) -> Any:
    """A permutation of the axes."""
    rank = len(writer.shape(node.inputs[0]))
    permutation = np.array(node.attributes.get("perm", range(rank - 1, -1, -1)), dtype=np.int32)
    return writer.mb.transpose(x=writer.value(node.inputs[0]), perm=permutation, name=writer.name(node.output))


def concat(writer: ProgramWriter, node: Node) -> Any:
    """Tensors one after the other along an axis."""
    axis = np.int32(node.attributes["axis"] % len(writer.shape(node.output)))
    values = [writer.value(name) for name in node.inputs]
    return writer.mb.concat(values=values, axis=axis, name=writer.name(node.output))


def _part(writer: ProgramWriter, source: str, begin: list[int], size: list[int], stride: list[int], name: str) -> Any:
    ends = [b + (n - 1) * s + 1 for b, n, s in zip(begin, size, stride, strict=True)]
    begin_, end_, stride_ = (np.array(values, dtype=np.int32) for values in (begin, ends, stride))
    return writer.mb.slice_by_index(x=writer.value(source), begin=begin_, end=end_, stride=stride_, name=name)


def slice_(writer: ProgramWriter, node: Node) -> Any:
    """A part of a tensor, with positive steps."""
    begin, size, stride = slice_bounds(writer.graph, node)
    return _part(writer, node.inputs[0], begin, size, stride, writer.name(node.output))


def split(writer: ProgramWriter, node: Node) -> list[Any]:
    """One part per output."""
    return [
        _part(writer, node.inputs[0], begin, size, [1] * len(begin), writer.name(name))
        for name, begin, size in split_parts(writer.graph, node)
    ]


def gather(writer: ProgramWriter, node: Node) -> Any:
    """Look-ups along an axis."""
    shape = writer.shape(node.inputs[0])
    axis = node.attributes.get("axis", 0) % len(shape)
    indices = writer.value(node.inputs[1])
    if node.inputs[1] in writer.graph.constants:
        indices = np.asarray(indices % shape[axis], dtype=np.int32)
        indices = indices[()] if indices.ndim == 0 else indices
    x = writer.value(node.inputs[0])
    return writer.mb.gather(x=x, indices=indices, axis=np.int32(axis), name=writer.name(node.output))


def expand(writer: ProgramWriter, node: Node) -> Any:
    """Repeat axes of size 1 up to a shape, with leading axes where there are fewer."""
    source, output = writer.shape(node.inputs[0]), writer.shape(node.output)
    x = writer.value(node.inputs[0])
    if len(source) < len(output):
        source = (1,) * (len(output) - len(source)) + source
        x = writer.mb.reshape(x=x, shape=np.array(source, dtype=np.int32), name=writer.name(node.output, "_raised"))
    repeats = np.array([b // a for a, b in zip(source, output, strict=True)], dtype=np.int32)
    return writer.mb.tile(x=x, reps=repeats, name=writer.name(node.output))


def tile(writer: ProgramWriter, node: Node) -> Any:
    """Repeat a tensor along its axes."""
    repeats = constant_input(writer.graph, node, 1, "repeats")
    if repeats is None:
        raise node.refuse("its repeats are missing", WRITER)
    x = writer.value(node.inputs[0])
    return writer.mb.tile(x=x, reps=repeats.astype(np.int32), name=writer.name(node.output))


def pad(writer: ProgramWriter, node: Node) -> Any:
    """Cells around a tensor."""
    mode = text(node, "mode", "constant")
    widths = pad_widths(writer.graph, node)
    if mode not in ("constant", "reflect", "edge") or any(min(width) < 0 for width in widths):
        raise node.refuse(f"the mode {mode} or a negative width has no counterpart", WRITER)
    flat = np.array(widths, dtype=np.int32).reshape(-1)
    x, name = writer.value(node.inputs[0]), writer.name(node.output)
    if mode == "constant":
        return writer.mb.pad(
            x=x, pad=flat, mode=mode, constant_val=np.float32(pad_value(writer.graph, node)), name=name
        )
    if any(width != (0, 0) for width in widths[:-2]):
        raise node.refuse(f"the mode {mode} reaches only the last two axes", WRITER)
    return writer.mb.pad(x=x, pad=flat[-4:], mode="reflect" if mode == "reflect" else "replicate", name=name)


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
