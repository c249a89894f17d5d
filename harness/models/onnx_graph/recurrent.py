"""Writes an LSTM out as the small operators that it means, one step after the other.

TFLite and Core ML have recurrent operators of their own, but neither takes ONNX's states and gate order as they are, and
XNNPACK takes none; the products, sums and gates run everywhere. Formulas and the gate order i, o, f, c are those of the
operator LSTM in the ONNX specification.
"""

from __future__ import annotations

import numpy as np

from harness.models.onnx_graph.graph import Array, Graph, Node, TensorType
from harness.models.onnx_graph.parameters import constant_input, text

MAX_STEPS = 256  # of all LSTMs of a graph together: each step is a dozen operators in the file
_DEFAULT_GATES = ["sigmoid", "tanh", "tanh"]
_OPSET = 13  # of the operators that are put in the LSTM's place


def unroll_lstms(graph: Graph) -> None:
    """Replace every LSTM of one direction with constant weights. ModelError for one that cannot be written out."""
    lstms = [node for node in graph.nodes if node.op == "LSTM"]
    steps = 0
    for node in lstms:
        _check(graph, node)
        steps += graph.types[node.inputs[0]].shape[0]
        if steps > MAX_STEPS:
            raise node.refuse(f"it would be written out step by step, and only {MAX_STEPS} steps fit into one file")
        made = _Unrolled(graph, node).write()
        position = next(place for place, other in enumerate(graph.nodes) if other is node)
        graph.nodes[position : position + 1] = made


def _check(graph: Graph, node: Node) -> None:
    """Refuse the variants that mean something else than the formulas below."""
    attributes = node.attributes
    if text(node, "direction", "forward") not in ("forward", "reverse"):
        raise node.refuse("only one direction is written")
    if attributes.get("layout", 0):
        raise node.refuse("only the sequence as first axis (layout 0) is written")
    gates = [(g.decode() if isinstance(g, bytes) else str(g)).lower() for g in attributes.get("activations", [])]
    if gates not in ([], _DEFAULT_GATES) or attributes.get("clip") or attributes.get("input_forget", 0):
        raise node.refuse("only the activations Sigmoid, Tanh, Tanh, without clip and input_forget, are written")
    if node.input(7):
        raise node.refuse("its peepholes are not written")
    sequence, batch, _ = graph.types[node.inputs[0]].shape
    lengths = constant_input(graph, node, 4, "sequence lengths")
    if lengths is not None and (lengths.size != batch or (lengths != sequence).any()):
        raise node.refuse("its sequences have different lengths")
    if sequence < 1:
        raise node.refuse("its sequence is empty")


class _Unrolled:
    """Makes the nodes of one LSTM; what is computed of constants alone becomes a constant."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node
        self.made: list[Node] = []
        self.sequence, self.batch, self.features = graph.types[node.inputs[0]].shape
        weights, recurrence = (self._weights(index, what) for index, what in ((1, "weights"), (2, "recurrence")))
        self.hidden = recurrence.shape[-1]
        self.dtype = weights.dtype
        rows = 4 * self.hidden
        summands = constant_input(graph, node, 3, "biases")
        # ONNX keeps the bias of the input's product and that of the state's apart; only their sum counts.
        bias = np.zeros(rows, self.dtype) if summands is None else summands.reshape(2, rows).sum(0, dtype=self.dtype)
        self.weights = graph.add_constant(f"{node.inputs[1]}_one_way", weights.reshape(rows, self.features))
        self.recurrence = graph.add_constant(f"{node.inputs[2]}_one_way", recurrence.reshape(rows, self.hidden))
        self.bias = graph.add_constant(f"{node.inputs[1]}_bias", bias)

    def _weights(self, index: int, what: str) -> Array:
        found = self.graph.constant(self.node.input(index))
        if found is None:
            raise self.node.refuse(f"its {what} are not constants")
        return found

    def write(self) -> list[Node]:
        """The nodes in order; they make those outputs that are read, under their own names."""
        graph, node = self.graph, self.node
        flat = self._reshape(node.inputs[0], (self.sequence * self.batch, self.features), "rows")
        # All steps' inputs in one product; only the state has to wait for the step before.
        projected = self._linear(flat, self.weights, self.bias, "projected")
        hidden, cell = self._state(5, "initial_h"), self._state(6, "initial_c")
        found: dict[int, str] = {}
        places = range(self.sequence)
        for place in reversed(places) if text(node, "direction", "forward") == "reverse" else places:
            gates = projected
            if self.sequence > 1:
                gates = self._rows(projected, place)
            hidden, cell = self._step(gates, hidden, cell, place)
            found[place] = hidden
        assert hidden is not None and cell is not None  # there is one step at least
        read = {*graph.outputs, *(name for other in graph.nodes for name in other.inputs)}
        wanted = [name if name in read else "" for name in (*node.outputs, "", "", "")]
        if wanted[0]:
            shape = (1, 1, self.batch, self.hidden)
            steps = [self._reshape(found[place], shape, f"y{place}") for place in places]
            self.made.append(Node("Concat", f"{node.name}_y", steps, [wanted[0]], {"axis": 0}, _OPSET))
        for name, value in ((wanted[1], hidden), (wanted[2], cell)):
            if name:
                shape_of = graph.add_constant(f"{name}_shape", np.array((1, self.batch, self.hidden), np.int64))
                self.made.append(Node("Reshape", f"{name}_last", [value, shape_of], [name], {}, _OPSET))
        return self.made

    def _state(self, index: int, what: str) -> str | None:
        """An initial state [batch, hidden]; None where it is absent or all zeros, which is the same."""
        name = self.node.input(index)
        known = self.graph.constant(name)
        if name is None or (known is not None and not known.any()):
            return None
        return self._reshape(name, (self.batch, self.hidden), what)

    def _step(self, gates: str, hidden: str | None, cell: str | None, place: int) -> tuple[str, str]:
        """One step: c' = f c + i tanh(g), h' = o tanh(c'), with i, o, f the sigmoids of their sums."""
        size, whole = self.hidden, (self.batch, self.hidden)
        if hidden is not None:
            recurrent = self._linear(hidden, self.recurrence, None, f"recurrent{place}")
            gates = self._node("Add", [gates, recurrent], (self.batch, 4 * size), f"gates{place}")
        sums, candidate = self._split(gates, (3 * size, size), f"parts{place}")
        opened = self._node("Sigmoid", [sums], (self.batch, 3 * size), f"open{place}")
        put_in, put_out, forget = self._split(opened, (size, size, size), f"gate{place}")
        fresh = self._node("Tanh", [candidate], whole, f"candidate{place}")
        cell_now = self._node("Mul", [put_in, fresh], whole, f"fresh{place}")
        if cell is not None:
            kept = self._node("Mul", [forget, cell], whole, f"kept{place}")
            cell_now = self._node("Add", [kept, cell_now], whole, f"cell{place}")
        shown = self._node("Tanh", [cell_now], whole, f"shown{place}")
        return self._node("Mul", [put_out, shown], whole, f"hidden{place}"), cell_now

    def _linear(self, source: str, weights: str, bias: str | None, what: str) -> str:
        known, matrix = self.graph.constant(source), self.graph.constants[weights]
        if known is not None:
            product = known @ matrix.T + (0 if bias is None else self.graph.constants[bias])
            return self.graph.add_constant(f"{self.node.name}_{what}", product.astype(self.dtype))
        inputs = [source, weights] if bias is None else [source, weights, bias]
        return self._node("Linear", inputs, (*self.graph.types[source].shape[:-1], len(matrix)), what)

    def _rows(self, projected: str, place: int) -> str:
        """The rows of one step out of [sequence * batch, 4 hidden]."""
        first, last = place * self.batch, (place + 1) * self.batch
        known = self.graph.constant(projected)
        if known is not None:
            return self.graph.add_constant(f"{projected}_{place}", known[first:last])
        bounds = [
            self.graph.add_constant(f"{self.node.name}_{what}", np.array([value], np.int64))
            for what, value in (("first", first), ("last", last), ("axis", 0))
        ]
        return self._node("Slice", [projected, *bounds], (self.batch, 4 * self.hidden), f"step{place}")

    def _reshape(self, source: str, shape: tuple[int, ...], what: str) -> str:
        known = self.graph.constant(source)
        if known is not None:
            return self.graph.add_constant(f"{source}_{what}", known.reshape(shape))
        target = self.graph.add_constant(f"{self.node.name}_{what}_shape", np.array(shape, np.int64))
        return self._node("Reshape", [source, target], shape, what)

    def _split(self, source: str, sizes: tuple[int, ...], what: str) -> list[str]:
        outputs = [self._value((self.batch, size), f"{what}_{index}") for index, size in enumerate(sizes)]
        lengths = self.graph.add_constant(f"{self.node.name}_{what}_sizes", np.array(sizes, np.int64))
        self.made.append(Node("Split", f"{self.node.name}_{what}", [source, lengths], outputs, {"axis": 1}, _OPSET))
        return outputs

    def _node(self, op: str, inputs: list[str], shape: tuple[int, ...], what: str) -> str:
        output = self._value(shape, what)
        self.made.append(Node(op, f"{self.node.name}_{what}", inputs, [output], {}, _OPSET))
        return output

    def _value(self, shape: tuple[int, ...], what: str) -> str:
        """A name for a computed value that the graph does not have yet."""
        name, count = f"{self.node.name}_{what}", 1
        while name in self.graph.types:
            name, count = f"{self.node.name}_{what}_{count}", count + 1
        self.graph.types[name] = TensorType(self.dtype, shape)
        return name
