"""What is done to an OpenVINO network and its XML beside quantising: its first and last layers, and names without chance."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

# Operations that multiply by weights.
LAYERS = ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "MatMul")
# OpenVINO gives an operation without a name its type and a number that counts all operations of the process.
_COUNTED = re.compile(r"[A-Za-z]\w*_\d+")


def layers_at_the_ends(model: Any) -> list[str]:
    """Names of the layers with constant weights before which, and after which, there is no other such layer."""
    operations = [op for op in model.get_ordered_ops() if op.get_type_name() != "Constant"]
    layers = [op for op in operations if _is_layer(op)]
    names = {op.get_friendly_name() for op in layers}
    behind: set[str] = set()  # operations that some layer leads to
    first = []
    for op in operations:
        name, before = op.get_friendly_name(), _before(op)
        deeper = any(other in behind or other in names for other in before)
        if deeper:
            behind.add(name)
        elif name in names:
            first.append(name)
    leading: set[str] = set()  # operations that lead to some layer
    last = []
    for op in reversed(operations):
        name = op.get_friendly_name()
        if name in names and name not in leading:
            last.append(name)
        if name in names or name in leading:
            leading.update(_before(op))
    return [op.get_friendly_name() for op in layers if op.get_friendly_name() in {*first, *last}]


def _before(op: Any) -> list[str]:
    return [op.input_value(i).get_node().get_friendly_name() for i in range(op.get_input_size())]


def _is_layer(op: Any) -> bool:
    return op.get_type_name() in LAYERS and any(_is_constant(op.input_value(i).get_node()) for i in range(2))


def _is_constant(node: Any) -> bool:
    """A constant, or one that is only converted or reshaped on the way."""
    while node.get_type_name() in ("Convert", "Reshape", "Transpose"):
        node = node.input_value(0).get_node()
    return str(node.get_type_name()) == "Constant"


def without_chance(xml: bytes) -> bytes:
    """The XML of an IR without what differs from one build to the next: paths, and names that count a process's operations.

    Such a name becomes the layer's type and its place in the file. Inputs, outputs and what feeds an output keep theirs,
    because a runtime finds the network's ends by them.
    """
    root = ElementTree.fromstring(xml)  # noqa: S314 - written by OpenVINO a moment ago
    information = root.find("rt_info")
    for told in [] if information is None else information.findall("conversion_parameters"):  # the source's path
        assert information is not None
        information.remove(told)
    layers = root.findall("./layers/layer")
    results = {layer.get("id") for layer in layers if layer.get("type") == "Result"}
    feeding = {edge.get("from-layer") for edge in root.iterfind("./edges/edge") if edge.get("to-layer") in results}
    for layer in layers:
        kept = layer.get("type") in ("Parameter", "Result") or layer.get("id") in feeding
        if not kept and _COUNTED.match(layer.get("name", "")):
            layer.set("name", f"{layer.get('type')}_at_{layer.get('id')}")
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))
