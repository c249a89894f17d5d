"""Element-wise operators in both layouts, and what the file as a whole promises: determinism, shapes, refusals."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from harness.errors import ModelError
from harness.models import tflite_writer

Agrees = Callable[..., list[str]]


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def number(value: float) -> np.ndarray:
    return np.array(value, dtype=np.float32)


@pytest.mark.parametrize(
    "op",
    [
        "Relu",
        "Sigmoid",
        "Tanh",
        "Exp",
        "Neg",
        "Abs",
        "Floor",
        "Ceil",
        "Round",
        "Sin",
        "Cos",
        "HardSwish",
        "Sign",
        "LeakyRelu",
        "Elu",
        "HardSigmoid",
    ],
)
def test_functions_of_one_operand_agree(agrees: Agrees, op: str) -> None:
    agrees(helper.make_node(op, ["x"], ["y"]), {"x": 4 * values(3, 7)})


@pytest.mark.parametrize("op", ["Sqrt", "Log", "Reciprocal"])
def test_functions_of_positive_operands_agree(agrees: Agrees, op: str) -> None:
    agrees(helper.make_node(op, ["x"], ["y"]), {"x": np.abs(values(3, 7)) + 0.1})


@pytest.mark.parametrize(("exponent", "expected"), [(2, "SQUARE"), (0.5, "SQRT"), (-0.5, "RSQRT"), (3, "POW")])
def test_powers_agree(agrees: Agrees, exponent: float, expected: str) -> None:
    node = helper.make_node("Pow", ["x", "p"], ["y"])
    assert agrees(node, {"x": np.abs(values(3, 7)) + 0.1}, {"p": number(exponent)}) == [expected]


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    op=st.sampled_from(["Add", "Sub", "Mul", "Div", "Max", "Min"]),
    other=st.sampled_from([(1, 4, 5, 6), (4, 1, 1), (6,), (1, 1, 5, 1), (), (5, 6)]),
    constant=st.booleans(),
    swapped=st.booleans(),
)
def test_operands_of_feature_maps_broadcast_as_in_onnx(agrees: Agrees, op, other, constant, swapped) -> None:
    second = np.asarray(values(*other, seed=3) + 3)
    operands = ["o", "c"] if swapped else ["c", "o"]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node(op, operands, ["y"])]
    inputs, constants = {"x": values(1, 3, 5, 6)}, {"w": np.abs(values(4, 3, 1, 1)) + 1}
    (constants if constant else inputs)["o"] = second
    if op == "Div" and swapped:
        inputs["x"] = np.abs(inputs["x"]) + 1
    agrees(nodes, inputs, constants)


@pytest.mark.parametrize(("low", "high", "expected"), [(0, 6, "RELU6"), (0, None, "RELU"), (-1, 1, "RELU_N1_TO_1")])
def test_clips_with_a_name_use_it(agrees: Agrees, low: float, high: float | None, expected: str) -> None:
    names, constants = ["x", "low"], {"low": number(low)}
    if high is not None:
        names, constants = [*names, "high"], {**constants, "high": number(high)}
    assert agrees(helper.make_node("Clip", names, ["y"]), {"x": 8 * values(3, 9)}, constants) == [expected]


def test_other_clips_agree(agrees: Agrees) -> None:
    constants = {"low": number(-0.25), "high": number(0.5)}
    node = helper.make_node("Clip", ["x", "low", "high"], ["y"])
    assert agrees(node, {"x": values(3, 9)}, constants) == ["MAXIMUM", "MINIMUM"]


def test_the_clip_of_old_opsets_agrees(agrees: Agrees) -> None:
    assert agrees(helper.make_node("Clip", ["x"], ["y"], min=0.0, max=6.0), {"x": 8 * values(3, 9)}, opset=9) == [
        "RELU6"
    ]


def test_an_activation_is_fused_only_where_nobody_else_reads_the_sum(agrees: Agrees) -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    inputs = {"a": values(2, 5), "b": values(2, 5, seed=1)}
    assert agrees(nodes, inputs) == ["ADD"]
    assert agrees(nodes, inputs, outputs=("y", "s")) == ["ADD", "RELU"]


def test_transposes_by_the_exporter_meet_ours(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["n"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["n", "w"], ["c"]),
        helper.make_node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["t", "s"], ["y"]),
    ]
    constants = {"w": values(4, 3, 1, 1), "s": np.array([1, -1, 4])}
    assert agrees(nodes, {"x": values(1, 5, 6, 3)}, constants) == ["CONV_2D", "RESHAPE"]


def test_normalisation_without_a_convolution_is_one_factor_and_one_summand(agrees: Agrees) -> None:
    node = helper.make_node("BatchNormalization", ["x", "g", "b", "m", "v"], ["y"])
    constants = {name: values(3, seed=seed) for seed, name in enumerate("gbm")} | {"v": np.abs(values(3)) + 0.5}
    assert agrees(node, {"x": values(2, 3, 4, 5)}, constants) == ["MUL", "ADD"]


def test_a_graph_that_only_passes_its_input_on(agrees: Agrees) -> None:
    agrees(helper.make_node("Identity", ["x"], ["y"]), {"x": values(2, 3)})


def _small(net: Callable[..., bytes]) -> bytes:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    return net(nodes, {"x": values(1, 3, 4, 4)}, {"w": values(2, 3, 3, 3)})


def test_the_same_network_gives_the_same_bytes(net: Callable[..., bytes]) -> None:
    assert tflite_writer.convert(_small(net)).data == tflite_writer.convert(_small(net)).data


def test_buffers_are_aligned_as_the_schema_asks(net: Callable[..., bytes]) -> None:
    from ai_edge_litert import schema_py_generated as schema

    data = tflite_writer.convert(_small(net)).data
    model = schema.Model.GetRootAs(data, 0)
    starts = [model.Buffers(i)._tab.Vector(4) for i in range(model.BuffersLength()) if model.Buffers(i).DataLength()]
    assert starts and all(start % 16 == 0 for start in starts)


def test_open_and_pinned_sizes_are_fixed(net: Callable[..., bytes]) -> None:
    model = onnx.load_model_from_string(_small(net))
    dims = model.graph.input[0].type.tensor_type.shape.dim
    for dim, name in zip(dims, ("n", None, "h", "w"), strict=True):
        if name:
            dim.dim_param = name
    model.graph.output[0].type.tensor_type.ClearField("shape")
    data = model.SerializeToString()
    converted = tflite_writer.convert(data, batch=2, input_shapes={"x": (0, 3, 8, 9)})
    assert converted.inputs[0].shape == (2, 3, 8, 9)
    assert converted.outputs[0].shape == (2, 2, 6, 7)
    with pytest.raises(ModelError, match="'x' of the ONNX model has an open size in dimension 2"):
        tflite_writer.convert(data, batch=2)
    with pytest.raises(ModelError, match="input 'other', which the model has not"):
        tflite_writer.convert(data, batch=2, input_shapes={"other": (1,)})
    with pytest.raises(ModelError, match="4 dimensions, the shape that is given for it 2"):
        tflite_writer.convert(data, batch=2, input_shapes={"x": (1, 2)})


def test_what_cannot_be_written_names_operator_node_and_way_out(net: Callable[..., bytes]) -> None:
    data = net(
        [helper.make_node("CumSum", ["x", "a"], ["y"], name="running sum")], {"x": values(2, 3)}, {"a": np.array(0)}
    )
    with pytest.raises(ModelError, match=r"operator CumSum of node 'running sum'.*\[runtimes\] convert"):
        tflite_writer.convert(data)


def test_operators_of_other_domains_are_refused() -> None:
    node = helper.make_node("Magic", ["x"], ["y"], name="m", domain="com.example")
    info = [helper.make_tensor_value_info(name, 1, [2, 2]) for name in "xy"]
    graph = helper.make_graph([node], "net", info[:1], info[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    data = helper.make_model(graph, opset_imports=opsets).SerializeToString()
    with pytest.raises(ModelError, match=r"operator Magic of node 'm'.*com.example"):
        tflite_writer.convert(data)


@pytest.mark.parametrize("data", [b"", b"not a model at all", b"\x08\x07\x12"])
def test_bytes_that_are_no_model_are_one_sentence(data: bytes) -> None:
    with pytest.raises(ModelError, match="not an ONNX model"):
        tflite_writer.convert(data)


def test_a_small_file_cannot_make_a_huge_constant(net: Callable[..., bytes]) -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["huge"], name="bomb"),
        helper.make_node("ReduceSum", ["huge"], ["n"], keepdims=0),
        helper.make_node("Add", ["x", "n"], ["y"]),
    ]
    data = net(nodes, {"x": values(2)}, {"s": np.array([2**20, 2**20])})
    with pytest.raises(ModelError, match="'bomb': it computes a constant of more than 512 MB"):
        tflite_writer.convert(data)


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_files_convert_or_are_refused(net: Callable[..., bytes], data: st.DataObject) -> None:
    damaged = bytearray(_small(net))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ModelError):
        tflite_writer.convert(bytes(damaged))


def test_an_attribute_that_a_node_must_have_is_missed_in_one_sentence(net: Callable[..., bytes]) -> None:
    model = onnx.load_model_from_string(
        net([helper.make_node("Concat", ["x", "x"], ["y"], axis=0)], {"x": values(2, 3)})
    )
    model.graph.node[0].attribute[0].name = "axes"
    with pytest.raises(ModelError, match="Concat"):
        tflite_writer.convert(model.SerializeToString())


def test_weights_outside_the_file_are_not_followed(net: Callable[..., bytes]) -> None:
    model = onnx.load_model_from_string(_small(net))
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="/etc/passwd")
    with pytest.raises(ModelError, match="keeps its weight 'w' in another file"):
        tflite_writer.convert(model.SerializeToString())


def test_half_precision_files_are_refused_before_a_runtime_fails_on_them(net: Callable[..., bytes]) -> None:
    data = net([helper.make_node("Relu", ["x"], ["y"], name="act")], {"x": values(2, 3).astype(np.float16)})
    with pytest.raises(ModelError, match=r"operator Relu of node 'act': 'x' is float16\. Give the float32 file"):
        tflite_writer.convert(data)


def test_integers_are_clipped_as_integers(agrees: Agrees) -> None:
    node = helper.make_node("Clip", ["x", "low"], ["y"])
    agrees(node, {"x": np.array([-3, 0, 5], dtype=np.int32)}, {"low": np.array(0, dtype=np.int32)})


def test_a_loop_on_constants_is_refused_and_not_run() -> None:
    """2^60 rounds would never end."""
    end = [helper.make_tensor_value_info(name, 1, [2]) for name in ("x", "y", "one", "more")]
    inner = [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("c", 9, []), end[2]]
    steps = [helper.make_node("Identity", ["c"], ["go"]), helper.make_node("Neg", ["one"], ["more"])]
    body = helper.make_graph(steps, "body", inner, [helper.make_tensor_value_info("go", 9, []), end[3]])
    nodes = [
        helper.make_node("Loop", ["rounds", "yes", "start"], ["last"], name="endless", body=body),
        helper.make_node("Add", ["x", "last"], ["y"]),
    ]
    constants = {"rounds": np.array(2**60), "yes": np.array(True), "start": values(2)}
    weights = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "net", end[:1], end[1:2], weights)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    with pytest.raises(ModelError, match="operator Loop of node 'endless'"):
        tflite_writer.convert(data)


def test_indices_of_a_constant_mask_are_computed(agrees: Agrees) -> None:
    nodes = [helper.make_node("NonZero", ["m"], ["i"]), helper.make_node("Gather", ["x", "i"], ["y"], axis=1)]
    agrees(nodes, {"x": values(2, 4)}, {"m": np.array([1, 0, 0, 1])})


def test_an_input_without_a_shape_is_asked_for(net: Callable[..., bytes]) -> None:
    model = onnx.load_model_from_string(net([helper.make_node("Relu", ["x"], ["y"])], {"x": values(2, 3)}))
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ModelError, match="Input 'x' of the ONNX model has no shape"):
        tflite_writer.convert(model.SerializeToString())


def test_rarer_operators_agree(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["g"]),
        helper.make_node("Less", ["x", "two"], ["l"]),
        helper.make_node("And", ["g", "l"], ["gl"]),
        helper.make_node("Not", ["gl"], ["n"]),
        helper.make_node("Where", ["n", "x", "low"], ["w"]),
        helper.make_node("PRelu", ["w", "slope"], ["p"]),
        helper.make_node("Tile", ["p", "twice"], ["t"]),
        helper.make_node("LogSoftmax", ["t"], ["y"], axis=-1),
        helper.make_node("ArgMax", ["x"], ["best"], axis=1, keepdims=0),
        helper.make_node("ArgMin", ["x"], ["worst"], axis=-1, keepdims=1),
    ]
    constants = {
        "zero": number(0),
        "two": number(2),
        "low": number(-3),
        "slope": values(3, 1, seed=4),
        "twice": np.array([1, 2, 1]),
    }
    agrees(nodes, {"x": 3 * values(2, 3, 5)}, constants, outputs=("y", "best", "worst"))


def test_constants_computed_in_the_graph_cost_nothing(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Range", ["zero", "five", "one"], ["r"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Add", ["r", "zeros"], ["s"]),
        helper.make_node("Mul", ["x", "s"], ["y"]),
    ]
    constants = {"zero": number(0), "five": number(5), "one": number(1), "shape": np.array([2, 1])}
    assert agrees(nodes, {"x": values(2, 5)}, constants) == ["MUL"]
