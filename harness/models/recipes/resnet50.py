"""ResNet-50 with seeded weights: image [N, 3, 224, 224] -> logits [N, 1000]. Its latency and memory are the network's own.

The network is v1.5, as MLPerf uses it: the stride is in the 3x3 convolution of a bottleneck (He et al. have it in the first
1x1). Batch normalisation is folded, as every runtime folds it. Nothing is learnt, so there is no accuracy to measure.

Weights are uniform, not normal: numpy's frozen RandomState gives uniform numbers by integer arithmetic and one exact
multiplication, so the bytes are the same on every platform, whatever its logarithm. Their scale follows He's rule (variance
2 / fan-in), and the last convolution of a branch is halved, so that activations stay between 1e-3 and 1e3: denormal numbers
would slow a CPU, and infinities would say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.models.recipes.graph import Array, GraphWriter

VERSION = "1"
TOOLS = ("onnx", "numpy")

SIZE = 224
CLASSES = 1000
STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))  # blocks, width, stride of the first
EXPANSION = 4
BRANCH_GAIN = 0.5  # of a branch's last convolution, so that sixteen additions do not grow the sum without bound


def build(sources: Mapping[str, Path], parameters: Mapping[str, Any]) -> bytes:
    """Write the ONNX file; `parameters["seed"]` chooses the weights."""
    net = _Network(int(parameters["seed"]))
    graph = net.graph
    x = net.convolution("stem", "image", 3, 64, kernel=7, stride=2)
    x = graph.node("Relu", "stem.relu", [x])
    x = graph.node("MaxPool", "stem.pool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, (blocks, width, first_stride) in enumerate(STAGES, start=1):
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            x = net.bottleneck(f"stage{stage}.{block}", x, channels, width, stride)
            channels = width * EXPANSION
    x = graph.node("GlobalAveragePool", "pool", [x])
    x = graph.node("Flatten", "flatten", [x], axis=1)
    weight = graph.weight("classifier.weight", net.uniform((CLASSES, channels), variance=1.0 / channels))
    bias = graph.weight("classifier.bias", np.zeros(CLASSES))
    graph.node("Gemm", "classifier", [x, weight, bias], output="logits", transB=1)
    return graph.model({"image": ("float32", ("batch", 3, SIZE, SIZE))}, {"logits": ("float32", ("batch", CLASSES))})


class _Network:
    def __init__(self, seed: int) -> None:
        self.graph = GraphWriter("resnet50-v1.5-seeded")
        self._random = np.random.RandomState(seed)

    def uniform(self, shape: tuple[int, ...], variance: float) -> Array:
        """Return numbers between -a and a with this variance (a * a / 3)."""
        numbers: Array = self._random.random_sample(shape)
        scaled: Array = (numbers * 2.0 - 1.0) * np.sqrt(3.0 * variance)
        return scaled

    def convolution(
        self, name: str, x: str, channels_in: int, channels_out: int, kernel: int, stride: int = 1, gain: float = 1.0
    ) -> str:
        """Add a convolution with 'half' padding, a zero bias and He's scale times `gain`."""
        shape = (channels_out, channels_in, kernel, kernel)
        weight = self.uniform(shape, 2.0 / (channels_in * kernel * kernel)) * gain
        return self.graph.convolution(name, x, weight, np.zeros(channels_out), stride, pads=[kernel // 2] * 4)

    def bottleneck(self, name: str, x: str, channels_in: int, width: int, stride: int) -> str:
        """Add 1x1, 3x3 (with the stride), 1x1, and the sum with the input, projected where its shape changes."""
        graph, channels_out = self.graph, width * EXPANSION
        y = graph.node("Relu", f"{name}.relu1", [self.convolution(f"{name}.conv1", x, channels_in, width, 1)])
        y = graph.node("Relu", f"{name}.relu2", [self.convolution(f"{name}.conv2", y, width, width, 3, stride)])
        y = self.convolution(f"{name}.conv3", y, width, channels_out, 1, gain=BRANCH_GAIN)
        if stride != 1 or channels_in != channels_out:
            x = self.convolution(f"{name}.project", x, channels_in, channels_out, 1, stride, gain=0.5**0.5)
        return graph.node("Relu", f"{name}.relu3", [graph.node("Add", f"{name}.add", [y, x])])
