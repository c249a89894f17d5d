"""Matrix products."""

from __future__ import annotations

import numpy as np

from harness.models.onnx_graph.graph import Node
from harness.models.tflite_writer.flatbuffer import ACTIVATIONS
from harness.models.tflite_writer.writer import Handler, Writer


def linear(writer: Writer, node: Node) -> None:
    """FULLY_CONNECTED with weights [out, in]."""
    source = writer.want(node.inputs[0])
    weights = writer.want(node.inputs[1])
    out = writer.shape(node.inputs[1])[0]
    bias = writer.graph.constant(node.input(2))
    biases = writer.model.constant(np.zeros(out, np.float32) if bias is None else bias, f"{node.output}_bias")
    keep = len(source.shape) != 2
    options = {"keepNumDims": keep, "fusedActivationFunction": ACTIVATIONS[node.attributes.get("activation", "")]}
    output = writer.make(node.output)
    writer.emit(
        "FULLY_CONNECTED", [source, weights, biases], [output], ("FullyConnectedOptions", options), 5 if keep else 1
    )


def matmul(writer: Writer, node: Node) -> None:
    """BATCH_MATMUL; `adj_y` says that the second operand comes transposed."""
    if any(len(writer.shape(name)) < 2 for name in node.inputs):
        raise node.refuse("an operand is a vector", "The TFLite writer")
    if any(len(writer.shape(name)) > 5 for name in node.inputs):
        raise node.refuse("an operand has more than 5 dimensions", "The TFLite writer")
    inputs = [writer.want(name) for name in node.inputs]
    options = {"adjX": bool(node.attributes.get("adj_x")), "adjY": bool(node.attributes.get("adj_y"))}
    writer.emit("BATCH_MATMUL", inputs, [writer.make(node.output)], ("BatchMatMulOptions", options))


def gemm(writer: Writer, node: Node) -> None:
    """A Gemm whose matrices are computed: BATCH_MATMUL and ADD."""
    if node.attributes.get("alpha", 1.0) != 1.0 or (node.input(2) and node.attributes.get("beta", 1.0) != 1.0):
        raise node.refuse("its factors are not 1", "The TFLite writer")
    inputs = [writer.want(name) for name in node.inputs[:2]]
    options = {"adjX": bool(node.attributes.get("transA", 0)), "adjY": bool(node.attributes.get("transB", 0))}
    output = writer.make(node.output)
    bias = node.input(2)
    product = writer.temporary(f"{node.output}_product", output.dtype, output.shape) if bias else output
    writer.emit("BATCH_MATMUL", inputs, [product], ("BatchMatMulOptions", options))
    if bias:
        writer.emit("ADD", [product, writer.want(bias)], [output], ("AddOptions", {}))


HANDLERS: dict[str, Handler] = {"Linear": linear, "MatMul": matmul, "Gemm": gemm}
