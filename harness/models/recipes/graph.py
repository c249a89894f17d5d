"""A small writer of ONNX graphs: nodes in order, weights by name, and the same bytes every time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

OPSET = 17  # the newest that has what the recipes need and that runtimes of 2022 and later read
IR_VERSION = 8  # the one of opset 17
Array = npt.NDArray[Any]
Ports = Mapping[str, tuple[str, Sequence[Any]]]  # tensor -> numpy type, shape


class GraphWriter:
    """Collects one graph. Every method that adds a node returns the name of its output."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[Any] = []
        self._weights: dict[str, Any] = {}

    def weight(self, name: str, value: Array) -> str:
        """Add a weight; float64 becomes float32."""
        from onnx import numpy_helper

        if value.dtype == np.float64:
            value = value.astype(np.float32)
        if name not in self._weights:
            self._weights[name] = numpy_helper.from_array(value.copy(order="C"), name)
        return name

    def node(self, kind: str, name: str, inputs: Sequence[str], output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output."""
        from onnx import helper

        output = output or f"{name}.out"
        self._nodes.append(helper.make_node(kind, list(inputs), [output], name=name, **attributes))
        return output

    def convolution(
        self,
        name: str,
        x: str,
        weight: Array,
        bias: Array,
        stride: int = 1,
        groups: int = 1,
        pads: Sequence[int] = (0,) * 4,
    ) -> str:
        """Add a 2-D convolution; `weight` is [out, in / groups, k, k], `pads` top, left, bottom, right."""
        kernel = weight.shape[2:]
        inputs = (x, self.weight(f"{name}.weight", weight), self.weight(f"{name}.bias", bias))
        return self.node(
            "Conv", name, inputs, kernel_shape=list(kernel), strides=[stride] * 2, group=groups, pads=list(pads)
        )

    def model(self, inputs: Ports, outputs: Ports) -> bytes:
        """Return the file. A text in a port's shape is a free size."""
        import onnx
        from onnx import helper

        def ports(table: Ports) -> list[Any]:
            return [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape))
                for name, (dtype, shape) in table.items()
            ]

        graph = helper.make_graph(self._nodes, self._name, ports(inputs), ports(outputs), list(self._weights.values()))
        model = helper.make_model(
            graph, producer_name="weighbridge", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int, int, int]:
    """Return TensorFlow's SAME padding of a square picture as ONNX pads; at stride 2 the odd one is at bottom and right."""
    output = -(-size // stride)
    total = max((output - 1) * stride + kernel - size, 0)
    before = total // 2
    return (before, before, total - before, total - before)


def folded(
    weight: Array, gamma: Array, beta: Array, mean: Array, variance: Array, epsilon: float
) -> tuple[Array, Array]:
    """Return weight and bias of a convolution with its batch normalisation folded in, computed in float64."""
    scale = gamma.astype(np.float64) / np.sqrt(variance.astype(np.float64) + epsilon)
    bias = beta.astype(np.float64) - mean.astype(np.float64) * scale
    return weight.astype(np.float64) * scale[:, None, None, None], bias
