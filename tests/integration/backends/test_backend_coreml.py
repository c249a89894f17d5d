"""Core ML: reading real packages here, prediction with a stand-in, because it exists on macOS only.

The stand-in answers as coremltools' documentation says (CompiledMLModel.predict, MLComputePlan); nothing of it was
verified on a Mac.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import coremltools as ct
import numpy as np
import pytest
from coremltools.converters.mil import Builder as mb  # noqa: N813, coremltools' own habit

from backends import create
from backends.base import LoadOptions, ModelRejected, OptionUnsupported, TargetUnsupported
from backends.coreml import adapter, plan
from backends.coreml.specification import read_specification

BACKEND = create("coreml")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = relu(x @ w) with x float32[1,3], converted as fp32 by coremltools itself."""
    return convert(tmp_path_factory.mktemp("coreml") / "dense.mlpackage", ct.precision.FLOAT32)


def convert(path: Path, precision: Any, shape: tuple[Any, ...] = (1, 3)) -> Path:
    """Write the dense layer as an .mlpackage."""

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 3))], opset_version=ct.target.macOS13)
    def dense(x: Any) -> Any:
        weights = np.array([[1, -1], [2, -2], [3, -3]], dtype=np.float32)
        return mb.relu(x=mb.matmul(x=x, y=weights), name="y")

    model = ct.convert(
        dense,
        convert_to="mlprogram",
        compute_precision=precision,
        minimum_deployment_target=ct.target.macOS13,
        skip_model_load=True,
    )
    model.save(str(path))
    return path


def test_a_real_package_is_read_here(package: Path) -> None:
    _, found = read_specification(ct, package)
    assert [(i.name, i.dtype, i.shape) for i in found.inputs] == [("x", "float32", (1, 3))]
    assert [(o.name, o.dtype, o.shape) for o in found.outputs] == [("y", "float32", (1, 2))]
    assert (found.kind, found.version, found.precision) == ("mlProgram", 7, "fp32")


def test_an_fp16_package_is_seen_as_such(tmp_path: Path) -> None:
    _, found = read_specification(ct, convert(tmp_path / "half.mlpackage", ct.precision.FLOAT16))
    assert found.precision == "fp16"


@pytest.mark.parametrize("target", ["cpu_only", "cpu_and_gpu", "cpu_and_ne", "all"])
@pytest.mark.skipif(sys.platform == "darwin", reason="this is about systems without Core ML")
def test_here_each_target_says_precisely_why_not(target: str) -> None:
    status = BACKEND.probe(target)
    assert (status.works, status.verified) == (False, False)
    assert "macOS only" in status.reason
    assert "Linux on" in status.reason
    assert status.fix == "Run this backend on a Mac."


@pytest.mark.skipif(sys.platform == "darwin", reason="this is about systems without Core ML")
def test_loading_goes_as_far_as_it_can_here(package: Path) -> None:
    with pytest.raises(TargetUnsupported, match="macOS only"):
        BACKEND.load(package, "coreml", "all", LoadOptions())


def test_a_broken_package_is_rejected_before_the_system_is_blamed(package: Path, tmp_path: Path) -> None:
    import shutil

    broken = tmp_path / "broken.mlpackage"
    shutil.copytree(package, broken)
    specification = next(broken.rglob("*.mlmodel"))
    data = bytearray(specification.read_bytes())
    data[0] ^= 0xFF
    specification.write_bytes(data)
    with pytest.raises(ModelRejected, match=r"broken\.mlpackage"):
        BACKEND.load(broken, "coreml", "all", LoadOptions())


def test_an_empty_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ModelRejected):
        BACKEND.load(tmp_path, "coreml", "all", LoadOptions())


def test_a_picture_input_is_rejected_with_the_way_out(tmp_path: Path) -> None:
    specification = ct.proto.Model_pb2.Model()
    specification.specificationVersion = 4
    entry = specification.description.input.add()
    entry.name = "picture"
    entry.type.imageType.width = entry.type.imageType.height = 8
    result = specification.description.output.add()
    result.name = "y"
    result.type.multiArrayType.dataType = 65568
    specification.neuralNetwork.layers.add().name = "none"
    path = tmp_path / "picture.mlmodel"
    path.write_bytes(specification.SerializeToString())
    with pytest.raises(ModelRejected, match="imageType"):
        BACKEND.load(path, "coreml", "all", LoadOptions())


@pytest.mark.parametrize(
    "options",
    [
        LoadOptions(threads=2),
        LoadOptions(streams=2),
        LoadOptions(device_index=1),
        LoadOptions(precision="bf16"),
        LoadOptions(precision="fp16"),
        LoadOptions(extra={"fast": "yes"}),
        LoadOptions(extra={"reshapeFrequency": "Sometimes"}),
    ],
    ids=["threads", "streams", "device", "bf16", "fp16 of an fp32 file", "unknown hint", "wrong hint"],
)
def test_what_core_ml_does_not_offer_is_refused(package: Path, options: LoadOptions) -> None:
    with pytest.raises(OptionUnsupported):
        BACKEND.load(package, "coreml", "all", options)


def test_a_fixed_shape_cannot_be_changed(package: Path) -> None:
    with pytest.raises(ModelRejected, match="Convert the model again"):
        BACKEND.load(package, "coreml", "all", LoadOptions(input_shapes={"x": (2, 3)}))


def test_a_flexible_shape_takes_what_its_range_allows(tmp_path: Path) -> None:
    specification = ct.proto.Model_pb2.Model()
    specification.specificationVersion = 4
    entry = specification.description.input.add()
    entry.name = "x"
    entry.type.multiArrayType.dataType = 65568
    entry.type.multiArrayType.shape.extend([1, 3])
    for low, high in ((1, 8), (3, 3)):
        size = entry.type.multiArrayType.shapeRange.sizeRanges.add()
        size.lowerBound, size.upperBound = low, high
    result = specification.description.output.add()
    result.name = "y"
    result.type.multiArrayType.dataType = 65568
    specification.neuralNetwork.layers.add().name = "none"
    path = tmp_path / "flexible.mlmodel"
    path.write_bytes(specification.SerializeToString())
    _, found = read_specification(ct, path)
    assert found.shape_of(found.inputs[0], (8, 3)) == (8, 3)
    with pytest.raises(ModelRejected):
        found.shape_of(found.inputs[0], (9, 3))


class MLCPUComputeDevice:
    """Named as coremltools names it: the class is all that the plan is read by."""


class MLNeuralEngineComputeDevice:
    """The neural engine."""


class StandIn:
    """coremltools on a Mac, as documented: compile, load for the units, predict; the arithmetic is numpy's."""

    __version__ = "9.0"
    ComputeUnit = ct.ComputeUnit
    ReshapeFrequency = ct.ReshapeFrequency
    target = ct.target
    precision = ct.precision

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.units: list[Any] = [MLCPUComputeDevice(), MLNeuralEngineComputeDevice()]
        self.compiled_folder = Path()
        outer = self

        class CompiledMLModel:
            def __init__(self, path: str, compute_units: Any, optimization_hints: Any = None) -> None:
                outer.asked.append((compute_units.name, optimization_hints))

            def predict(self, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
                (value,) = data.values()
                weights = np.array([[1, -1], [2, -2], [3, -3]], dtype=np.float32)
                return {"y": np.maximum(value @ weights, 0)}

        self.utils = SimpleNamespace(load_spec=ct.utils.load_spec, compile_model=self._compile)
        self.models = SimpleNamespace(
            CompiledMLModel=CompiledMLModel,
            MLModel=SimpleNamespace(get_available_compute_devices=lambda: self.units),
        )

    def _compile(self, model: str, destination: str) -> str:
        self.compiled_folder = Path(destination).parent
        Path(destination).mkdir()
        return destination


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A Mac with Apple silicon, played."""
    made = StandIn()
    monkeypatch.setattr(adapter, "import_runtime", lambda: made)
    monkeypatch.setattr(adapter.sys, "platform", "darwin")
    monkeypatch.setattr(adapter.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(adapter.platform, "mac_ver", lambda: ("15.1", ("", "", ""), "arm64"))
    monkeypatch.setattr(
        adapter, "read_plan", lambda *_: plan.Plan({"ane": 0.9, "cpu": 0.1}, {"ane": 0.99, "cpu": 0.01})
    )
    return made


@pytest.mark.parametrize(("target", "units"), [("cpu_only", "CPU_ONLY"), ("cpu_and_ne", "CPU_AND_NE"), ("all", "ALL")])
def test_a_target_becomes_its_compute_units(mac: StandIn, package: Path, target: str, units: str) -> None:
    session = BACKEND.load(package, "coreml", target, LoadOptions())
    assert mac.asked == [(units, None)]
    session.close()


def test_predictions_rotate_and_slots_run_side_by_side(mac: StandIn, package: Path) -> None:
    session = BACKEND.load(package, "coreml", "all", LoadOptions())
    session.prepare(2)
    session.submit(0, [np.array([[1, 0, 0]], dtype=np.float32)])
    session.submit(1, [np.array([[0, 0, 1]], dtype=np.float32)])
    assert session.wait(0)[0].tolist() == [[1, 0]]
    assert session.wait(1)[0].tolist() == [[3, 0]]
    assert session.infer(0, [np.array([[0, 2, 0]], dtype=np.float32)])[0].tolist() == [[4, 0]]
    session.close()
    session.close()
    assert not mac.compiled_folder.exists()


def test_the_report_says_what_core_ml_prefers(mac: StandIn, package: Path) -> None:
    session = BACKEND.load(package, "coreml", "cpu_and_ne", LoadOptions(extra={"reshapeFrequency": "Infrequent"}))
    report = session.report()
    session.close()
    assert (report.target, report.precision, report.runtime_version) == ("cpu_and_ne", "fp32", "macOS 15.1")
    assert report.placement_nodes == {"ane": 0.9, "cpu": 0.1}
    assert report.placement_time is None  # an estimate of cost is not time
    assert report.details["optimization_hints"] == {"reshapeFrequency": "Infrequent"}


def test_a_model_that_only_the_cpu_takes_is_never_reported_as_the_neural_engines(
    mac: StandIn, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "read_plan", lambda *_: plan.Plan({"cpu": 1.0}, {"cpu": 1.0}))
    session = BACKEND.load(package, "coreml", "cpu_and_ne", LoadOptions())
    assert session.report().target == "cpu_only"
    session.close()


def test_a_mac_without_the_processor_says_so(mac: StandIn, package: Path) -> None:
    mac.units = [MLCPUComputeDevice()]
    with pytest.raises(TargetUnsupported, match="no ane"):
        BACKEND.load(package, "coreml", "cpu_and_ne", LoadOptions())


def test_an_intel_mac_has_no_neural_engine(mac: StandIn, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter.platform, "machine", lambda: "x86_64")
    with pytest.raises(TargetUnsupported, match="Intel processor"):
        BACKEND.load(package, "coreml", "cpu_and_ne", LoadOptions())


def test_a_plan_counts_operations_and_weighs_their_cost() -> None:
    inner = SimpleNamespace(operator_name="add", blocks=[])
    outer = SimpleNamespace(operator_name="cond", blocks=[SimpleNamespace(operations=[inner])])
    constant = SimpleNamespace(operator_name="const", blocks=[])
    block = SimpleNamespace(operations=[constant, outer])
    program = SimpleNamespace(functions={"main": SimpleNamespace(block=block)})
    places = {id(inner): MLNeuralEngineComputeDevice(), id(outer): MLCPUComputeDevice()}
    costs = {id(inner): 0.75, id(outer): 0.25}

    class Documented:
        model_structure = SimpleNamespace(program=program, neuralnetwork=None)

        def get_compute_device_usage_for_mlprogram_operation(self, operation: Any) -> Any:
            place = places.get(id(operation))
            return SimpleNamespace(preferred_compute_device=place) if place else None

        def get_estimated_cost_for_mlprogram_operation(self, operation: Any) -> Any:
            return SimpleNamespace(weight=costs[id(operation)])

    found = plan._shares(Documented())
    assert found == plan.Plan({"ane": 0.5, "cpu": 0.5}, {"ane": 0.75, "cpu": 0.25})


def test_without_a_plan_nothing_is_claimed(package: Path) -> None:
    if sys.platform != "darwin":
        assert plan.read_plan(ct, str(package), ct.ComputeUnit.ALL) is None
