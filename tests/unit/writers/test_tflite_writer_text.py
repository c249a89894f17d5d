"""What sentence encoders are made of: look-ups, matrix products, softmax, normalisation, shapes computed in the graph."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from onnx import helper

from harness.errors import ModelError
from harness.models import tflite_writer

Agrees = Callable[..., list[str]]


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def number(value: float) -> np.ndarray:
    return np.array(value, dtype=np.float32)


def whole(*value: int) -> np.ndarray:
    return np.array(value, dtype=np.int64)


def test_a_matmul_and_its_bias_are_one_operator(agrees: Agrees) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["b", "m"], ["y"])]
    assert agrees(nodes, {"x": values(2, 5, 4)}, {"w": values(4, 6), "b": values(6)}) == ["FULLY_CONNECTED"]


def test_a_relu_after_a_matrix_is_inside_it(agrees: Agrees) -> None:
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
    assert agrees(nodes, {"x": values(3, 4)}, {"w": values(4, 6), "b": values(6)}) == ["FULLY_CONNECTED"]


@pytest.mark.parametrize("permutation", [[0, 2, 3, 1], [0, 1, 3, 2]])
def test_keys_are_read_transposed(agrees: Agrees, permutation: list[int]) -> None:
    shape = (2, 7, 3, 4) if permutation == [0, 2, 3, 1] else (2, 3, 7, 4)
    nodes = [
        helper.make_node("Transpose", ["k"], ["t"], perm=permutation),
        helper.make_node("MatMul", ["q", "t"], ["y"]),
    ]
    operators = agrees(nodes, {"q": values(2, 3, 7, 4), "k": values(*shape, seed=1)})
    assert operators == (["TRANSPOSE", "BATCH_MATMUL"] if permutation == [0, 2, 3, 1] else ["BATCH_MATMUL"])


def test_gemm_of_computed_matrices(agrees: Agrees) -> None:
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], transA=1, transB=1)
    agrees(node, {"a": values(4, 3), "b": values(5, 4, seed=1)}, {"c": values(5, seed=2)})


_GELU_ORDERS = {
    "product first": [("Mul", "x", "p", "m"), ("Mul", "m", "half", "y")],
    "half first": [("Mul", "p", "half", "m"), ("Mul", "x", "m", "y")],
    "half of x": [("Mul", "x", "half", "m"), ("Mul", "m", "p", "y")],
}


@pytest.mark.parametrize("order", _GELU_ORDERS)
@pytest.mark.parametrize("scaling", ["Div", "Mul"])
def test_gelu_is_found_in_its_pieces(agrees: Agrees, order: str, scaling: str) -> None:
    pieces = [(scaling, "x", "root", "s"), ("Erf", "s", None, "e"), ("Add", "e", "one", "p"), *_GELU_ORDERS[order]]
    nodes = [helper.make_node(op, [name for name in (a, b) if name], [out]) for op, a, b, out in pieces]
    root = math.sqrt(2) if scaling == "Div" else math.sqrt(0.5)
    constants = {"root": number(root), "one": number(1), "half": number(0.5)}
    assert agrees(nodes, {"x": 3 * values(2, 8)}, constants) == ["GELU"]


def test_an_erf_that_is_no_gelu_is_refused_with_its_name(net: Callable[..., bytes]) -> None:
    with pytest.raises(ModelError, match=r"operator Erf of node 'lonely'.*torch environment"):
        tflite_writer.convert(net([helper.make_node("Erf", ["x"], ["y"], name="lonely")], {"x": values(2, 3)}))


LAYER_NORM = [
    "MEAN", "SUB", "SQUARE", "MEAN", "ADD", "RSQRT", "MUL", "MUL", "ADD",
]  # fmt: skip


def test_layer_normalisation_whole_and_in_pieces(agrees: Agrees) -> None:
    constants = {"g": values(8, seed=1), "b": values(8, seed=2), "two": number(2), "eps": number(1e-5)}
    whole_one = helper.make_node("LayerNormalization", ["x", "g", "b"], ["y"], axis=-1, epsilon=1e-5)
    inputs = {"x": values(2, 5, 8)}
    assert agrees(whole_one, inputs, {name: constants[name] for name in "gb"}) == LAYER_NORM
    pieces = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[-1]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Pow", ["d", "two"], ["s"]),
        helper.make_node("ReduceMean", ["s"], ["v"], axes=[-1]),
        helper.make_node("Add", ["v", "eps"], ["e"]),
        helper.make_node("Sqrt", ["e"], ["r"]),
        helper.make_node("Div", ["d", "r"], ["n"]),
        helper.make_node("Mul", ["n", "g"], ["k"]),
        helper.make_node("Add", ["k", "b"], ["y"]),
    ]
    assert agrees(pieces, inputs, constants) == LAYER_NORM


def test_a_layer_normalisation_whose_mean_is_also_read_stays_in_pieces(agrees: Agrees) -> None:
    constants = {"g": values(8, seed=1), "b": values(8, seed=2), "two": number(2), "eps": number(1e-5)}
    pieces = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[-1]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Pow", ["d", "two"], ["s"]),
        helper.make_node("ReduceMean", ["s"], ["v"], axes=[-1]),
        helper.make_node("Add", ["v", "eps"], ["e"]),
        helper.make_node("Sqrt", ["e"], ["r"]),
        helper.make_node("Div", ["d", "r"], ["n"]),
        helper.make_node("Mul", ["n", "g"], ["k"]),
        helper.make_node("Add", ["k", "b"], ["y"]),
    ]
    agrees(pieces, {"x": values(2, 5, 8)}, constants, outputs=("y", "m"))


def test_look_ups_take_64_bit_ids_as_32_bit(agrees: Agrees, net: Callable[..., bytes]) -> None:
    node = helper.make_node("Gather", ["table", "ids"], ["y"])
    inputs, constants = {"ids": whole(3, 0, 7, 7).reshape(2, 2)}, {"table": values(8, 5)}
    assert agrees(node, inputs, constants) == ["GATHER"]
    converted = tflite_writer.convert(net([node], inputs, constants))
    assert converted.inputs[0].dtype == "int32"


@pytest.mark.parametrize("index", [0, -1])
def test_one_constant_row_is_a_slice(agrees: Agrees, index: int) -> None:
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=1)
    assert agrees(node, {"x": values(2, 5, 3)}, {"i": np.array(index)}) == ["SLICE", "RESHAPE"]


@pytest.mark.parametrize("axis", [-1, 1])
def test_softmax_agrees_on_any_axis(agrees: Agrees, axis: int) -> None:
    agrees(helper.make_node("Softmax", ["x"], ["y"], axis=axis), {"x": 4 * values(2, 3, 5)})


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare"])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[1], [2], [1, 2], [-1, 0]])
def test_reductions_agree(agrees: Agrees, op: str, keepdims: int, axes: list[int]) -> None:
    agrees(helper.make_node(op, ["x"], ["y"], axes=axes, keepdims=keepdims), {"x": values(2, 3, 5)})


@pytest.mark.parametrize("axes", [[1], [2, 3], [3]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions_of_feature_maps_agree(agrees: Agrees, axes: list[int], keepdims: int) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("ReduceMean", ["c"], ["y"], axes=axes, keepdims=keepdims),
    ]
    agrees(nodes, {"x": values(1, 3, 4, 5)}, {"w": values(6, 3, 1, 1)})


def test_shapes_computed_in_the_graph_become_constants(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Unsqueeze", ["n", "axis"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["r"]),
        helper.make_node("Transpose", ["r"], ["y"], perm=[0, 2, 1, 3]),
    ]
    constants = {"zero": np.array(0), "axis": whole(0), "rest": whole(-1, 3, 4)}
    assert agrees(nodes, {"x": values(2, 5, 12)}, constants) == ["RESHAPE", "TRANSPOSE"]


def test_an_attention_mask_by_where_and_expand(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Unsqueeze", ["mask", "axes"], ["m4"]),
        helper.make_node("Expand", ["m4", "shape"], ["wide"]),
        helper.make_node("Cast", ["wide"], ["kept"], to=9),
        helper.make_node("Where", ["kept", "x", "low"], ["w"]),
        helper.make_node("Softmax", ["w"], ["y"], axis=-1),
    ]
    constants = {"axes": whole(1, 2), "shape": whole(2, 3, 4, 4), "low": number(-10000)}
    inputs = {"mask": np.array([[1, 1, 1, 0], [1, 0, 0, 0]]), "x": values(2, 3, 4, 4)}
    agrees(nodes, inputs, constants)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [([1], [3], [1], [1]), ([-2, 0], [2**63 - 1, 2], [1, 2], [1, 1]), ([0, 1], [5, 6], [1, 2], [2, 3])],
)
def test_slices_agree(agrees: Agrees, starts, ends, axes, steps) -> None:
    node = helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])
    constants = {"s": whole(*starts), "e": whole(*ends), "a": whole(*axes), "t": whole(*steps)}
    agrees(node, {"x": values(2, 5, 6)}, constants)


def test_splits_and_concatenations_agree(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Split", ["x", "parts"], ["a", "b"], axis=2),
        helper.make_node("Concat", ["b", "a", "b"], ["y"], axis=2),
    ]
    agrees(nodes, {"x": values(2, 3, 7)}, {"parts": whole(3, 4)})


def test_mean_pooling_with_a_mask_and_a_unit_length(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Unsqueeze", ["mask", "last"], ["m3"]),
        helper.make_node("Cast", ["m3"], ["mf"], to=1),
        helper.make_node("Mul", ["x", "mf"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "axis"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["mf", "axis"], ["count"], keepdims=0),
        helper.make_node("Clip", ["count", "tiny"], ["safe"]),
        helper.make_node("Div", ["sum", "safe"], ["mean"]),
        helper.make_node("ReduceL2", ["mean"], ["norm"], axes=[1], keepdims=1),
        helper.make_node("Div", ["mean", "norm"], ["y"]),
    ]
    constants = {"last": whole(-1), "axis": whole(1), "tiny": number(1e-9)}
    agrees(nodes, {"x": values(2, 4, 6), "mask": np.array([[1, 1, 1, 0], [1, 1, 0, 0]])}, constants)
