"""Rewrites that TFLite and CoreML both profit from: fewer, larger operators with the same values.

Order matters: normalisations are folded before activations are looked for, patterns of many nodes before their pieces.
"""

from __future__ import annotations

import numpy as np

from harness.models.onnx_graph.graph import Array, Graph, Node
from harness.models.onnx_graph.parameters import pad_value, pad_widths, slice_bounds
from harness.models.onnx_graph.patterns import match_gelu, match_layer_norm
from harness.models.onnx_graph.recurrent import unroll_lstms

_RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


def simplify(graph: Graph) -> Graph:
    """Rewrite the graph in place and return it."""
    unroll_lstms(graph)
    _drop_identities(graph)
    _normalise_clips(graph)
    _fold_batch_norms(graph)
    _make_linears(graph)
    _fold_biases(graph)
    match_gelu(graph)
    match_layer_norm(graph)
    _fold_pads(graph)
    _pool_and_flatten(graph)
    merge_reshapes(graph)
    graph.drop_unused()
    return graph


def _bypass(graph: Graph, node: Node) -> bool:
    """Remove a node whose output equals its first input. False where both are graph outputs or the input is the graph's."""
    source, output = node.inputs[0], node.output
    if output not in graph.outputs:
        graph.replace_uses(output, source)
        graph.remove([node])
        return True
    producer = graph.producers().get(source)
    if producer is None or source in graph.outputs:
        return False
    graph.replace_uses(source, output)
    producer.outputs = [output if name == source else name for name in producer.outputs]
    graph.remove([node])
    return True


def _drop_identities(graph: Graph) -> None:
    for node in list(graph.nodes):
        same_type = node.op == "Cast" and graph.types[node.inputs[0]].dtype == graph.types[node.output].dtype
        same_shape = (
            node.op in ("Expand", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Tile")
            and graph.types[node.inputs[0]].shape == graph.types[node.output].shape
        )
        dropout = node.op == "Dropout" and len([name for name in node.outputs if name]) == 1
        if node.op == "Identity" or dropout or same_type or same_shape or _takes_everything(graph, node):
            _bypass(graph, node)


def _takes_everything(graph: Graph, node: Node) -> bool:
    """Whether a Slice has its whole input as its output; one that runs backwards is refused here as it is later."""
    if node.op != "Slice" or graph.types[node.inputs[0]].shape != graph.types[node.output].shape:
        return False
    return all(step == 1 for step in slice_bounds(graph, node)[2])


def merge_reshapes(graph: Graph) -> None:
    """Of reshapes in a row only the last counts, and none where it gives the first one's input back.

    What stays is described by its output's type: a shape input with 0 or -1 in it spoke of the input that it had before.
    """
    producers = graph.producers()
    for node in list(graph.nodes):
        while node.op in _RESHAPES:
            before = producers.get(node.inputs[0])
            if before is None or before.op not in _RESHAPES:
                break
            node.inputs = [before.inputs[0], *node.inputs[1:]]
        if node.op not in _RESHAPES or node.output in graph.outputs:
            continue
        if graph.types[node.inputs[0]].shape == graph.types[node.output].shape:
            graph.replace_uses(node.output, node.inputs[0])


def _normalise_clips(graph: Graph) -> None:
    """Clip 0..6 becomes Relu6, Clip 0.. Relu; other limits become the attributes min and max (floats, None if open)."""
    for node in graph.nodes:
        if node.op != "Clip":
            continue
        low, high = node.attributes.get("min"), node.attributes.get("max")  # opset 6
        if node.opset >= 11:
            for index, what in ((1, "min"), (2, "max")):
                if node.input(index) and graph.scalar(node.input(index)) is None:
                    raise node.refuse(f"its {what} is not a constant")
            low, high = graph.scalar(node.input(1)), graph.scalar(node.input(2))
        low = None if low is not None and low <= np.finfo(np.float32).min else low
        high = None if high is not None and high >= np.finfo(np.float32).max else high
        node.inputs = node.inputs[:1]
        node.attributes = {"min": low, "max": high}
        if str(graph.types[node.output].dtype) != "float32":
            continue
        if low == 0 and high == 6:
            node.op = "Relu6"
        elif low == 0 and high is None:
            node.op = "Relu"


def _channels_first(graph: Graph, node: Node) -> Array:
    """The weights of a Conv or ConvTranspose with output channels in axis 0 (a view; ConvTranspose: one group only)."""
    weights = graph.constants[node.inputs[1]]
    return weights if node.op == "Conv" else weights.swapaxes(0, 1)


def _scale_output(graph: Graph, node: Node, scale: Array, shift: Array) -> None:
    """Let a convolution with constant weights compute `scale * y + shift` per output channel."""
    weights = _channels_first(graph, node)
    scaled = weights * scale.reshape(-1, *[1] * (weights.ndim - 1))
    if node.op == "ConvTranspose":
        scaled = scaled.swapaxes(0, 1)
    bias_name = node.input(2)
    bias = graph.constants[bias_name] if bias_name else np.zeros(len(scale))
    name = graph.add_constant(f"{node.inputs[1]}_folded", np.ascontiguousarray(scaled, dtype=np.float32))
    bias_name = graph.add_constant(f"{name}_bias", (bias * scale + shift).astype(np.float32))
    node.inputs = [node.inputs[0], name, bias_name]


def _foldable(graph: Graph, node: Node | None, consumers: dict[str, list[Node]]) -> bool:
    """Whether a following per-channel factor or summand may go into this convolution's weights."""
    return (
        node is not None
        and node.op in ("Conv", "ConvTranspose")
        and (node.op == "Conv" or node.attributes.get("group", 1) == 1)
        and node.inputs[1] in graph.constants
        and (node.input(2) is None or node.inputs[2] in graph.constants)
        and len(consumers.get(node.output, [])) == 1
        and node.output not in graph.outputs
    )


def _take_over(graph: Graph, producer: Node, follower: Node) -> None:
    """Remove `follower`; `producer` now makes its output."""
    producer.outputs = [follower.output]
    graph.remove([follower])


def _fold_batch_norms(graph: Graph) -> None:
    """Into the convolution before it, else into one factor and one summand per channel (in float64, then rounded once)."""
    for node in [n for n in graph.nodes if n.op == "BatchNormalization"]:
        values = [graph.constant(name) for name in node.inputs[1:5]]
        if any(value is None for value in values) or len([name for name in node.outputs if name]) > 1:
            raise node.refuse("its statistics are not constants")
        gamma, beta, mean, variance = (np.asarray(value, dtype=np.float64) for value in values)
        scale = gamma / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
        shift = beta - mean * scale
        producer = graph.producers().get(node.inputs[0])
        if _foldable(graph, producer, graph.consumers()):
            assert producer is not None
            _scale_output(graph, producer, scale, shift)
            _take_over(graph, producer, node)
            continue
        source = graph.types[node.inputs[0]]
        per_channel = (-1, *[1] * (source.rank - 2))
        factor = graph.add_constant(f"{node.inputs[1]}_scale", scale.astype(np.float32).reshape(per_channel))
        summand = graph.add_constant(f"{node.inputs[2]}_shift", shift.astype(np.float32).reshape(per_channel))
        between = f"{node.output}_scaled"
        graph.types[between] = source
        multiply = Node("Mul", f"{node.name}_scale", [node.inputs[0], factor], [between], opset=node.opset)
        node.op, node.inputs, node.outputs, node.attributes = "Add", [between, summand], [node.output], {}
        graph.nodes.insert(graph.nodes.index(node), multiply)


def _make_linears(graph: Graph) -> None:
    """MatMul or Gemm with constant weights becomes Linear: input [..., in], weights [out, in], bias [out] or none."""
    for node in graph.nodes:
        weights = graph.constant(node.input(1))
        if weights is None or weights.ndim != 2 or weights.dtype != np.float32:
            continue
        if node.op == "MatMul" and graph.types[node.inputs[0]].rank >= 2:
            name = graph.add_constant(f"{node.inputs[1]}_transposed", np.ascontiguousarray(weights.T))
            node.op, node.inputs = "Linear", [node.inputs[0], name]
        elif node.op == "Gemm" and not node.attributes.get("transA", 0):
            alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
            bias = graph.constant(node.input(2))
            if node.input(2) and (bias is None or bias.size not in (1, graph.types[node.output].shape[-1])):
                continue
            name = node.inputs[1]
            if not node.attributes.get("transB", 0) or alpha != 1:
                matrix = weights if node.attributes.get("transB", 0) else weights.T
                name = graph.add_constant(f"{name}_prepared", np.ascontiguousarray(matrix * np.float32(alpha)))
            inputs = [node.inputs[0], name]
            if bias is not None:
                full = np.broadcast_to(bias.reshape(-1) * np.float32(beta), (graph.types[node.output].shape[-1],))
                inputs.append(graph.add_constant(f"{node.inputs[2]}_prepared", np.ascontiguousarray(full)))
            node.op, node.inputs, node.attributes = "Linear", inputs, {}


def _fold_biases(graph: Graph) -> None:
    """An Add of one constant per output channel goes into the Linear, Conv or ConvTranspose before it."""
    for node in [n for n in graph.nodes if n.op == "Add"]:
        producers, consumers = graph.producers(), graph.consumers()
        for source, other in (node.inputs, node.inputs[::-1]):
            producer, bias = producers.get(source), graph.constant(other)
            if producer is None or bias is None or len(consumers[source]) != 1 or source in graph.outputs:
                continue
            output = graph.types[producer.output]
            if output.shape != graph.types[node.output].shape:
                continue
            if producer.op == "Linear" and bias.size == output.shape[-1] == (bias.shape or (1,))[-1]:
                old = graph.constant(producer.input(2))
                total = bias.reshape(-1) if old is None else bias.reshape(-1) + old
                producer.inputs = [*producer.inputs[:2], graph.add_constant(f"{other}_bias", total)]
                _take_over(graph, producer, node)
                break
            channel_shape = (1,) * (output.rank - bias.ndim) + bias.shape
            per_channel = output.rank > 2 and channel_shape == (1, output.shape[1], *[1] * (output.rank - 2))
            if per_channel and _foldable(graph, producer, consumers):
                _scale_output(graph, producer, np.ones(bias.size, dtype=np.float32), bias.reshape(-1))
                _take_over(graph, producer, node)
                break


def _fold_pads(graph: Graph) -> None:
    """A Pad with zeros before a convolution becomes part of the convolution's own padding."""
    for node in [n for n in graph.nodes if n.op == "Conv"]:
        pad = graph.producers().get(node.inputs[0])
        if pad is None or pad.op != "Pad" or len(graph.consumers()[pad.output]) != 1 or pad.output in graph.outputs:
            continue
        widths = pad_widths(graph, pad)
        rank = graph.types[node.inputs[0]].rank
        if pad.attributes.get("mode", b"constant") not in (b"constant", "constant") or pad_value(graph, pad) != 0:
            continue
        if any(widths[axis] != (0, 0) for axis in (0, 1)) or any(min(w) < 0 for w in widths):
            continue
        if node.attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", "NOTSET", b"VALID", "VALID"):
            continue
        old = list(node.attributes.get("pads", [0] * 2 * (rank - 2)))
        before = [old[i] + widths[i + 2][0] for i in range(rank - 2)]
        after = [old[i + rank - 2] + widths[i + 2][1] for i in range(rank - 2)]
        node.attributes = {**node.attributes, "pads": before + after, "auto_pad": b"NOTSET"}
        node.inputs = [pad.inputs[0], *node.inputs[1:]]
        graph.remove([pad])


def _pool_and_flatten(graph: Graph) -> None:
    """GlobalAveragePool, then anything that only drops the 1 x 1 axes, is a mean over the spatial axes."""
    for node in [n for n in graph.nodes if n.op == "GlobalAveragePool"]:
        source = graph.types[node.inputs[0]]
        axes = list(range(2, source.rank))
        node.op, node.attributes = "ReduceMean", {"axes": axes, "keepdims": 1}
        node.opset = 13  # axes as an attribute
        followers = graph.consumers().get(node.output, [])
        if (
            len(followers) != 1
            or node.output in graph.outputs
            or followers[0].op not in ("Flatten", "Reshape", "Squeeze")
        ):
            continue
        if graph.types[followers[0].output].shape == source.shape[:2]:
            node.attributes["keepdims"] = 0
            _take_over(graph, node, followers[0])
