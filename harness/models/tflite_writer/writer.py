"""Walks the graph and writes each operator; values stay in the layout in which they are made until another is wanted.

A value of rank 4 may exist as `plain` (ONNX's order) or `nhwc`, or both. Spatial operators make and want NHWC,
element-wise ones take what is there, everything else wants plain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from harness.artifacts import Port
from harness.errors import ModelError
from harness.models.converted import Converted
from harness.models.onnx_graph.graph import Array, Graph, Node
from harness.models.tflite_writer.flatbuffer import FlatModel, Tensor

TensorLayout = Literal["plain", "nhwc"]
Handler = Callable[["Writer", Node], None]

TO_NHWC = (0, 2, 3, 1)
TO_NCHW = (0, 3, 1, 2)
NHWC_AXIS = {0: 0, 1: 3, 2: 1, 3: 2}  # ONNX axis -> where NHWC has it

_COMPUTED = frozenset({"float32", "int32", "int64", "bool"})
SPATIAL = frozenset(
    {
        "Conv",
        "ConvTranspose",
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "Resize",
        "Upsample",
        "DepthToSpace",
        "SpaceToDepth",
    }
)


class Writer:
    """State while one graph is written. Handlers call `want`, `make`, `emit`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.model = FlatModel()
        self._there: dict[str, dict[TensorLayout, Tensor]] = {}

    # What handlers ask about values

    def shape(self, name: str) -> tuple[int, ...]:
        """The ONNX shape of a value."""
        return self.graph.types[name].shape

    def dtype(self, name: str) -> str:
        """The type that a value has in the file: int64 is narrowed to int32, which TFLite's kernels prefer."""
        known = str(self.graph.types[name].dtype)
        return "int32" if known == "int64" else known

    def has_nhwc(self, name: str | None) -> bool:
        """Whether a computed value is there in NHWC."""
        return name is not None and "nhwc" in self._there.get(name, {})

    def axis(self, axis: int, layout: TensorLayout) -> int:
        """Where an ONNX axis (non-negative) lies in a layout."""
        return NHWC_AXIS[axis] if layout == "nhwc" else axis

    def want(self, name: str, layout: TensorLayout = "plain") -> Tensor:
        """The tensor of a value in a layout; written as a constant or transposed when it is not there."""
        value = self.graph.constant(name)
        if value is not None:
            return self._constant(name, value, layout)
        there = self._there[name]
        if layout not in there:
            shape = self.shape(name)
            permutation = TO_NHWC if layout == "nhwc" else TO_NCHW
            source = next(iter(there.values()))
            made = self.model.tensor(f"{name}_{layout}", source.dtype, _in_layout(shape, layout))
            if _same_order(shape):
                self.reshape(source, made)
            else:
                self.emit("TRANSPOSE", [source, self.integers(permutation)], [made], ("TransposeOptions", {}))
            there[layout] = made
        return there[layout]

    def want_flat(self, name: str) -> Tensor:
        """A tensor whose elements lie in memory in ONNX's order, whatever its shape: enough for a reshape."""
        there = self._there.get(name, {})
        if "plain" not in there and "nhwc" in there and _same_order(self.shape(name)):
            return there["nhwc"]
        return self.want(name)

    def _constant(self, name: str, value: Array, layout: TensorLayout) -> Tensor:
        if layout == "nhwc":
            value = value.reshape((1,) * (4 - value.ndim) + value.shape).transpose(TO_NHWC)
        if value.dtype == np.int64:
            limits = np.iinfo(np.int32)
            if value.size and (value.min() < limits.min or value.max() > limits.max):
                raise ModelError(
                    f"Constant '{name}' holds 64-bit integers beyond 32 bits, which the TFLite writer narrows."
                )
            value = value.astype(np.int32)
        return self.model.constant(value, name)

    # What handlers make

    def make(self, name: str, layout: TensorLayout = "plain") -> Tensor:
        """The tensor for a node's output."""
        made = self.model.tensor(name, self.dtype(name), _in_layout(self.shape(name), layout))
        self._there.setdefault(name, {})[layout] = made
        return made

    def alias(self, name: str, source: Tensor, layout: TensorLayout) -> bool:
        """Let a value be a tensor that is already there. False for a graph output, which needs a tensor of its own name."""
        if name in self.graph.outputs:
            return False
        self._there.setdefault(name, {})[layout] = source
        return True

    def temporary(self, name: str, dtype: str, shape: Sequence[int]) -> Tensor:
        """A tensor between two operators that one ONNX node becomes."""
        return self.model.tensor(name, dtype, shape)

    def integers(self, values: Sequence[int]) -> Tensor:
        """A constant int32 vector (a shape, axes, widths)."""
        return self.model.constant(np.array(list(values), dtype=np.int32), "integers")

    def number(self, value: float) -> Tensor:
        """A constant float32 scalar."""
        return self.model.constant(np.array(value, dtype=np.float32), "number")

    def emit(
        self,
        code: str,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
        options: tuple[str, Mapping[str, Any]] | None = None,
        version: int = 1,
    ) -> None:
        """Append one TFLite operator."""
        self.model.operator(code, inputs, outputs, options, version)

    def reshape(self, source: Tensor, target: Tensor) -> None:
        """Append a RESHAPE of one tensor into another."""
        options = ("ReshapeOptions", {"newShape": list(target.shape)})
        self.emit("RESHAPE", [source, self.integers(target.shape)], [target], options)

    # Ends of the graph

    def add_input(self, name: str, layout: TensorLayout) -> Tensor:
        return self.make(name, layout)

    def output_tensor(self, name: str) -> tuple[Tensor, TensorLayout]:
        """The tensor of a graph output, in the layout in which its node made it."""
        layout, tensor = next(iter(self._there[name].items()))
        return tensor, layout


def _in_layout(shape: tuple[int, ...], layout: TensorLayout) -> tuple[int, ...]:
    return tuple(shape[axis] for axis in TO_NHWC) if layout == "nhwc" else shape


def _same_order(shape: tuple[int, ...]) -> bool:
    """Whether NCHW and NHWC of this shape lie in memory alike."""
    return shape[1] == 1 or shape[2] * shape[3] == 1


def input_layouts(graph: Graph) -> dict[str, TensorLayout]:
    """NHWC for each rank-4 input that reaches a spatial operator through element-wise ones only."""
    from harness.models.tflite_writer.elementwise import KEEPS_LAYOUT

    consumers = graph.consumers()
    layouts: dict[str, TensorLayout] = {}
    for name in graph.inputs:
        layouts[name] = "plain"
        if graph.types[name].rank != 4:
            continue
        seen, waiting = {name}, [name]
        while waiting:
            for node in consumers.get(waiting.pop(), []):
                if node.op in SPATIAL:
                    layouts[name] = "nhwc"
                for output in node.outputs if node.op in KEEPS_LAYOUT else ():
                    if output not in seen and graph.types[output].rank == 4:
                        seen.add(output)
                        waiting.append(output)
    return layouts


def handlers() -> dict[str, Handler]:
    """Every operator that can be written."""
    from harness.models.tflite_writer import elementwise, matrix, reduction, shaping, spatial

    return {
        **spatial.HANDLERS,
        **elementwise.HANDLERS,
        **reduction.HANDLERS,
        **matrix.HANDLERS,
        **shaping.HANDLERS,
    }


def write(graph: Graph) -> Converted:
    """The TFLite file of a simplified graph."""
    table = handlers()
    unknown = next((node for node in graph.nodes if node.op not in table), None)
    if unknown is not None:
        raise unknown.refuse("it has no counterpart here", "The TFLite writer")
    _check_types(graph)
    writer = Writer(graph)
    layouts = input_layouts(graph)
    inputs = {name: writer.add_input(name, layouts[name]) for name in graph.inputs}
    for node in graph.nodes:
        table[node.op](writer, node)
    outputs = {name: writer.output_tensor(name) for name in graph.outputs}
    data = writer.model.pack(inputs, {name: tensor for name, (tensor, _) in outputs.items()})
    return Converted(
        data,
        tuple(_port(writer, name, tensor, layouts[name]) for name, tensor in inputs.items()),
        tuple(_port(writer, name, tensor, layout) for name, (tensor, layout) in outputs.items()),
    )


def _check_types(graph: Graph) -> None:
    """LiteRT's kernels compute in float32 (int64 is narrowed); half-precision files would fail only when loaded."""
    for node in graph.nodes:
        for name in (*node.inputs, *node.outputs):
            if name and str(graph.types[name].dtype) not in _COMPUTED:
                raise ModelError(
                    f"The TFLite writer cannot convert operator {node.op} of node '{node.name}': "
                    f"'{name}' is {graph.types[name].dtype}.",
                    "Give the float32 file of the network.",
                )


def _port(writer: Writer, name: str, tensor: Tensor, layout: TensorLayout) -> Port:
    return Port(name, tensor.name, tensor.dtype, writer.shape(name), "nhwc" if layout == "nhwc" else "as_is")
