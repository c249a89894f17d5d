"""Walks the graph and builds the MIL program. Every operator's output shape is checked against ONNX's own inference."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.artifacts import Port
from harness.errors import ModelError
from harness.models.coreml_writer.toolbox import builder, coremltools, quiet
from harness.models.onnx_graph.graph import Graph, Node

WRITER = "The Core ML writer"
MAX_RANK = 5  # Core ML's limit for a tensor
Handler = Callable[["ProgramWriter", Node], Any]

# Words of MIL itself: coremltools would rename a value that is called so, the package's inputs and outputs included.
_RESERVED = frozenset(
    {"any", "bool", "program", "func", "tensor", "list", "dict", "tuple", "true", "false", "string", "state"}
    | {"bf16", "fp16", "fp32", "fp64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
)
_TYPES = {"float32": "fp32", "int64": "int32", "int32": "int32", "bool": "bool"}


class ProgramWriter:
    """State while one graph is written. Handlers call `value`, `constant`, `name` and the MIL builder `mb`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.mb = builder()
        self.values: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()

    def name(self, value: str, suffix: str = "") -> str:
        """The MIL name of an ONNX value: letters, digits and underscores, unique, and no word of MIL's own."""
        key = value + suffix
        if key not in self._names:
            cleaned = re.sub(r"[^A-Za-z0-9_]", "_", key)
            cleaned = cleaned if re.match(r"[A-Za-z_]", cleaned) else f"_{cleaned}"
            cleaned = f"{cleaned}_value" if cleaned in _RESERVED else cleaned
            unique, count = cleaned, 1
            while unique in self._taken:
                unique, count = f"{cleaned}_{count}", count + 1
            self._taken.add(unique)
            self._names[key] = unique
        return self._names[key]

    def shape(self, value: str) -> tuple[int, ...]:
        """The ONNX shape of a value."""
        return self.graph.types[value].shape

    def type_name(self, value: str) -> str:
        """The MIL type of a value; ModelError for one that Core ML has not."""
        known = str(self.graph.types[value].dtype)
        if known not in _TYPES:
            raise ModelError(f"Tensor '{value}' has the type {known}, which {WRITER.lower()} cannot hold.")
        return _TYPES[known]

    def value(self, name: str) -> Any:
        """A computed value, or a constant as an array that MIL accepts."""
        if name not in self.graph.constants:
            return self.values[name]
        array = self.graph.constants[name]
        if array.dtype == np.int64:
            limits = np.iinfo(np.int32)
            if array.size and (array.min() < limits.min or array.max() > limits.max):
                raise ModelError(f"Constant '{name}' holds 64-bit integers beyond 32 bits, which Core ML has not.")
            array = array.astype(np.int32)
        self.type_name(name)
        # A scalar must be a numpy scalar, not an array of rank 0.
        return array[()] if array.ndim == 0 else np.ascontiguousarray(array)


def handlers() -> dict[str, Handler]:
    """Every operator that can be written."""
    from harness.models.coreml_writer import numeric, shaping, spatial

    return {**numeric.HANDLERS, **shaping.HANDLERS, **spatial.HANDLERS}


def build_program(graph: Graph) -> tuple[Any, tuple[Port, ...], tuple[Port, ...]]:
    """The MIL program of a simplified graph, with the ports of its ends."""
    table = handlers()
    unknown = next((node for node in graph.nodes if node.op not in table), None)
    if unknown is not None:
        raise unknown.refuse("it has no counterpart here", WRITER)
    tools = coremltools()
    from coremltools.converters.mil.mil import Function, Program, types

    writer = ProgramWriter(graph)
    kinds = {"fp32": types.fp32, "int32": types.int32, "bool": types.bool}
    placeholders = {}
    for name in graph.inputs:
        kind = writer.type_name(name)
        if kind == "bool":
            raise ModelError(f"Input '{name}' is of booleans, which Core ML does not take at its door.")
        placeholders[writer.name(name)] = writer.mb.placeholder(writer.shape(name), dtype=kinds[kind])
    with quiet(), Function(placeholders, opset_version=tools.target.iOS16) as function:
        for name in graph.inputs:
            writer.values[name] = function.inputs[writer.name(name)]
        for node in graph.nodes:
            _write_node(writer, node, table[node.op])
        function.set_outputs([writer.values[name] for name in graph.outputs])
    program = Program()
    program.add_function("main", function)
    inputs, outputs = (tuple(_port(writer, name) for name in names) for names in (graph.inputs, graph.outputs))
    return program, inputs, outputs


def _write_node(writer: ProgramWriter, node: Node, handler: Handler) -> None:
    for name in node.outputs:
        if name and len(writer.shape(name)) > MAX_RANK:
            raise node.refuse(f"its output has more than {MAX_RANK} dimensions, Core ML's limit", WRITER)
    try:
        made = handler(writer, node)
    except ModelError:
        raise
    except (ValueError, TypeError, KeyError, RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise node.refuse(f"coremltools refuses it ({reason})", WRITER) from error
    results = made if isinstance(made, list) else [made]
    for name, result in zip([name for name in node.outputs if name], results, strict=True):
        if tuple(result.shape) != writer.shape(name):
            raise node.refuse(
                f"Core ML makes the shape {tuple(result.shape)} where ONNX has {writer.shape(name)}", WRITER
            )
        writer.values[name] = result


def _port(writer: ProgramWriter, name: str) -> Port:
    dtype = {"fp32": "float32", "int32": "int32", "bool": "bool"}[writer.type_name(name)]
    return Port(name, writer.name(name), dtype, writer.shape(name))
