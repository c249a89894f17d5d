"""Finds GELU and layer normalisation where an exporter wrote them as a handful of small operators."""

from __future__ import annotations

import math

from harness.models.onnx_graph.graph import Graph, Node
from harness.models.onnx_graph.parameters import reduce_axes


class _Look:
    """One snapshot of who makes and who reads each value, and small questions about it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.producers = graph.producers()
        self.consumers = graph.consumers()

    def only_reader(self, name: str, *ops: str) -> Node | None:
        """The single node that reads a value, if it is one of `ops` and the value is not a graph output."""
        readers = self.consumers.get(name, [])
        if len(readers) != 1 or name in self.graph.outputs:
            return None
        return readers[0] if readers[0].op in ops else None

    def near(self, name: str | None, wanted: float) -> bool:
        """Whether a value is one constant number, within float32 rounding of `wanted`."""
        value = self.graph.scalar(name)
        return value is not None and math.isclose(value, wanted, rel_tol=1e-5)

    def other(self, node: Node, name: str) -> str:
        """The second operand of a commutative node that reads `name`."""
        return node.inputs[1] if node.inputs[0] == name else node.inputs[0]


def match_gelu(graph: Graph) -> None:
    """x * 0.5 * (1 + erf(x / sqrt 2)), in any order of its two products, becomes Gelu (exact, not the tanh form)."""
    for erf in [n for n in graph.nodes if n.op == "Erf"]:
        look = _Look(graph)
        found = _gelu_around(look, erf)
        if found is None:
            continue
        source, last, used = found
        last.op, last.inputs, last.attributes = "Gelu", [source], {"approximate": b"none"}
        graph.remove([node for node in used if node is not last])


def _gelu_around(look: _Look, erf: Node) -> tuple[str, Node, list[Node]] | None:
    """(x, the node that makes the result, all nodes of the pattern) around an Erf, or None."""
    scaled = look.producers.get(erf.inputs[0])
    if scaled is None or look.only_reader(scaled.output, "Erf") is None:
        return None
    divided = scaled.op == "Div" and look.near(scaled.inputs[1], math.sqrt(2))
    if divided or (scaled.op == "Mul" and look.near(scaled.inputs[1], math.sqrt(0.5))):
        source = scaled.inputs[0]
    elif scaled.op == "Mul" and look.near(scaled.inputs[0], math.sqrt(0.5)):
        source = scaled.inputs[1]
    else:
        return None
    plus = look.only_reader(erf.output, "Add")
    if plus is None or not look.near(look.other(plus, erf.output), 1.0):
        return None
    first = look.only_reader(plus.output, "Mul")
    if first is None:
        return None
    operand = look.other(first, plus.output)
    half = look.producers.get(operand)
    if half is not None and half.op == "Mul" and source in half.inputs and look.near(look.other(half, source), 0.5):
        if look.only_reader(half.output, "Mul") is None:
            return None
        return source, first, [scaled, erf, plus, half, first]
    second = look.only_reader(first.output, "Mul")
    if second is None:
        return None
    rest = look.other(second, first.output)
    if (operand == source and look.near(rest, 0.5)) or (look.near(operand, 0.5) and rest == source):
        return source, second, [scaled, erf, plus, first, second]
    return None


def match_layer_norm(graph: Graph) -> None:
    """(x - mean) / sqrt(mean((x - mean)^2) + eps) * gamma + beta over the last axis becomes LayerNormalization."""
    for root in [n for n in graph.nodes if n.op == "Sqrt"]:
        look = _Look(graph)
        found = _layer_norm_around(look, root)
        if found is None:
            continue
        source, gamma, beta, epsilon, last, used = found
        last.op, last.inputs = "LayerNormalization", [source, gamma, beta]
        last.attributes = {"axis": -1, "epsilon": epsilon}
        graph.remove([node for node in used if node is not last])


def _is_last_axis_mean(graph: Graph, node: Node | None) -> bool:
    if node is None or node.op != "ReduceMean" or not node.attributes.get("keepdims", 1):
        return False
    return reduce_axes(graph, node) == [graph.types[node.inputs[0]].rank - 1]


def _layer_norm_around(look: _Look, root: Node) -> tuple[str, str, str, float, Node, list[Node]] | None:
    """(x, gamma, beta, epsilon, last node, all nodes) of a layer normalisation around its square root, or None."""
    graph = look.graph
    plus = look.producers.get(root.inputs[0])
    if plus is None or plus.op != "Add":
        return None
    variance = next((look.producers[name] for name in plus.inputs if name in look.producers), None)
    if variance is None or not _is_last_axis_mean(graph, variance):
        return None
    epsilon = graph.scalar(look.other(plus, variance.output))
    square = look.producers.get(variance.inputs[0])
    if epsilon is None or square is None:
        return None
    squared_by_power = square.op == "Pow" and look.near(square.input(1), 2.0)
    squared_by_product = square.op == "Mul" and square.inputs[0] == square.inputs[1]
    if not squared_by_power and not squared_by_product:
        return None
    divide = look.only_reader(root.output, "Div")
    difference = look.producers.get(square.inputs[0])
    if divide is None or difference is None or difference.op != "Sub" or divide.inputs[0] not in look.producers:
        return None
    # Some exporters compute x - mean twice, once per use.
    numerator = look.producers[divide.inputs[0]]
    if numerator.op != "Sub" or numerator.inputs != difference.inputs:
        return None
    mean = look.producers.get(difference.inputs[1])
    if mean is None or not _is_last_axis_mean(graph, mean) or mean.inputs[0] != difference.inputs[0]:
        return None
    times = look.only_reader(divide.output, "Mul")
    add = look.only_reader(times.output, "Add") if times is not None else None
    if times is None or add is None:
        return None
    gamma, beta = look.other(times, divide.output), look.other(add, times.output)
    width = (graph.types[difference.inputs[0]].shape[-1],)
    if any(name not in graph.constants or graph.types[name].shape != width for name in (gamma, beta)):
        return None
    inner = [mean, difference, numerator, square, variance, plus, root, divide, times]
    used = {id(node) for node in [*inner, add]}
    for node in inner:  # nothing else may read a value that goes away
        if node.output in graph.outputs or any(id(reader) not in used for reader in look.consumers[node.output]):
            return None
    return difference.inputs[0], gamma, beta, float(epsilon), add, [*inner, add]
