"""The written Core ML packages, read back and computed by a numpy interpreter of MIL, against onnxruntime."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from harness.errors import ModelError, UsageError
from harness.models import coreml_writer

Agrees = Callable[..., list[str]]
# No shrinking: every example is a conversion, and a failing one says enough by itself.
few = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def number(value: float) -> np.ndarray:
    return np.array(value, dtype=np.float32)


def whole(*value: int) -> np.ndarray:
    return np.array(value, dtype=np.int64)


def block(net: Callable[..., bytes]) -> bytes:
    """Convolution, normalisation, ReLU, residual sum, head: what classifiers are made of."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Add", ["r", "x"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "k"], ["y"], transB=1),
    ]
    constants = {"w": values(8, 8, 3, 3), "v": np.abs(values(8)) + 0.5, "k": values(6, 8, seed=9)}
    constants |= {name: values(8, seed=seed) for seed, name in enumerate("gbm", start=1)}
    return net(nodes, {"x": values(1, 8, 6, 6)}, constants)


@few
@given(
    size=st.tuples(st.integers(5, 9), st.integers(5, 9)),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.integers(1, 2),
    pads=st.tuples(*[st.integers(0, 3)] * 4),
    kind=st.sampled_from(["dense", "depthwise", "grouped"]),
)
def test_convolutions_agree(coreml_agrees: Agrees, size, kernel, stride, dilation, pads, kind) -> None:
    channels, out, group = {"dense": (3, 5, 1), "depthwise": (4, 8, 4), "grouped": (4, 6, 2)}[kind]
    assume(all(size[a] + pads[a] + pads[a + 2] >= (kernel[a] - 1) * dilation + 1 for a in range(2)))
    attributes = {"strides": stride, "pads": pads, "dilations": [dilation] * 2, "group": group}
    constants = {"w": values(out, channels // group, *kernel, seed=1), "b": values(out, seed=2)}
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)
    assert coreml_agrees(node, {"x": values(1, channels, *size)}, constants) == ["conv"]


@few
@given(
    size=st.tuples(st.integers(4, 9), st.integers(4, 9)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pads=st.tuples(*[st.integers(0, 1)] * 4),
    op=st.sampled_from(["MaxPool", "AveragePool"]),
    include=st.integers(0, 1),
)
def test_pools_agree(coreml_agrees: Agrees, size, stride, pads, op, include) -> None:
    attributes = {"kernel_shape": [3, 3], "strides": stride, "pads": pads}
    attributes |= {"count_include_pad": include} if op == "AveragePool" else {}
    coreml_agrees(helper.make_node(op, ["x"], ["y"], **attributes), {"x": values(1, 3, *size)})


def test_pools_that_round_their_size_up_agree(coreml_agrees: Agrees) -> None:
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    coreml_agrees(node, {"x": values(1, 3, 6, 8)})


@pytest.mark.parametrize(("kernel", "stride", "pads"), [(2, 2, [0] * 4), (3, 2, [1] * 4), (4, 3, [0, 1, 1, 0])])
def test_transposed_convolutions_agree(coreml_agrees: Agrees, kernel: int, stride: int, pads: list[int]) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=[stride] * 2, pads=pads)
    constants = {"w": values(3, 5, kernel, kernel), "b": values(5, seed=2)}
    assert coreml_agrees(node, {"x": values(1, 3, 4, 5)}, constants) == ["conv_transpose"]


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
        "Round",
        "Erf",
        "HardSwish",
        "LeakyRelu",
        "Elu",
        "Softplus",
    ],
)
def test_functions_of_one_operand_agree(coreml_agrees: Agrees, op: str) -> None:
    coreml_agrees(helper.make_node(op, ["x"], ["y"]), {"x": 3 * values(3, 7)})


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_operands_broadcast_as_in_onnx(coreml_agrees: Agrees, op: str) -> None:
    coreml_agrees(helper.make_node(op, ["x", "o"], ["y"]), {"x": values(2, 4, 5), "o": values(4, 1) + 3})


def test_an_attention_layer_agrees_and_is_compact(coreml_agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"]),
        helper.make_node("MatMul", ["x", "wq"], ["q"]),
        helper.make_node("Add", ["q", "bq"], ["qb"]),
        helper.make_node("Reshape", ["qb", "heads"], ["qh"]),
        helper.make_node("Transpose", ["qh"], ["qt"], perm=[0, 2, 1, 3]),
        helper.make_node("Transpose", ["qh"], ["kt"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["qt", "kt"], ["s"]),
        helper.make_node("Unsqueeze", ["mask", "axes"], ["m4"]),
        helper.make_node("Cast", ["m4"], ["mf"], to=1),
        helper.make_node("Sub", ["one", "mf"], ["mi"]),
        helper.make_node("Mul", ["mi", "low"], ["ml"]),
        helper.make_node("Add", ["s", "ml"], ["sm"]),
        helper.make_node("Softmax", ["sm"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "qt"], ["o"]),
        helper.make_node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["ot", "rows"], ["or"]),
        helper.make_node("Add", ["or", "x"], ["res"]),
        helper.make_node("LayerNormalization", ["res", "g", "b"], ["ln"], axis=-1, epsilon=1e-5),
        helper.make_node("Div", ["ln", "root"], ["e0"]),
        helper.make_node("Erf", ["e0"], ["e1"]),
        helper.make_node("Add", ["e1", "one"], ["e2"]),
        helper.make_node("Mul", ["ln", "e2"], ["e3"]),
        helper.make_node("Mul", ["e3", "half"], ["e4"]),
        helper.make_node("ReduceMean", ["e4"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("ReduceL2", ["mean"], ["norm"], axes=[1], keepdims=1),
        helper.make_node("Div", ["mean", "norm"], ["y"]),
    ]
    constants = {
        "table": values(11, 8),
        "wq": values(8, 8, seed=1),
        "bq": values(8, seed=2),
        "g": values(8, seed=3),
        "b": values(8, seed=4),
        "heads": whole(0, 0, 2, 4),
        "rows": whole(0, 0, 8),
        "axes": whole(1, 2),
        "one": number(1),
        "half": number(0.5),
        "low": number(-10000),
        "root": number(math.sqrt(2)),
    }
    inputs = {"ids": whole(3, 1, 4, 1, 5).reshape(1, 5), "mask": whole(1, 1, 1, 0, 0).reshape(1, 5)}
    operators = coreml_agrees(nodes, inputs, constants)
    assert operators.count("gelu") == operators.count("layer_norm") == operators.count("linear") == 1


def test_slices_splits_pads_and_spreads_agree(coreml_agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["s"]),
        helper.make_node("Split", ["s", "parts"], ["a", "b"], axis=1),
        helper.make_node("Concat", ["b", "a"], ["c"], axis=1),
        helper.make_node("Pad", ["c", "widths", "fill"], ["p"]),
        helper.make_node("Unsqueeze", ["p", "first"], ["u"]),
        helper.make_node("Expand", ["u", "shape"], ["y"]),
    ]
    constants = {
        "starts": whole(-5, 0),
        "ends": whole(2**63 - 1, 7),
        "axes": whole(1, 2),
        "steps": whole(1, 2),
        "parts": whole(2, 3),
        "widths": whole(0, 1, 0, 0, 0, 2),
        "fill": number(0.5),
        "first": whole(0),
        "shape": whole(3, 2, 6, 6),
    }
    coreml_agrees(nodes, {"x": values(2, 7, 8)}, constants)


def test_cells_and_channels_trade_places(coreml_agrees: Agrees) -> None:
    for op, mode in (("DepthToSpace", {"mode": "DCR"}), ("SpaceToDepth", {})):
        coreml_agrees(helper.make_node(op, ["x"], ["y"], blocksize=2, **mode), {"x": values(1, 8, 4, 6)})


def test_enlarging_by_whole_factors_agrees(coreml_agrees: Agrees) -> None:
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], **attributes)
    coreml_agrees(node, {"x": values(1, 3, 4, 5)}, {"s": np.array([1, 1, 2, 3], dtype=np.float32)})


@pytest.mark.parametrize("placing", ["half_pixel", "align_corners"])
def test_enlarging_smoothly_agrees(coreml_agrees: Agrees, placing: str) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear", coordinate_transformation_mode=placing)
    coreml_agrees(node, {"x": values(1, 3, 4, 5)}, {"s": np.array([1, 1, 2, 3], dtype=np.float32)})


def test_rarer_operators_agree(coreml_agrees: Agrees) -> None:
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["g"]),
        helper.make_node("Where", ["g", "x", "low"], ["w"]),
        helper.make_node("PRelu", ["w", "slope"], ["p"]),
        helper.make_node("HardSigmoid", ["p"], ["h"]),
        helper.make_node("Clip", ["h", "zero", "most"], ["c"]),
        helper.make_node("LogSoftmax", ["c"], ["l"], axis=-1),
        helper.make_node("Reciprocal", ["l"], ["y"]),
        helper.make_node("ArgMax", ["l"], ["best"], axis=1, keepdims=0),
    ]
    constants = {"zero": number(0), "low": number(-3), "slope": values(3, 1, seed=4), "most": number(0.9)}
    coreml_agrees(nodes, {"x": 3 * values(2, 3, 5)}, constants, outputs=("y", "best"))


def test_gemm_of_computed_matrices_agrees(coreml_agrees: Agrees) -> None:
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], transA=1, transB=1)
    coreml_agrees(node, {"a": values(4, 3), "b": values(5, 4, seed=1)}, {"c": values(5, seed=2)})


def test_a_graph_that_only_passes_its_input_on(coreml_agrees: Agrees) -> None:
    coreml_agrees(helper.make_node("Identity", ["x"], ["y"]), {"x": values(2, 3)})


def test_names_that_mil_has_not_are_replaced_and_the_ports_say_so(net: Callable[..., bytes]) -> None:
    converted = coreml_writer.convert(
        net(
            [helper.make_node("Relu", ["in.1"], ["537"]), helper.make_node("Relu", ["state"], ["string"])],
            {"in.1": values(2, 3), "state": values(2)},
            outputs=["537", "string"],
        )
    )
    assert [(port.role, port.tensor) for port in (*converted.inputs, *converted.outputs)] == [
        ("in.1", "in_1"),
        ("state", "state_value"),  # state and string are words of MIL
        ("537", "_537"),
        ("string", "string_value"),
    ]


def test_weights_are_the_networks_own_and_halved_in_fp16(
    net: Callable[..., bytes], mil: ModuleType, tmp_path: Path
) -> None:
    kernel = values(16, 8, 3, 3)
    data = net([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": values(1, 8, 6, 6)}, {"w": kernel})
    for precision, expected in (("fp32", kernel), ("fp16", kernel.astype(np.float16))):
        converted = coreml_writer.convert(data, precision=precision)
        package = tmp_path / f"{precision}.mlpackage"
        zipfile.ZipFile(io.BytesIO(converted.data)).extractall(package)
        stored = (package / "Data/com.apple.CoreML/weights/weight.bin").read_bytes()
        assert expected.tobytes() in stored
        assert any(np.array_equal(value, expected) for value in mil.constants(mil.load_program(package)))
        assert [port.dtype for port in (*converted.inputs, *converted.outputs)] == ["float32", "float32"]


def test_the_specification_has_float32_ends_in_both_precisions(net: Callable[..., bytes], tmp_path: Path) -> None:
    import coremltools
    from coremltools.proto import FeatureTypes_pb2

    for precision in ("fp32", "fp16"):
        package = tmp_path / f"{precision}.mlpackage"
        zipfile.ZipFile(io.BytesIO(coreml_writer.convert(block(net), precision=precision).data)).extractall(package)
        spec = coremltools.utils.load_spec(str(package))
        assert spec.specificationVersion == 7  # iOS 16, macOS 13
        ends = [*spec.description.input, *spec.description.output]
        assert [list(end.type.multiArrayType.shape) for end in ends] == [[1, 8, 6, 6], [1, 6]]
        assert {end.type.multiArrayType.dataType for end in ends} == {FeatureTypes_pb2.ArrayFeatureType.FLOAT32}


def test_a_half_precision_network_stays_near_the_full_one(coreml_agrees: Agrees) -> None:
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)
    constants = {"w": values(6, 8), "b": values(6, seed=2)}
    assert "linear" in coreml_agrees(node, {"x": values(3, 8)}, constants, precision="fp16", tolerance=2e-3)


@pytest.mark.slow
def test_the_same_network_gives_the_same_bytes_in_every_process(net: Callable[..., bytes], tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(block(net))
    code = (
        "import hashlib, pathlib, sys; from harness.models import coreml_writer; "
        "data = coreml_writer.convert(pathlib.Path(sys.argv[1]).read_bytes(), precision='fp16').data; "
        "print(hashlib.sha256(data).hexdigest())"
    )
    found = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)],
            env={
                "PYTHONHASHSEED": seed,
                "PATH": "/usr/bin:/bin",
                "PYTHONPATH": str(Path(coreml_writer.__file__).parents[3]),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""  # no warnings about torch, no progress bars
        found.append(done.stdout)
    assert found[0] == found[1]


def test_nothing_in_the_package_is_dated_or_random(net: Callable[..., bytes]) -> None:
    archive = zipfile.ZipFile(io.BytesIO(coreml_writer.convert(block(net)).data))
    assert sorted(archive.namelist()) == [
        "Data/com.apple.CoreML/model.mlmodel",
        "Data/com.apple.CoreML/weights/weight.bin",
        "Manifest.json",
    ]
    assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert b"conversion_date" not in archive.read("Data/com.apple.CoreML/model.mlmodel")
    manifest = json.loads(archive.read("Manifest.json"))
    assert manifest["rootModelIdentifier"] in manifest["itemInfoEntries"]


def test_what_cannot_be_written_names_operator_node_and_way_out(net: Callable[..., bytes]) -> None:
    data = net(
        [helper.make_node("CumSum", ["x", "a"], ["y"], name="running sum")], {"x": values(2, 3)}, {"a": np.array(0)}
    )
    with pytest.raises(
        ModelError, match=r"Core ML writer cannot convert operator CumSum of node 'running sum'.*\[runtimes\] convert"
    ):
        coreml_writer.convert(data)
    deep = net(
        [helper.make_node("Unsqueeze", ["x", "a"], ["y"], name="deep")], {"x": values(1, 1, 1, 1, 2)}, {"a": whole(0)}
    )
    with pytest.raises(ModelError, match=r"node 'deep': its output has more than 5 dimensions"):
        coreml_writer.convert(deep)


def test_an_unknown_precision_is_refused(net: Callable[..., bytes]) -> None:
    with pytest.raises(UsageError, match="fp32 or fp16, not in 'int8'"):
        coreml_writer.convert(block(net), precision="int8")
