"""The graph that the writers work on: nodes in topological order, constants as arrays, one known type per value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.errors import ModelError

Array = npt.NDArray[Any]

TORCH_ROUTE_FIX = (
    "Use the optional torch environment for it (`[runtimes] convert` in config.toml, see docs/models.md), "
    "or bring a file that is already in the wanted format."
)


_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError)


@contextmanager
def malformed_is_model_error() -> Iterator[None]:
    """A crafted or damaged graph can break any assumption about attributes: that is one sentence, too, not a traceback."""
    try:
        yield
    except _MALFORMED as error:
        raise ModelError(
            f"The ONNX model is malformed ({type(error).__name__}: {error}).", "Check it with onnx.checker.check_model."
        ) from error


@dataclass(frozen=True)
class TensorType:
    """Element type and concrete shape of a value."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) if self.shape else 1


@dataclass
class Node:
    """One operator. `op` is the ONNX name, or one that `simplify` introduces (Linear, Square, Relu6).

    An absent optional input is the empty string, as in ONNX.
    """

    op: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 0

    @property
    def output(self) -> str:
        return self.outputs[0]

    def input(self, index: int) -> str | None:
        """The name of an input, None where the optional input is absent."""
        if index < len(self.inputs) and self.inputs[index]:
            return self.inputs[index]
        return None

    def refuse(self, why: str, target: str = "This writer") -> ModelError:
        """The error for a node that cannot be written: names operator and node, and the way out."""
        return ModelError(f"{target} cannot convert operator {self.op} of node '{self.name}': {why}.", TORCH_ROUTE_FIX)


@dataclass
class Graph:
    """A network with fixed shapes. Every value that nodes read is an input, a constant, or an earlier node's output."""

    nodes: list[Node]
    constants: dict[str, Array]
    types: dict[str, TensorType]
    inputs: list[str]
    outputs: list[str]

    def constant(self, name: str | None) -> Array | None:
        """The array of a constant value, None where the value is computed or absent."""
        return None if name is None else self.constants.get(name)

    def scalar(self, name: str | None) -> float | None:
        """The one number of a constant with one element, else None."""
        value = self.constant(name)
        return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None

    def consumers(self) -> dict[str, list[Node]]:
        """For every value, the nodes that read it, in order; a node that reads it twice is listed twice."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                if name:
                    found.setdefault(name, []).append(node)
        return found

    def producers(self) -> dict[str, Node]:
        """For every computed value, its node."""
        return {name: node for node in self.nodes for name in node.outputs if name}

    def add_constant(self, name: str, value: Array) -> str:
        """Store an array under a name made unique, and return that name."""
        unique, count = name, 1
        while unique in self.constants or unique in self.types:
            unique, count = f"{name}_{count}", count + 1
        self.constants[unique] = value
        self.types[unique] = TensorType(value.dtype, tuple(value.shape))
        return unique

    def replace_uses(self, old: str, new: str) -> None:
        """Let every reader of `old` read `new`. Graph outputs keep their names: callers must not replace those."""
        for node in self.nodes:
            if old in node.inputs:
                node.inputs = [new if name == old else name for name in node.inputs]

    def remove(self, nodes: Iterable[Node]) -> None:
        """Take nodes out of the graph (by identity)."""
        gone = {id(node) for node in nodes}
        self.nodes = [node for node in self.nodes if id(node) not in gone]

    def drop_unused(self) -> None:
        """Remove nodes that no output needs, then constants that nobody reads."""
        needed = set(self.outputs)
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if any(name in needed for name in node.outputs):
                kept.append(node)
                needed.update(name for name in node.inputs if name)
        self.nodes = kept[::-1]
        self.constants = {name: value for name, value in self.constants.items() if name in needed}
