"""TFLite, OpenVINO and Core ML files of lower precision: the same bytes twice, and values that numpy finds by hand."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import backends
from backends.base import LoadOptions
from harness.artifacts import ModelFile
from harness.datasets import DatasetSpec, open_calibration, open_dataset
from harness.datasets.definition import contents_of
from harness.models.converted import Built
from harness.models.progress import SilentProgress
from harness.models.quantisation import RECIPES, Settings, method
from harness.models.quantisation.tflite_graph import TfliteGraph
from harness.models.store import ModelStore
from harness.tasks import create
from harness.worker.tensors import TensorMap
from harness.workloads.definition import load_workloads

Array = npt.NDArray[Any]
NET = "efficientnet-lite0"
pytestmark = pytest.mark.slow


class Pictures:
    """Forty of the unlabelled pictures: enough for a test, none of them evaluation data."""

    identity = "stamps-unlabelled-40"

    def __init__(self, models: ModelStore) -> None:
        workload = load_workloads()[NET]
        self.dataset = open_calibration("stamps-unlabelled", cache=models.cache.root)
        self.contents = contents_of(self.dataset)
        task = create(workload.task, workload.parameters)
        self._arrays = [task.preprocess(task.decode(sample)) for sample in self.dataset.samples[::17][:40]]

    def __len__(self) -> int:
        return len(self._arrays)

    def __iter__(self) -> Iterator[dict[str, Array]]:
        return iter(self._arrays)


@pytest.fixture(scope="module")
def pictures(models: ModelStore) -> Pictures:
    return Pictures(models)


@pytest.fixture(scope="module")
def labelled(models: ModelStore) -> tuple[list[dict[str, Array]], list[list[int]]]:
    workload = load_workloads()[NET]
    dataset = open_dataset(DatasetSpec("stamps-imagenet"), cache=models.cache.root)
    task = create(workload.task, workload.parameters)
    return [task.preprocess(task.decode(s)) for s in dataset.samples], [s.label for s in dataset.samples]


_BUILT: dict[tuple[object, ...], Built] = {}


def build(
    models: ModelStore,
    pictures: Pictures,
    recipe: str,
    precision: str,
    name: str = NET,
    fresh: bool = False,
    **parameters: Any,
) -> Built:
    """Build a file; one that a test before has built the same way is taken, unless it must be `fresh`."""
    key = (recipe, precision, name, *sorted(parameters.items()))
    if fresh or key not in _BUILT:
        chosen = method(recipe)
        source = models.ensure(name, *chosen.source)
        calibration = pictures if chosen.calibrated else None
        _BUILT[key] = chosen.build(source, calibration, Settings(precision, parameters), SilentProgress())
    return _BUILT[key]


def placed(models: ModelStore, built: Built, recipe: str, precision: str, folder: Path, name: str = NET) -> ModelFile:
    """Put a built file where a backend can load it."""
    source = models.ensure(name, *method(recipe).source)
    if built.suffix == ".zip":
        zipfile.ZipFile(io.BytesIO(built.data)).extractall(folder)
        path = folder / "model.xml" if RECIPES[recipe].format == "openvino" else folder
    else:
        path = folder / f"model{built.suffix}"
        path.write_bytes(built.data)
    artifact = replace(source.artifact, format=RECIPES[recipe].format, precision=precision)
    return replace(source, artifact=artifact, path=path, inputs=built.inputs, outputs=built.outputs)


def run(file: ModelFile, backend: str, samples: list[dict[str, Array]]) -> tuple[list[Array], Any]:
    """The first output of every sample, as the worker would give it, and the session's report."""
    shapes = {port.tensor: tuple(size or 1 for size in port.shape) for port in file.inputs if 0 in port.shape}
    options = LoadOptions(precision="fp32", threads=2, input_shapes=shapes)
    session = backends.create(backend).load(file.path, file.artifact.format, "cpu", options)
    try:
        session.prepare(1)
        takes, gives = TensorMap(file.inputs, session.inputs), TensorMap(file.outputs, session.outputs)
        role = file.outputs[0].role
        found = [np.array(gives.to_canonical(session.infer(0, takes.to_file([one])))[role]) for one in samples]
        return found, session.report()
    finally:
        session.close()


def right(logits: list[Array], labels: list[list[int]]) -> int:
    return sum(int(one.argmax()) in label for one, label in zip(logits, labels, strict=True))


BUILT_HERE = [
    ("tflite_static_int8", "int8"),
    ("tflite_static_int8", "int8-float-ends"),
    ("tflite_float16", "fp16"),
    ("tflite_int4_weights", "int4"),
    ("openvino_ir", "fp32"),
    ("openvino_ir", "fp16"),
    ("openvino_nncf_int8", "int8"),
    ("openvino_nncf_int4", "int4"),
    ("coreml_int8_weights", "int8"),
    ("coreml_4bit_palette", "int4"),
]


@pytest.mark.parametrize(("recipe", "precision"), BUILT_HERE)
def test_the_bytes_are_the_same_every_time(models: ModelStore, pictures: Pictures, recipe: str, precision: str) -> None:
    """Twice in one process: names that count a process's operations would differ."""
    first = build(models, pictures, recipe, precision)
    assert first == build(models, pictures, recipe, precision, fresh=True)
    assert b"/tmp/" not in first.data and str(models.cache.root).encode() not in first.data


ACCURATE = [
    ("tflite_static_int8", "int8", "tflite", "int8"),
    ("tflite_static_int8", "int8-float-ends", "tflite", "mixed"),
    ("tflite_float16", "fp16", "tflite", "fp32"),
    ("openvino_ir", "fp16", "openvino", "fp32"),
    ("openvino_nncf_int8", "int8", "openvino", "int8"),
    ("openvino_nncf_int8", "int8-float-ends", "openvino", "mixed"),
]


@pytest.mark.parametrize(("recipe", "precision", "backend", "effective"), ACCURATE)
def test_the_photographs_are_told_as_by_fp32(
    models: ModelStore,
    pictures: Pictures,
    labelled: tuple[list[dict[str, Array]], list[list[int]]],
    tmp_path: Path,
    recipe: str,
    precision: str,
    backend: str,
    effective: str,
) -> None:
    """98 of the 113 photographs are right in fp32. Four more or fewer is what few pictures and 40 for calibration allow."""
    samples, labels = labelled
    file = placed(models, build(models, pictures, recipe, precision), recipe, precision, tmp_path)
    found, report = run(file, backend, samples)
    assert all(
        one.dtype == np.float32 and one.shape == (1, 1000) for one in found
    )  # floats outside, whatever is within
    assert abs(right(found, labels) - 98) <= 4
    assert report.precision == effective
    if backend == "tflite":
        assert report.placement_nodes == {"xnnpack": 1.0}


def test_no_calibration_picture_is_evaluated(models: ModelStore, pictures: Pictures) -> None:
    evaluated = contents_of(open_dataset(DatasetSpec("stamps-imagenet"), cache=models.cache.root))
    assert pictures.contents and not set(pictures.contents) & set(evaluated)


def test_int8_weights_of_tflite_are_the_rounded_floats(models: ModelStore, pictures: Pictures) -> None:
    """TFLite's specification: int8 per channel, scale max|w| / 127, zero point 0. The classifier's weights, by hand."""
    exact = TfliteGraph(models.ensure(NET, "tflite").path.read_bytes())
    made = TfliteGraph(build(models, pictures, "tflite_static_int8", "int8").data)
    operators = made.operators()
    assert [types[:2] for code, types in operators if code in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")] == [
        ["INT8", "INT8"]
    ] * 50
    assert {operators[0][0], operators[-1][0]} == {"QUANTIZE", "DEQUANTIZE"}
    name = next(n for n in made.quantised_tensors() if made.constant(n).shape == (1000, 1280))  # type: ignore[union-attr]
    weights, found, scales = exact.constant(name), made.constant(name), made.scales(name)
    assert weights is not None and found is not None and scales is not None
    by_hand = np.abs(weights).max(1) / 127
    np.testing.assert_allclose(scales, by_hand, rtol=1e-6)
    assert np.abs(found - np.rint(weights / by_hand[:, None])).max() <= 1  # a tie may round either way
    assert np.mean(found == np.rint(weights / by_hand[:, None])) > 0.9999


def test_no_bias_is_cut_off(models: ModelStore, pictures: Pictures) -> None:
    """Channels that training switched off have weights of 1e-9 and a bias of -5.9: the tool alone stores -0.3 for it."""
    exact = TfliteGraph(models.ensure(NET, "tflite").path.read_bytes())
    made = TfliteGraph(build(models, pictures, "tflite_static_int8", "int8").data)
    compared = 0
    for name in made.names():
        whole, kept, scales = exact.constant(name), made.constant(name), made.scales(name)
        if whole is None or kept is None or scales is None or kept.dtype != np.int32 or whole.dtype != np.float32:
            continue
        assert np.abs(kept * scales.astype(np.float64) - whole).max() < 1e-2, name
        compared += 1
    assert compared == 50


def test_float_ends_leave_the_first_and_the_last_layer_alone(models: ModelStore, pictures: Pictures) -> None:
    made = TfliteGraph(build(models, pictures, "tflite_static_int8", "int8-float-ends").data)
    kinds = [
        types[0] for code, types in made.operators() if code in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
    ]
    assert kinds == ["FLOAT32", *["INT8"] * 48, "FLOAT32"]


def test_float16_weights_are_the_rounded_floats(models: ModelStore, pictures: Pictures) -> None:
    exact = TfliteGraph(models.ensure(NET, "tflite").path.read_bytes())
    made = TfliteGraph(build(models, pictures, "tflite_float16", "fp16").data)
    names = [name for name in made.float16_tensors() if exact.constant(name) is not None]
    assert len(names) >= 50
    for name in names:
        np.testing.assert_array_equal(made.constant(name), exact.constant(name).astype(np.float16))  # type: ignore[union-attr]


def test_int8_weights_of_core_ml_are_the_rounded_floats(models: ModelStore, pictures: Pictures, tmp_path: Path) -> None:
    """The package's own operation says value = scale * (quantised - zero point), per output channel."""
    import coremltools
    from coremltools.converters.mil.frontend.milproto.load import load as milproto

    file = placed(
        models, build(models, pictures, "coreml_int8_weights", "int8"), "coreml_int8_weights", "int8", tmp_path
    )
    spec = coremltools.utils.load_spec(str(file.path))
    folder = str(file.path / "Data" / "com.apple.CoreML" / "weights")
    program = milproto(spec, specification_version=spec.specificationVersion, file_weights_dir=folder)
    operations = program.functions["main"].operations
    widened = [op for op in operations if op.op_type.startswith("constexpr_affine")]
    assert len(widened) >= 34
    exact = TfliteGraph(
        models.ensure(NET, "tflite").path.read_bytes()
    )  # the same weights, in a file that is read easily
    last = next(op for op in widened if tuple(op.quantized_data.val.shape) == (1000, 1280))
    weights = next(v for n in exact.names() if (v := exact.constant(n)) is not None and v.shape == (1000, 1280))
    quantised, scale = last.quantized_data.val.astype(np.float64), last.scale.val.astype(np.float64)
    zero = np.broadcast_to(last.zero_point.val.astype(np.float64), (1000,))
    values = (quantised - zero[:, None]) * np.broadcast_to(scale, (1000,))[:, None]
    step = np.abs(weights).max(1, keepdims=True) / 127
    assert np.abs(values - weights).max() <= 0.51 * step.max() + 1e-3  # half a step, and the scale is kept in float16


def test_a_4_bit_palette_has_sixteen_values(models: ModelStore, pictures: Pictures, tmp_path: Path) -> None:
    import coremltools

    file = placed(
        models, build(models, pictures, "coreml_4bit_palette", "int4"), "coreml_4bit_palette", "int4", tmp_path
    )
    spec = coremltools.utils.load_spec(str(file.path))
    function = spec.mlProgram.functions["main"]
    operations = function.block_specializations[function.opset].operations
    tables = [op.attributes["lut"] for op in operations if op.type == "constexpr_lut_to_dense"]
    assert len(tables) >= 34
    assert {int(table.type.tensorType.dimensions[0].constant.size) for table in tables} == {16}
    assert sum(f.stat().st_size for f in file.path.rglob("*") if f.is_file()) < 18.7e6 / 7  # of fp32


def test_an_ir_names_no_file_of_the_machine(models: ModelStore, pictures: Pictures) -> None:
    built = build(models, pictures, "openvino_ir", "fp32")
    archive = zipfile.ZipFile(io.BytesIO(built.data))
    assert sorted(archive.namelist()) == ["model.bin", "model.xml"]
    assert {info.date_time[0] for info in archive.infolist()} == {1980}
    assert b"conversion_parameters" not in archive.read("model.xml")


def test_nothing_is_left_in_the_home_folder(models: ModelStore, tmp_path: Path) -> None:
    """OpenVINO and NNCF keep files of their telemetry there unless it is kept out."""
    import os
    import subprocess
    import sys

    home = tmp_path / "home"
    home.mkdir()
    code = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from harness.models.store import ModelStore\n"
        "from harness.models.quantisation import Settings, method\n"
        "from harness.models.progress import SilentProgress\n"
        "from harness.folders import cache_dir\n"
        f"source = ModelStore(Path({str(models.cache.root)!r})).ensure('silero-vad', 'onnx')\n"
        "method('openvino_nncf_int4').build(source, None, Settings('int4', {}), SilentProgress())\n"
        "print('built')\n"
    )
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.strip() == "built", done.stderr
    assert [path for path in home.rglob("*") if "intel" in path.name.lower() or "telemetry" in path.name.lower()] == []


def test_a_network_without_such_layers_is_refused_in_a_sentence(models: ModelStore, pictures: Pictures) -> None:
    from harness.errors import ModelError

    with pytest.raises(ModelError, match="found nothing to quantise"):
        build(models, pictures, "tflite_int4_weights", "int4", "centerface")


def test_an_unknown_parameter_is_refused(models: ModelStore, pictures: Pictures) -> None:
    from harness.errors import ModelError

    with pytest.raises(ModelError, match="has no parameter 'bits'"):
        build(models, pictures, "tflite_static_int8", "int8", bits=4)
