"""EfficientNet-Lite0 from its legacy torch checkpoint: image [N, 3, 224, 224] -> logits [N, 1000].

The network is that of Tan & Le with the changes of the Lite family: no squeeze-and-excitation, ReLU6, width and depth 1.0.
Batch normalisation (epsilon 1e-3) is folded into the convolutions; padding is TensorFlow's SAME.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import ModelError
from harness.models.recipes.graph import Array, GraphWriter, folded, same_padding
from harness.models.torch_legacy import read_state

VERSION = "1"
TOOLS = ("onnx", "numpy")

EPSILON = 1e-3
SIZE = 224
# repeats, kernel, stride of the first, expansion, input channels, output channels
BLOCKS = (
    (1, 3, 1, 1, 32, 16),
    (2, 3, 2, 6, 16, 24),
    (2, 5, 2, 6, 24, 40),
    (3, 3, 2, 6, 40, 80),
    (3, 5, 1, 6, 80, 112),
    (4, 5, 2, 6, 112, 192),
    (1, 3, 1, 6, 192, 320),
)


def build(sources: Mapping[str, Path], parameters: Mapping[str, Any]) -> bytes:
    """Write the ONNX file from `sources["weights"]`. Raises ModelError when a weight is missing."""
    return write(read_state(sources["weights"]))


def write(state: Mapping[str, Array]) -> bytes:
    """Write the ONNX file from weights by their names in the checkpoint."""
    net = _Network(state)
    x, size = net.convolution("_conv_stem", "_bn0", "image", SIZE, stride=2)
    x = net.relu6("_conv_stem.act", x)
    index = 0
    for repeats, kernel, first_stride, expansion, channels_in, channels_out in BLOCKS:
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            keep = stride == 1 and (repeat > 0 or channels_in == channels_out)
            x, size = net.block(f"_blocks.{index}", x, size, kernel, stride, expansion, keep)
            index += 1
    x, size = net.convolution("_conv_head", "_bn1", x, size)
    x = net.relu6("_conv_head.act", x)
    graph = net.graph
    x = graph.node("GlobalAveragePool", "pool", [x])
    x = graph.node("Flatten", "flatten", [x], axis=1)
    weight, bias = graph.weight("_fc.weight", net.get("_fc.weight")), graph.weight("_fc.bias", net.get("_fc.bias"))
    graph.node("Gemm", "_fc", [x, weight, bias], output="logits", transB=1)
    return graph.model(
        {"image": ("float32", ("batch", 3, SIZE, SIZE))}, {"logits": ("float32", ("batch", net.get("_fc.bias").size))}
    )


class _Network:
    def __init__(self, state: Mapping[str, Array]) -> None:
        self.graph = GraphWriter("efficientnet-lite0")
        self._state = state
        self._low = self.graph.weight("relu6.low", np.array(0, np.float32))
        self._high = self.graph.weight("relu6.high", np.array(6, np.float32))

    def get(self, name: str) -> Array:
        try:
            return self._state[name]
        except KeyError:
            raise ModelError(
                f"The checkpoint of EfficientNet-Lite0 has no weight {name!r}; it is another network."
            ) from None

    def convolution(
        self, name: str, norm: str, x: str, size: int, stride: int = 1, depthwise: bool = False
    ) -> tuple[str, int]:
        """Add a convolution with its folded normalisation. Returns its output and the picture's new size."""
        weight = self.get(f"{name}.weight")
        gamma, beta = self.get(f"{norm}.weight"), self.get(f"{norm}.bias")
        mean, variance = self.get(f"{norm}.running_mean"), self.get(f"{norm}.running_var")
        kernel, bias = folded(weight, gamma, beta, mean, variance, EPSILON)
        pads = same_padding(size, weight.shape[2], stride)
        groups = weight.shape[0] if depthwise else 1
        return self.graph.convolution(name, x, kernel, bias, stride, groups, pads), -(-size // stride)

    def relu6(self, name: str, x: str) -> str:
        return self.graph.node("Clip", name, [x, self._low, self._high])

    def block(
        self, name: str, x: str, size: int, kernel: int, stride: int, expansion: int, keep: bool
    ) -> tuple[str, int]:
        """Add an inverted bottleneck; `keep` adds its input to its output."""
        start = x
        if expansion != 1:
            x, size = self.convolution(f"{name}._expand_conv", f"{name}._bn0", x, size)
            x = self.relu6(f"{name}._expand_conv.act", x)
        found = self.get(f"{name}._depthwise_conv.weight").shape[2]
        if found != kernel:
            raise ModelError(f"{name} of the checkpoint has a kernel of {found}, not {kernel}; it is another network.")
        x, size = self.convolution(f"{name}._depthwise_conv", f"{name}._bn1", x, size, stride, depthwise=True)
        x = self.relu6(f"{name}._depthwise_conv.act", x)
        x, size = self.convolution(f"{name}._project_conv", f"{name}._bn2", x, size)
        return (self.graph.node("Add", f"{name}.add", [x, start]), size) if keep else (x, size)
