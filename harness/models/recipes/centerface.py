"""CenterFace with its sizes set: image [N, 3, 480, 640] -> heatmap, scale, offset, landmarks at a quarter of that size.

The published file declares a batch of 10 pictures of 32x32 and lists its weights among its inputs, which keeps runtimes
from folding them. Nodes and weights are kept; sizes, tensor names and the list of inputs are made right.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import ModelError

VERSION = "1"
TOOLS = ("onnx", "numpy")

ROLES = {"input.1": "image", "537": "heatmap", "538": "scale", "539": "offset", "540": "landmarks"}
CHANNELS = {"heatmap": 1, "scale": 2, "offset": 2, "landmarks": 10}
STRIDE = 4  # of the outputs


def build(sources: Mapping[str, Path], parameters: Mapping[str, Any]) -> bytes:
    """Write the ONNX file from `sources["onnx"]` for pictures of `parameters["height"]` x `parameters["width"]`.

    Raises ModelError when the file is not the network that is expected.
    """
    import onnx
    from onnx import TensorProto, helper

    height, width = int(parameters["height"]), int(parameters["width"])
    model = onnx.load_model_from_string(sources["onnx"].read_bytes())
    graph = model.graph
    names = {value.name for value in (*graph.input, *graph.output)}
    if not names.issuperset(ROLES):
        raise ModelError("The file is not CenterFace: it lacks the tensors that CenterFace has.")
    for index, node in enumerate(graph.node):
        node.name = node.name or f"{node.op_type}_{index}"
        for tensors in (node.input, node.output):
            tensors[:] = [ROLES.get(name, name) for name in tensors]
    used = {name for node in graph.node for name in node.input}
    weights = [weight for weight in graph.initializer if weight.name in used]
    sizes = {"image": (3, height, width)}
    sizes |= {role: (channels, height // STRIDE, width // STRIDE) for role, channels in CHANNELS.items()}
    ports = {r: helper.make_tensor_value_info(r, TensorProto.FLOAT, ["batch", *shape]) for r, shape in sizes.items()}
    fixed = helper.make_graph(
        list(graph.node), "centerface", [ports["image"]], [ports[role] for role in CHANNELS], weights
    )
    written = helper.make_model(
        fixed, producer_name="weighbridge", opset_imports=model.opset_import, ir_version=max(model.ir_version, 4)
    )
    onnx.checker.check_model(written)
    return bytes(written.SerializeToString(deterministic=True))
