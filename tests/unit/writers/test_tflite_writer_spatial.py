"""Convolutions, pools and resizing: any padding that ONNX can ask for comes out as the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from harness.errors import ModelError
from harness.models import tflite_writer

Agrees = Callable[..., list[str]]
few = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


@few
@given(
    size=st.tuples(st.integers(5, 12), st.integers(5, 12)),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.integers(1, 2),
    pads=st.tuples(*[st.integers(0, 3)] * 4),
    kind=st.sampled_from(["dense", "depthwise", "grouped"]),
    bias=st.booleans(),
)
def test_convolutions_agree(agrees: Agrees, size, kernel, stride, dilation, pads, kind, bias) -> None:
    channels, out, group = {"dense": (3, 5, 1), "depthwise": (4, 8, 4), "grouped": (4, 6, 2)}[kind]
    assume(all(size[a] + pads[a] + pads[a + 2] >= (kernel[a] - 1) * dilation + 1 for a in range(2)))
    node = helper.make_node(
        "Conv",
        ["x", "w", "b"] if bias else ["x", "w"],
        ["y"],
        strides=stride,
        pads=pads,
        dilations=[dilation] * 2,
        group=group,
    )
    constants = {"w": values(out, channels // group, *kernel, seed=1)}
    if bias:
        constants["b"] = values(out, seed=2)
    agrees(node, {"x": values(1, channels, *size)}, constants)


@few
@given(
    size=st.tuples(st.integers(4, 11), st.integers(4, 11)),
    kernel=st.tuples(st.integers(2, 4), st.integers(2, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pads=st.tuples(*[st.integers(0, 1)] * 4),
    op=st.sampled_from(["MaxPool", "AveragePool"]),
    include=st.booleans(),
    ceil=st.booleans(),
)
def test_pools_agree(agrees: Agrees, size, kernel, stride, pads, op, include, ceil) -> None:
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": stride, "pads": pads}
    if op == "AveragePool":
        attributes["count_include_pad"] = int(include)
        ceil = ceil and not include
    # onnxruntime gives no window that starts in the padding behind; neither do we build one here
    for axis in range(2):
        span = size[axis] + pads[axis] + pads[axis + 2] - kernel[axis]
        assume(not ceil or -(-span // stride[axis]) * stride[axis] < size[axis] + pads[axis])
    agrees(helper.make_node(op, ["x"], ["y"], ceil_mode=int(ceil), **attributes), {"x": values(1, 3, *size)})


@few
@given(
    size=st.tuples(st.integers(2, 6), st.integers(2, 6)),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pads=st.tuples(*[st.integers(0, 1)] * 4),
)
def test_transposed_convolutions_agree(agrees: Agrees, size, kernel, stride, pads) -> None:
    assume(all((size[a] - 1) * stride[a] + kernel[a] - pads[a] - pads[a + 2] > 0 for a in range(2)))
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=stride, pads=pads)
    constants = {"w": values(3, 5, *kernel, seed=1), "b": values(5, seed=2)}
    agrees(node, {"x": values(1, 3, *size)}, constants)


def test_centerface_upsampling_needs_no_crop(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["t"], strides=[2, 2], kernel_shape=[2, 2]),
        helper.make_node("BatchNormalization", ["t", "g", "b", "m", "v"], ["n"], epsilon=1e-3),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Add", ["r", "r"], ["s"]),
        helper.make_node("Sigmoid", ["s"], ["y"]),
    ]
    constants = {"w": values(3, 4, 2, 2, seed=1), "v": np.abs(values(4, seed=5)) + 0.5}
    constants |= {name: values(4, seed=seed) for seed, name in enumerate("gbm", start=2)}
    operators = agrees(nodes, {"x": values(1, 3, 5, 6)}, constants)
    assert operators == ["TRANSPOSE_CONV", "ADD", "LOGISTIC"]  # normalisation and ReLU are inside the convolution


@pytest.mark.parametrize(("pads", "expected"), [([0, 0, 1, 1], ["CONV_2D"]), ([1, 1, 1, 1], ["PAD", "CONV_2D"])])
def test_padding_at_stride_two_is_same_only_where_the_odd_cell_is_behind(agrees: Agrees, pads, expected) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[2, 2], pads=pads)
    assert agrees(node, {"x": values(1, 3, 8, 8)}, {"w": values(4, 3, 3, 3)}) == expected


def test_cells_outside_never_win_a_max_pool(agrees: Agrees) -> None:
    negative = -1 - np.abs(values(1, 2, 6, 6))
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    assert agrees(node, {"x": negative}) == ["PADV2", "MAX_POOL_2D"]
    after_relu = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("MaxPool", ["r"], ["y"], **_same_pool())]
    assert agrees(after_relu, {"x": negative}) == ["RELU", "PAD", "MAX_POOL_2D"]


def _same_pool() -> dict[str, list[int]]:
    return {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("size", [7, 8])
def test_automatic_padding_agrees(agrees: Agrees, auto_pad: str, size: int) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[2, 2], auto_pad=auto_pad)
    agrees(node, {"x": values(1, 2, size, size)}, {"w": values(3, 2, 3, 3)})


@pytest.mark.parametrize(
    ("mode", "placing"),
    [
        ("nearest", "asymmetric"),
        ("nearest", "half_pixel"),
        ("linear", "half_pixel"),
        ("linear", "align_corners"),
        ("linear", "asymmetric"),
        ("linear", "pytorch_half_pixel"),
    ],
)
def test_resizing_agrees(agrees: Agrees, mode: str, placing: str) -> None:
    rounding = "floor" if placing == "asymmetric" else "round_prefer_floor"
    node = helper.make_node(
        "Resize",
        ["x", "", "s"],
        ["y"],
        mode=mode,
        coordinate_transformation_mode=placing,
        nearest_mode=rounding,
    )
    scales = np.array([1, 1, 2, 3], dtype=np.float32)
    agrees(node, {"x": values(1, 3, 4, 5)}, {"s": scales})


def test_a_resize_that_tflite_places_differently_is_refused(net: Callable[..., bytes]) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], name="up", mode="cubic")
    data = net([node], {"x": values(1, 3, 4, 4)}, {"s": np.array([1, 1, 2, 2], dtype=np.float32)})
    with pytest.raises(ModelError, match="operator Resize of node 'up'"):
        tflite_writer.convert(data)


@pytest.mark.parametrize("op", ["DepthToSpace", "SpaceToDepth"])
def test_space_and_depth_trade_places(agrees: Agrees, op: str) -> None:
    agrees(helper.make_node(op, ["x"], ["y"], blocksize=2), {"x": values(1, 8, 4, 6)})


def test_a_pad_before_a_convolution_becomes_its_own(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Pad", ["x", "p"], ["padded"]),
        helper.make_node("Conv", ["padded", "w"], ["c"]),
        helper.make_node("Clip", ["c", "low", "high"], ["y"]),
    ]
    constants = {
        "p": np.array([0, 0, 1, 1, 0, 0, 1, 1], dtype=np.int64),
        "w": values(4, 3, 3, 3),
        "low": np.array(0, dtype=np.float32),
        "high": np.array(6, dtype=np.float32),
    }
    assert agrees(nodes, {"x": 5 * values(1, 3, 6, 6)}, constants) == ["CONV_2D"]


def test_a_classifier_head_is_pool_and_matrix(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "m", "b"], ["y"], alpha=0.5, beta=2.0, transB=1),
    ]
    constants = {"w": values(4, 3, 1, 1), "m": values(6, 4, seed=1), "b": values(6, seed=2)}
    assert agrees(nodes, {"x": values(1, 3, 5, 5)}, constants) == ["CONV_2D", "MEAN", "FULLY_CONNECTED"]


def test_flattening_a_feature_map_keeps_the_order_of_onnx(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Flatten", ["c"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    agrees(nodes, {"x": values(1, 3, 4, 5)}, {"w": values(2, 3, 1, 1), "m": values(40, 7, seed=1)})


def test_pictures_are_nhwc_and_say_so(net: Callable[..., bytes]) -> None:
    data = net([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": values(1, 3, 4, 5)}, {"w": values(2, 3, 1, 1)})
    converted = tflite_writer.convert(data)
    assert (converted.inputs[0].layout, converted.inputs[0].shape) == ("nhwc", (1, 3, 4, 5))
    assert (converted.outputs[0].layout, converted.outputs[0].shape) == ("nhwc", (1, 2, 4, 5))


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "MaxPool", "AveragePool"])
def test_sounds_of_one_dimension_agree(agrees: Agrees, op: str) -> None:
    weighted = op.startswith("Conv")
    attributes: dict[str, Any] = {"strides": [2], "pads": [1, 0]} | ({} if weighted else {"kernel_shape": [3]})
    node = helper.make_node(op, ["x", "w"] if weighted else ["x"], ["y"], **attributes)
    constants = {"w": values(*((4, 3, 3) if op == "Conv" else (3, 4, 3)), seed=1)} if weighted else {}
    agrees(node, {"x": values(2, 3, 11)}, constants)
