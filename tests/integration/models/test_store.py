"""The store with the real models: the same bytes every time, true ports, nothing used that is not what it should be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.artifacts import ModelFile
from harness.errors import ModelError
from harness.models.catalog import catalogue
from harness.models.quantisation import RECIPES
from harness.models.store import ModelStore

Sources = Callable[..., Path]
ENSURE = """
import json, sys
from pathlib import Path
from harness.models.store import ModelStore
store = ModelStore(Path(sys.argv[1]), offline=sys.argv[2] == "offline")
print(json.dumps({" ".join(w): store.ensure(w[0], w[1], w[2]).artifact.sha256 for w in json.loads(sys.argv[3])}))
"""
LARGE = ("minilm-l6", "resnet50-seeded")
ALL = [
    pytest.param(
        entry.name,
        artifact.format,
        artifact.precision,
        marks=[pytest.mark.slow] if entry.name in LARGE or artifact.recipe == "coreml_writer" else [],
    )
    for entry in catalogue().values()
    for artifact in entry.artifacts
    if not any(source.source.startswith("url:") for source in entry.sources) and artifact.recipe not in RECIPES
]  # files of lower precision have tests of their own


def start(root: Path, wanted: list[list[str]], *, offline: bool, seed: int = 0) -> subprocess.Popen[str]:
    arguments = [str(root), "offline" if offline else "online", json.dumps(wanted)]
    return subprocess.Popen(
        [sys.executable, "-c", ENSURE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
    )


def answer(process: subprocess.Popen[str]) -> dict[str, str]:
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    found: dict[str, str] = json.loads(output)
    return found


@pytest.mark.slow
def test_two_builds_in_two_processes_give_the_same_bytes(with_sources: Sources) -> None:
    wanted = [["efficientnet-lite0", "onnx", "fp32"], ["efficientnet-lite0", "tflite", "fp32"]]
    wanted.append(["centerface", "onnx", "fp32"])
    running = [
        start(with_sources("efficientnet-lite0", "centerface", place=str(n)), wanted, offline=True, seed=n)
        for n in (1, 2)
    ]
    first, second = (answer(process) for process in running)
    assert first == second and len(first) == 3


@pytest.mark.slow
def test_a_second_build_of_everything_gives_the_bytes_of_the_first(models: ModelStore, with_sources: Sources) -> None:
    built = [list(p.values) for p in ALL if catalogue()[str(p.values[0])].artifact(*map(str, p.values[1:])).recipe]
    first = {" ".join(map(str, wanted)): models.ensure(*map(str, wanted)).artifact.sha256 for wanted in built}  # type: ignore[arg-type]
    names = sorted({str(name) for name, _, _ in built})
    assert answer(start(with_sources(*names), built, offline=True, seed=2)) == first  # type: ignore[arg-type]


def onnx_tensors(file: ModelFile) -> dict[str, tuple[str, list[Any]]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(file.path), options, providers=["CPUExecutionProvider"])
    names = {"tensor(float)": "float32", "tensor(int64)": "int64"}
    return {t.name: (names[t.type], t.shape) for t in (*session.get_inputs(), *session.get_outputs())}


def tflite_tensors(file: ModelFile) -> dict[str, tuple[str, list[Any]]]:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(file.path))
    details = [*interpreter.get_input_details(), *interpreter.get_output_details()]
    return {d["name"]: (d["dtype"].__name__, d["shape_signature"].tolist()) for d in details}


def coreml_tensors(file: ModelFile) -> dict[str, tuple[str, list[Any]]]:
    import coremltools

    description = coremltools.utils.load_spec(str(file.path)).description
    kinds = {65568: "float32", 131104: "int32"}
    return {
        f.name: (kinds[f.type.multiArrayType.dataType], list(f.type.multiArrayType.shape))
        for f in (*description.input, *description.output)
    }


@pytest.mark.parametrize(("name", "model_format", "precision"), ALL)
def test_the_ports_are_those_of_the_file(models: ModelStore, name: str, model_format: str, precision: str) -> None:
    file = models.ensure(name, model_format, precision)
    readers = {"onnx": onnx_tensors, "tflite": tflite_tensors, "coreml": coreml_tensors}
    tensors = readers[model_format](file)
    assert {port.tensor for port in (*file.inputs, *file.outputs)} == set(tensors)
    entry = catalogue()[name]
    assert [p.role for p in file.inputs] == [t.role for t in entry.inputs]
    assert [p.role for p in file.outputs] == [t.role for t in entry.outputs]
    for port in (*file.inputs, *file.outputs):
        dtype, shape = tensors[port.tensor]
        assert dtype == port.dtype
        assert len(shape) == len(port.shape) or model_format == "coreml"  # Core ML leaves an output's shape open
        wanted = [port.shape[axis] for axis in (0, 2, 3, 1)] if port.layout == "nhwc" else list(port.shape)
        for size, found in zip(wanted, shape, strict=False):
            if isinstance(found, int) and found > 0 and size > 0:
                assert found == size, port


@pytest.mark.parametrize("model_format", ["onnx", "tflite", pytest.param("coreml", marks=pytest.mark.slow)])
def test_lineage_says_what_a_built_file_was_made_from(models: ModelStore, model_format: str) -> None:
    artifact = models.ensure("efficientnet-lite0", model_format).artifact
    weights = catalogue()["efficientnet-lite0"].source("weights")
    assert (artifact.source, artifact.source_sha256) == (weights.source, weights.sha256)
    assert artifact.recipe is not None and artifact.recipe.startswith("efficientnet_lite0/")
    assert artifact.recipe_sha256 is not None and len(artifact.recipe_sha256) == 64
    from importlib.metadata import version

    assert artifact.tools["onnx"] == version("onnx")
    assert artifact.licence == "Apache-2.0"


def test_a_damaged_built_file_is_said_and_built_again_to_the_same_bytes(with_sources: Sources) -> None:
    notes: list[str] = []

    class Progress:
        def step(self, what: str, total: int | None, unit: str = "bytes") -> Any:
            from contextlib import nullcontext

            return nullcontext()

        def note(self, text: str) -> None:
            notes.append(text)

    store = ModelStore(with_sources("centerface"), offline=True, progress=Progress())
    first = store.ensure("centerface", "onnx")
    data = bytearray(first.path.read_bytes())
    data[len(data) // 2] ^= 1
    first.path.write_bytes(data)
    assert store.ensure("centerface", "onnx") == first
    assert len(notes) == 1 and "was damaged" in notes[0] and "Building it again" in notes[0]


def test_a_damaged_file_of_a_package_folder_is_put_right(models: ModelStore, tmp_path: Path) -> None:
    _copy(models, tmp_path, models.ensure("basic-pitch", "coreml"))
    store = ModelStore(tmp_path, offline=True)
    folder = store.ensure("basic-pitch", "coreml").path
    weights = folder / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    right = weights.read_bytes()
    weights.write_bytes(right[:-1] + b"X")
    assert ModelStore(tmp_path, offline=True).ensure("basic-pitch", "coreml").path == folder
    assert weights.read_bytes() == right


def _copy(models: ModelStore, target: Path, file: ModelFile) -> None:
    """Copy what is known by the file's digest, and every manifest; no published weights."""
    source, sha256 = models.cache.root, file.artifact.sha256
    blobs = [path for path in source.glob(f"sha256/{sha256[:2]}/{sha256[2:]}.*") if path.is_file()]
    assert len(blobs) == 1
    for path in (*blobs, *source.glob("built/*/*.json")):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


@pytest.mark.parametrize("model_format", ["onnx", "tflite", pytest.param("coreml", marks=pytest.mark.slow)])
@pytest.mark.parametrize("tools", ["none", "others"])
def test_a_device_takes_what_the_control_host_built(
    models: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_format: str, tools: str
) -> None:
    """It has the built file and its manifest: no weights, and other tools, or none."""
    file = models.ensure("efficientnet-lite0", model_format)
    _copy(models, tmp_path, file)
    found = None if tools == "none" else {"onnx": "0.0.1"}
    monkeypatch.setattr("harness.models.store.tool_versions", lambda names: found)
    there = ModelStore(tmp_path, offline=True).ensure("efficientnet-lite0", model_format)
    assert there.artifact == file.artifact and (there.inputs, there.outputs) == (file.inputs, file.outputs)
    assert there.path.is_relative_to(tmp_path) and there.path.exists()


def test_two_processes_at_once_fetch_the_same_file(tmp_path: Path) -> None:
    wanted = [["basic-pitch", "onnx", "fp32"], ["basic-pitch", "coreml", "fp32"]]
    running = [start(tmp_path / "cache", wanted, offline=False) for _ in range(3)]
    assert len({json.dumps(answer(process)) for process in running}) == 1
    assert not list((tmp_path / "cache" / "tmp").iterdir())


def test_what_is_not_cached_offline_names_file_and_source(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        ModelStore(tmp_path, offline=True).ensure("resnet50-zoo", "onnx")
    assert "resnet50-v1-12.onnx" in str(error.value) and "url:https://" in str(error.value)


def test_formats_says_what_exists_and_what_is_cached(with_sources: Sources) -> None:
    store = ModelStore(with_sources("centerface"), offline=True)
    before = {(s.format, s.precision): s for s in store.formats("centerface")}
    assert not any(status.cached for status in before.values())
    assert before["onnx", "fp32"].sha256 is None and before["onnx", "fp32"].licence == "MIT"
    file = store.ensure("centerface", "onnx")
    after = {(s.format, s.precision): s for s in store.formats("centerface")}
    assert after["onnx", "fp32"].cached and after["onnx", "fp32"].sha256 == file.artifact.sha256
    assert not after["tflite", "fp32"].cached


def test_prefetch_brings_what_a_run_needs_so_that_it_can_go_on_offline(tmp_path: Path) -> None:
    ModelStore(tmp_path).prefetch([("basic-pitch", "onnx", "fp32"), ("silero-vad", "onnx", "fp32")])
    offline = ModelStore(tmp_path, offline=True)
    assert offline.ensure("basic-pitch", "onnx").path.exists() and offline.ensure("silero-vad", "onnx").path.exists()
