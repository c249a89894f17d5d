"""ONNX files of lower precision, built and run: small networks whose scales are known by hand, and EfficientNet-Lite0."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.artifacts import ModelFile, Port
from harness.datasets import Dataset, DatasetSpec, open_dataset
from harness.errors import ModelError
from harness.judgement.accuracy_gate import judge_gate
from harness.judgement.paired import compare_answers
from harness.models.calibration import CalibrationSet
from harness.models.converted import Built
from harness.models.progress import SilentProgress
from harness.models.quantisation import Settings, method
from harness.models.store import ModelStore
from harness.records import Artifact
from harness.tasks import create
from harness.tasks.base import Sample
from harness.workloads.definition import load_workloads
from tests.fixtures.broken_int8 import broken

Array = npt.NDArray[Any]
SIZE = 8


class Ramp:
    """A task whose samples are pictures of one number each."""

    carry: Mapping[str, str] = {}

    def decode(self, sample: Sample) -> float:
        return float(sample.data["value"])

    def preprocess(self, decoded: float) -> dict[str, Array]:
        return {"image": np.full((1, 3, SIZE, SIZE), decoded, np.float32)}

    def postprocess(self, outputs: Mapping[str, Array]) -> list[Any]:
        return []


@pytest.fixture
def calibration() -> CalibrationSet:
    samples = tuple(Sample(str(n), data={"value": n / 4.0}) for n in range(-4, 9))  # -1 to 2
    task = Ramp()
    return CalibrationSet("ramp@0", ("0" * 64,), samples, task, task.decode)


@pytest.fixture
def source(tmp_path: Path) -> ModelFile:
    """Three convolutions 1x1; the first doubles, the second halves, the third keeps its input. ReLUs between them."""
    random = np.random.RandomState(3)
    weights = [np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1) * factor for factor in (2.0, 0.5, 1.0)]
    bias = random.uniform(-0.1, 0.1, 3).astype(np.float32)  # one for all three: several layers share it
    nodes = [
        helper.make_node("Conv", ["x", "w0", "c_2"], ["c_25"], name="first"),
        helper.make_node("Relu", ["c_25"], ["r0"], name="relu0"),
        helper.make_node("Conv", ["r0", "w1", "c_2"], ["c_22"], name="middle"),
        helper.make_node("Relu", ["c_22"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2", "c_2"], ["y"], name="last"),
    ]
    shape: list[str | int | None] = ["batch", 3, SIZE, SIZE]
    graph = helper.make_graph(
        nodes,
        "three",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(w, f"w{n}") for n, w in enumerate(weights)] + [numpy_helper.from_array(bias, "c_2")],
    )
    path = tmp_path / "three.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8), path)
    record = Artifact("onnx", "fp32", "0" * 64, path.stat().st_size, path.name)
    port = Port("image", "x", "float32", (0, 3, SIZE, SIZE))
    return ModelFile(record, path, (port,), (Port("out", "y", "float32", (0, 3, SIZE, SIZE)),))


def build(recipe: str, precision: str, source: ModelFile, data: Any = None, /, **parameters: Any) -> Built:
    return method(recipe).build(source, data, Settings(precision, parameters), SilentProgress())


def run(data: bytes, inputs: Array) -> Array:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    found: Array = session.run(None, {session.get_inputs()[0].name: inputs})[0]
    return found


def scales(model: onnx.ModelProto) -> dict[str, Array]:
    return {w.name: numpy_helper.to_array(w) for w in model.graph.initializer if w.name.endswith("_scale")}


def layers_in_float(model: onnx.ModelProto) -> list[str]:
    """The convolutions whose weights are not dequantised from int8."""
    made = {node.output[0]: node for node in model.graph.node if node.op_type == "DequantizeLinear"}
    return [node.name for node in model.graph.node if node.op_type == "Conv" and node.input[1] not in made]


def test_scales_come_from_the_calibration_data(source: ModelFile, calibration: CalibrationSet) -> None:
    model = onnx.load_model_from_string(build("onnx_static_qdq", "int8", source, calibration).data)
    found = scales(model)
    # The pictures go from -1 to 2: 255 steps of uint8 over a range of 3. Both ends have eleven binary digits.
    assert found["x_scale"] == pytest.approx(3.0 / 255.0, rel=1e-6)
    # Weights are symmetric, a scale per channel: 2, 0.5 and 1 over 127 steps.
    weights = [value for name, value in found.items() if ":w" in name and value.shape == (3,) and "c_2" not in name]
    assert sorted(float(np.round(value[0] * 127, 4)) for value in weights) == [0.5, 1.0, 2.0]
    kinds = {numpy_helper.to_array(w).dtype.name for w in model.graph.initializer if w.name.endswith("_zero_point")}
    assert {"uint8", "int8"} <= kinds
    assert layers_in_float(model) == []


def test_a_bias_that_layers_share_meets_no_tensor_of_another_name(
    source: ModelFile, calibration: CalibrationSet
) -> None:
    """onnxruntime calls the second copy of "c_2" "c_22", which this network has already; without care that breaks it."""
    picture = np.random.RandomState(1).uniform(-1, 2, (2, 3, SIZE, SIZE)).astype(np.float32)
    expected = run(source.path.read_bytes(), picture)
    found = run(build("onnx_static_qdq", "int8", source, calibration).data, picture)
    assert np.abs(found - expected).max() < 0.05  # about three steps of 4 / 255


def test_float_ends_keep_the_first_and_the_last_layer(source: ModelFile, calibration: CalibrationSet) -> None:
    model = onnx.load_model_from_string(build("onnx_static_qdq", "int8-float-ends", source, calibration).data)
    assert layers_in_float(model) == ["first", "last"]


@pytest.mark.parametrize(("way", "value"), [("minmax", 1.0), ("means", 0.4), ("percentile", 1.0), ("entropy", 1.0)])
def test_every_way_of_calibrating_gives_a_network_that_works(
    source: ModelFile, calibration: CalibrationSet, way: str, value: float
) -> None:
    """The mean of -1 to 2 is 0.5, so that means cut the pictures of this ramp there."""
    picture = np.full((1, 3, SIZE, SIZE), value, np.float32)
    built = build("onnx_static_qdq", "int8", source, calibration, calibration=way)
    assert np.abs(run(built.data, picture) - run(source.path.read_bytes(), picture)).max() < 0.25
    assert built.inputs == source.inputs and built.outputs == source.outputs


def test_data_that_lead_to_no_number_are_refused(source: ModelFile) -> None:
    task = Ramp()
    wrong = CalibrationSet("wrong@0", (), (Sample("a", data={"value": float("inf")}),), task, task.decode)
    with pytest.raises(ModelError, match="to a value that is no number"):
        build("onnx_static_qdq", "int8", source, wrong)


def test_fp16_keeps_inputs_and_outputs_and_halves_the_weights(source: ModelFile) -> None:
    model = onnx.load_model_from_string(build("onnx_float16", "fp16", source).data)
    assert {i.type.tensor_type.elem_type for i in (*model.graph.input, *model.graph.output)} == {TensorProto.FLOAT}
    assert {w.data_type for w in model.graph.initializer} == {TensorProto.FLOAT16}
    picture = np.random.RandomState(1).uniform(-1, 2, (1, 3, SIZE, SIZE)).astype(np.float32)
    assert np.abs(run(model.SerializeToString(), picture) - run(source.path.read_bytes(), picture)).max() < 4e-3


def matrix_source(tmp_path: Path) -> tuple[ModelFile, Array]:
    weight = np.random.RandomState(5).normal(size=(64, 48)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="m")],
        "matrix",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 48])],
        [numpy_helper.from_array(weight, "w")],
    )
    path = tmp_path / "matrix.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    record = Artifact("onnx", "fp32", "0" * 64, path.stat().st_size, path.name)
    ports = (Port("x", "x", "float32", (0, 64)),), (Port("y", "y", "float32", (0, 48)),)
    return ModelFile(record, path, *ports), weight


def test_int4_weights_take_half_a_byte_each(tmp_path: Path) -> None:
    source, weight = matrix_source(tmp_path)
    model = onnx.load_model_from_string(build("onnx_matmul_nbits", "int4", source).data)
    (node,) = model.graph.node
    packed = next(numpy_helper.to_array(w) for w in model.graph.initializer if w.name == node.input[1])
    assert node.op_type == "MatMulNBits" and {a.name: a.i for a in node.attribute}["bits"] == 4
    assert packed.dtype == np.uint8 and packed.nbytes == weight.size // 2
    # Symmetric in blocks of 32: no weight is further off than half a step, and the largest in a block is 8 steps.
    identity = np.eye(64, dtype=np.float32)
    step = np.abs(weight.reshape(2, 32, 48)).max(axis=1) / 8.0
    off = np.abs(run(model.SerializeToString(), identity) - weight).reshape(2, 32, 48)
    assert (off <= step[:, np.newaxis] * 1.01).all()


def test_int4_is_refused_where_there_are_no_matrices(source: ModelFile) -> None:
    with pytest.raises(ModelError, match="no matrix product with constant weights"):
        build("onnx_matmul_nbits", "int4", source)


# The real network. Answers are compared with fp32 on the 113 labelled pictures, none of which calibrates.


@pytest.fixture(scope="module")
def pictures(models: ModelStore) -> Dataset:
    return open_dataset(DatasetSpec("stamps-imagenet"), cache=models.cache.root)


@pytest.fixture(scope="module")
def answers(models: ModelStore, pictures: Dataset) -> Callable[[bytes], list[bool]]:
    workload = load_workloads()["efficientnet-lite0"]
    task = create(workload.task, workload.parameters)
    inputs = [task.preprocess(task.decode(sample))["image"] for sample in pictures.samples]

    def right(data: bytes) -> list[bool]:
        best = [int(run(data, image).argmax()) for image in inputs]
        return [answer in sample.label for answer, sample in zip(best, pictures.samples, strict=True)]

    return right


@pytest.fixture(scope="module")
def reference(models: ModelStore, answers: Callable[[bytes], list[bool]]) -> list[bool]:
    return answers(models.ensure("efficientnet-lite0", "onnx").path.read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "int8", "int8-float-ends"])
def test_lower_precision_keeps_what_fp32_knows(
    models: ModelStore, answers: Callable[[bytes], list[bool]], reference: list[bool], precision: str
) -> None:
    file = models.ensure("efficientnet-lite0", "onnx", precision)
    compared = compare_answers(answers(file.path.read_bytes()), reference)
    assert judge_gate(compared, 0.99).gate != "failed"
    assert compared.relative >= 0.97
    assert file.artifact.bytes < models.ensure("efficientnet-lite0", "onnx").artifact.bytes * 0.55
    if precision == "fp16":
        assert compared.relative == 1.0 and file.artifact.calibration is None


@pytest.mark.slow
def test_the_gate_fails_an_int8_model_with_wrong_scales(
    models: ModelStore, answers: Callable[[bytes], list[bool]], reference: list[bool]
) -> None:
    good = models.ensure("efficientnet-lite0", "onnx", "int8").path.read_bytes()
    assert judge_gate(compare_answers(answers(broken(good)), reference), 0.99).gate == "failed"


@pytest.mark.slow
def test_the_manifest_names_the_calibration_data_and_none_is_evaluated(models: ModelStore, pictures: Dataset) -> None:
    file = models.ensure("efficientnet-lite0", "onnx", "int8")
    assert file.artifact.calibration is not None and file.artifact.calibration.startswith("stamps-unlabelled-512@")
    assert len(file.calibrated_on) >= 500
    assert not set(file.calibrated_on) & set((pictures.files or {}).values())
    status = next(s for s in models.formats("efficientnet-lite0") if (s.format, s.precision) == ("onnx", "int8"))
    assert (status.calibration, status.calibration_samples) == (file.artifact.calibration, 512)


BUILD = """
import json, sys
from pathlib import Path
from harness.models.store import ModelStore
store = ModelStore(Path(sys.argv[1]), offline=True)
print(json.dumps({p: store.ensure("efficientnet-lite0", "onnx", p).artifact.sha256 for p in ("int8", "int8-float-ends")}))
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_another_process_writes_the_same_bytes(
    models: ModelStore, pictures: Dataset, with_sources: Callable[..., Path]
) -> None:
    built = {p: models.ensure("efficientnet-lite0", "onnx", p) for p in ("int8", "int8-float-ends")}
    fresh = with_sources("efficientnet-lite0")
    (fresh / "datasets").symlink_to(models.cache.root / "datasets")
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", BUILD, str(fresh)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {p: file.artifact.sha256 for p, file in built.items()}
    first = onnx.load(str(built["int8"].path))
    ends = onnx.load(str(built["int8-float-ends"].path))
    assert sum(node.op_type == "QuantizeLinear" for node in first.graph.node) >= 50  # one for about every layer
    assert layers_in_float(first) == [] and layers_in_float(ends) == ["_conv_stem"]
    assert any(w.name.startswith("_fc.weight") and w.data_type == TensorProto.FLOAT for w in ends.graph.initializer)


def rows(calibration: CalibrationSet) -> Iterator[float]:
    for sample in calibration:
        yield float(sample["image"].max())


def test_calibration_begins_anew_each_time(calibration: CalibrationSet) -> None:
    assert list(rows(calibration)) == list(rows(calibration)) and len(calibration) == 13
