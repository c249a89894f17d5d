"""LSTMs written out step by step, in both formats, against onnxruntime's own operator; and the reshapes between."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from onnx import helper

from harness.errors import ModelError
from harness.models import coreml_writer, tflite_writer

Agrees = Callable[..., list[str]]
OUTPUTS = ["y", "y_h", "y_c"]


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def whole(*value: int) -> np.ndarray:
    return np.array(value, dtype=np.int64)


def settings_for(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


def lstm(
    sequence: int = 3,
    batch: int = 2,
    features: int = 5,
    hidden: int = 4,
    states: str = "given",
    bias: bool = True,
    **attributes: Any,
) -> tuple[Any, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The node, its inputs and its constants; gates of about -3 to 3, so that a swapped one would show."""
    inputs = {"x": 2 * values(sequence, batch, features)}
    constants = {"w": 2 * values(1, 4 * hidden, features, seed=1), "r": 2 * values(1, 4 * hidden, hidden, seed=2)}
    known = {"h": values(1, batch, hidden, seed=4), "c": 2 * values(1, batch, hidden, seed=5)}
    names = ["x", "w", "r", "b" if bias else "", ""]
    if bias:
        constants["b"] = values(1, 8 * hidden, seed=3)
    if states != "absent":
        names += ["h", "c"]
    if states == "given":
        inputs |= known
    elif states != "absent":
        constants |= known if states == "constant" else {name: np.zeros_like(value) for name, value in known.items()}
    return helper.make_node("LSTM", names, OUTPUTS, name="cell", hidden_size=hidden, **attributes), inputs, constants


sizes = {
    "sequence": st.integers(1, 4),
    "batch": st.integers(1, 3),
    "features": st.integers(1, 6),
    "hidden": st.integers(1, 5),
    "states": st.sampled_from(["given", "constant", "zero", "absent"]),
    "bias": st.booleans(),
    "direction": st.sampled_from(["forward", "reverse"]),
    "outputs": st.sampled_from([OUTPUTS, ["y"], ["y_h"], ["y_c", "y"]]),
}


@settings_for(30)
@given(**sizes)
def test_an_lstm_is_the_same_in_tflite(agrees: Agrees, outputs: list[str], **parameters: Any) -> None:
    node, inputs, constants = lstm(**parameters)
    operators = agrees(node, inputs, constants, outputs=outputs)
    # one product for all inputs, one per step for the state, which the first step has only where it is given
    first = 1 if parameters["states"] == "given" else 0
    assert operators.count("FULLY_CONNECTED") == parameters["sequence"] + first
    assert operators.count("TANH") == 2 * parameters["sequence"]


@settings_for(8)
@given(**sizes)
def test_an_lstm_is_the_same_in_core_ml(coreml_agrees: Agrees, outputs: list[str], **parameters: Any) -> None:
    node, inputs, constants = lstm(**parameters)
    operators = coreml_agrees(node, inputs, constants, outputs=outputs)
    assert operators.count("sigmoid") == parameters["sequence"]


@pytest.mark.parametrize("opset", [7, 14, 22])
def test_every_opset_means_the_same(agrees: Agrees, opset: int) -> None:
    node, inputs, constants = lstm()
    agrees(node, inputs, constants, outputs=OUTPUTS, opset=opset)


def test_two_layers_as_exporters_write_them(agrees: Agrees, coreml_agrees: Agrees) -> None:
    """Batch first, one state for both layers, and a matrix behind the last step."""
    _, _, first = lstm(features=6)
    _, _, second = lstm(features=4)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        helper.make_node("Split", ["h"], ["h0", "h1"], axis=0, num_outputs=2),
        helper.make_node("LSTM", ["t", "w0", "r0", "b0", "", "h0", "h0"], ["a", "", ""], hidden_size=4),
        helper.make_node("Squeeze", ["a", "direction"], ["s"]),
        helper.make_node("LSTM", ["s", "w1", "r1", "b1", "", "h1", "h1"], ["", "last", "c"], hidden_size=4),
        helper.make_node("Squeeze", ["last", "axis"], ["l"]),
        helper.make_node("Gemm", ["l", "k"], ["y"], transB=1),
    ]
    constants = {f"{name}0": value for name, value in first.items()}
    constants |= {f"{name}1": value[:, ::-1] for name, value in second.items()}
    constants = {name: np.ascontiguousarray(value) for name, value in constants.items()}
    constants |= {"direction": whole(1), "axis": whole(0), "k": values(3, 4, seed=8)}
    inputs = {"x": values(2, 3, 6), "h": values(2, 2, 4, seed=9)}
    for check in (agrees, coreml_agrees):
        check(nodes, inputs, constants, outputs=("y", "c"), opset=18)


def test_lengths_that_are_the_whole_sequence_change_nothing(agrees: Agrees) -> None:
    node, inputs, constants = lstm()
    node.input[4] = "lengths"
    agrees(node, inputs, constants | {"lengths": np.array([3, 3], dtype=np.int32)}, outputs=OUTPUTS)


def test_the_weights_are_in_the_file_once(net: Callable[..., bytes]) -> None:
    node, inputs, constants = lstm(sequence=20, features=64, hidden=64)
    data = net([node], inputs, constants, outputs=OUTPUTS)
    package = zipfile.ZipFile(io.BytesIO(coreml_writer.convert(data).data))
    for stored in (tflite_writer.convert(data).data, package.read("Data/com.apple.CoreML/weights/weight.bin")):
        assert stored.count(constants["w"].tobytes()) == stored.count(constants["r"].tobytes()) == 1


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"direction": "bidirectional"}, "only one direction"),
        ({"activations": ["Sigmoid", "Relu", "Tanh"]}, "only the activations Sigmoid, Tanh, Tanh"),
        ({"clip": 1.5}, "without clip"),
        ({"input_forget": 1}, "without clip and input_forget"),
        ({"sequence": 257}, "only 256 steps"),
    ],
)
def test_what_means_something_else_is_refused(net: Callable[..., bytes], attributes: Any, why: str) -> None:
    node, inputs, constants = lstm(**attributes)
    if attributes.get("direction") == "bidirectional":
        constants = {name: np.repeat(value, 2, axis=0) for name, value in constants.items()}
        inputs |= {name: np.repeat(inputs[name], 2, axis=0) for name in "hc"}
    data = net([node], inputs, constants, outputs=OUTPUTS)
    for convert in (tflite_writer.convert, coreml_writer.convert):
        with pytest.raises(ModelError, match=f"operator LSTM of node 'cell': .*{why}"):
            convert(data)


def test_batch_first_is_refused(net: Callable[..., bytes]) -> None:
    node, _, constants = lstm(states="absent", layout=1)
    with pytest.raises(ModelError, match=r"operator LSTM of node 'cell': .*layout 0"):
        tflite_writer.convert(net([node], {"x": values(2, 3, 5)}, constants, outputs=OUTPUTS))


def test_the_steps_of_all_lstms_count_together(net: Callable[..., bytes]) -> None:
    node, inputs, constants = lstm(sequence=200, hidden=1)
    other = helper.make_node("LSTM", list(node.input), ["z", "", ""], name="second", hidden_size=1)
    with pytest.raises(ModelError, match=r"node 'second': .*only 256 steps"):
        tflite_writer.convert(net([node, other], inputs, constants, outputs=("y", "z")))


@pytest.mark.parametrize(
    ("place", "name", "value", "why"),
    [
        (1, "w", values(1, 16, 5), "its weights are not constants"),
        (2, "r", values(1, 16, 4), "its recurrence are not constants"),
        (3, "b", values(1, 32), "its biases are not constants"),
        (4, "lengths", np.array([3, 3], dtype=np.int32), "its sequence lengths are not constants"),
    ],
)
def test_computed_weights_and_lengths_are_refused(
    net: Callable[..., bytes], place: int, name: str, value: np.ndarray, why: str
) -> None:
    node, inputs, constants = lstm()
    node.input[place] = name
    constants.pop(name, None)
    data = net([node], inputs | {name: value}, constants, outputs=OUTPUTS)
    with pytest.raises(ModelError, match=f"operator LSTM of node 'cell': {why}"):
        tflite_writer.convert(data)


def test_sequences_of_different_lengths_and_peepholes_are_refused(net: Callable[..., bytes]) -> None:
    node, inputs, constants = lstm()
    node.input[4] = "lengths"
    short = constants | {"lengths": np.array([3, 2], dtype=np.int32)}
    with pytest.raises(ModelError, match="different lengths"):
        tflite_writer.convert(net([node], inputs, short, outputs=OUTPUTS))
    node.input[4] = ""
    node.input.append("p")
    with pytest.raises(ModelError, match="peepholes"):
        tflite_writer.convert(net([node], inputs, constants | {"p": values(1, 12)}, outputs=OUTPUTS))


def test_weights_of_another_size_are_one_sentence(net: Callable[..., bytes]) -> None:
    node, inputs, constants = lstm()
    for wrong in ({"w": values(1, 16, 7)}, {"r": values(1, 12, 4)}, {"b": values(1, 5)}):
        data = net([node], inputs, constants | wrong, outputs=OUTPUTS)
        with pytest.raises(ModelError):
            tflite_writer.convert(data)


def test_convolutions_over_one_dimension_stay_in_one_layout(agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w"], ["y"], pads=[1, 1]),
    ]
    operators = agrees(nodes, {"x": values(1, 4, 9)}, {"w": values(4, 4, 3, seed=1)})
    assert operators == ["RESHAPE", "TRANSPOSE", "CONV_2D", "CONV_2D", "TRANSPOSE", "RESHAPE"]


def test_reshapes_in_a_row_are_one_and_none_where_they_lead_back(agrees: Agrees, coreml_agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Reshape", ["x", "six"], ["a"]),
        helper.make_node("Reshape", ["a", "kept"], ["b"]),  # 0: the size that stands there, which is a's and not x's
        helper.make_node("Unsqueeze", ["b", "axis"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
        helper.make_node("Flatten", ["a"], ["d"]),
        helper.make_node("Reshape", ["d", "back"], ["e"]),
        helper.make_node("Sigmoid", ["e"], ["z"]),
    ]
    constants = {"six": whole(6, 4), "kept": whole(0, 2, -1), "axis": whole(0), "back": whole(2, 3, 4)}
    arguments = nodes, {"x": values(2, 3, 4)}, constants, ("y", "z")
    assert agrees(*arguments) == ["RESHAPE", "RELU", "LOGISTIC"]
    assert coreml_agrees(*arguments) == ["reshape", "relu", "sigmoid"]


def test_a_reshape_that_is_an_output_stays(agrees: Agrees) -> None:
    nodes = [helper.make_node("Reshape", ["x", "flat"], ["a"]), helper.make_node("Reshape", ["a", "back"], ["y"])]
    constants = {"flat": whole(-1), "back": whole(2, 3)}
    assert agrees(nodes, {"x": values(2, 3)}, constants, outputs=("a", "y")) == ["RESHAPE", "RESHAPE"]


def test_a_slice_of_everything_is_nothing(agrees: Agrees) -> None:
    nodes = [helper.make_node("Slice", ["x", "from", "to", "axis"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    constants = {"from": whole(0), "to": whole(2**63 - 1), "axis": whole(1)}
    assert agrees(nodes, {"x": values(2, 3)}, constants) == ["RELU"]


def test_a_slice_that_turns_everything_round_is_not_taken_for_nothing(net: Callable[..., bytes]) -> None:
    nodes = [helper.make_node("Slice", ["x", "from", "to", "axis", "step"], ["s"], name="turn")]
    nodes.append(helper.make_node("Relu", ["s"], ["y"]))
    constants = {"from": whole(-1), "to": whole(-(2**63)), "axis": whole(1), "step": whole(-1)}
    with pytest.raises(ModelError, match="operator Slice of node 'turn': its steps are not positive"):
        tflite_writer.convert(net(nodes, {"x": values(2, 3)}, constants))
