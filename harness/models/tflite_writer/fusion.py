"""Rewrites that only TFLite profits from: activations inside operators, transposes inside matrix products."""

from __future__ import annotations

from harness.models.onnx_graph.graph import Graph, Node, TensorType
from harness.models.onnx_graph.simplify import merge_reshapes

_ACTIVATIONS = {"Relu": "RELU", "Relu6": "RELU6"}
_TAKES_ACTIVATION = ("Conv", "ConvTranspose", "Linear", "Add", "Sub", "Mul", "Div", "MaxPool", "AveragePool")
_RAISED = ("Conv", "ConvTranspose", "MaxPool", "AveragePool")
_POWERS = {2.0: "Square", 0.5: "Sqrt", -0.5: "Rsqrt"}


def fuse_for_tflite(graph: Graph) -> None:
    """Rewrite a simplified graph in place."""
    _name_powers(graph)
    _fuse_activations(graph)
    _raise_to_two_dimensions(graph)
    merge_reshapes(graph)
    _fuse_transposes(graph)
    graph.drop_unused()


def _raise_to_two_dimensions(graph: Graph) -> None:
    """A convolution or pool over one dimension [N, C, L] becomes one over [N, C, 1, L], between two reshapes."""
    for node in [n for n in graph.nodes if n.op in _RAISED and graph.types[n.inputs[0]].rank == 3]:
        source, output = node.inputs[0], node.output
        raised_in, raised_out = f"{output}_raised_input", f"{output}_raised"
        for flat, raised in ((source, raised_in), (output, raised_out)):
            known = graph.types[flat]
            graph.types[raised] = TensorType(known.dtype, (*known.shape[:2], 1, known.shape[2]))
        inputs = [raised_in]
        if len(node.inputs) > 1:
            weights = graph.constant(node.inputs[1])
            if weights is None:
                raise node.refuse("its weights are not constants", "The TFLite writer")
            inputs += [graph.add_constant(f"{node.inputs[1]}_raised", weights[:, :, None, :]), *node.inputs[2:]]
        attributes = dict(node.attributes)
        for key in ("strides", "dilations", "kernel_shape"):
            if key in attributes:
                attributes[key] = [1, *attributes[key]]
        if "pads" in attributes:
            attributes["pads"] = [0, attributes["pads"][0], 0, attributes["pads"][1]]
        if "output_padding" in attributes:
            attributes["output_padding"] = [0, *attributes["output_padding"]]
        position = graph.nodes.index(node)
        graph.nodes[position : position + 1] = [
            Node("Reshape", f"{node.name}_raise", [source], [raised_in]),
            Node(node.op, node.name, inputs, [raised_out, *node.outputs[1:]], attributes, node.opset),
            Node("Reshape", f"{node.name}_lower", [raised_out], [output]),
        ]


def _name_powers(graph: Graph) -> None:
    """x^2, x^0.5 and x^-0.5 have operators of their own, which XNNPACK takes; POW it does not."""
    for node in graph.nodes:
        exponent = graph.scalar(node.input(1)) if node.op == "Pow" else None
        if exponent in _POWERS and graph.types[node.inputs[0]].shape == graph.types[node.output].shape:
            node.op, node.inputs = _POWERS[exponent], node.inputs[:1]


def _fuse_activations(graph: Graph) -> None:
    for node in list(graph.nodes):
        if node.op not in _ACTIVATIONS:
            continue
        producer = graph.producers().get(node.inputs[0])
        if producer is None or producer.op not in _TAKES_ACTIVATION or "activation" in producer.attributes:
            continue
        if len(graph.consumers()[producer.output]) > 1 or producer.output in graph.outputs or len(producer.outputs) > 1:
            continue
        if str(graph.types[node.output].dtype) != "float32":
            continue
        producer.attributes = {**producer.attributes, "activation": _ACTIVATIONS[node.op]}
        producer.outputs = [node.output]
        graph.remove([node])


def _fuse_transposes(graph: Graph) -> None:
    """MatMul(a, Transpose(b)): let BATCH_MATMUL read b transposed; what is left of the transpose moves whole rows."""
    for node in [n for n in graph.nodes if n.op == "MatMul"]:
        transpose = graph.producers().get(node.inputs[1])
        if transpose is None or transpose.op != "Transpose" or transpose.output in graph.outputs:
            continue
        rank = graph.types[transpose.output].rank
        permutation = [int(a) for a in transpose.attributes.get("perm", range(rank - 1, -1, -1))]
        if len(graph.consumers()[transpose.output]) > 1 or permutation[-2] != rank - 1:
            continue
        rest = [*permutation[:-2], permutation[-1], permutation[-2]]
        source = transpose.inputs[0]
        node.attributes = {**node.attributes, "adj_y": 1}
        if rest == list(range(rank)):
            node.inputs = [node.inputs[0], source]
            graph.remove([transpose])
        else:
            known = graph.types[source]
            transpose.attributes = {"perm": rest}
            graph.types[transpose.output] = TensorType(known.dtype, tuple(known.shape[a] for a in rest))
