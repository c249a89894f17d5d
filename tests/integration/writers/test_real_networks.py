"""The suite's networks as the store builds them: TFLite by LiteRT and Core ML by a numpy interpreter, against onnxruntime.

The published weights are fetched once into the shared cache. Tolerances are float32 rounding over the nets' depth,
relative to the largest output.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import pytest
from ai_edge_litert.interpreter import Interpreter

from harness.artifacts import ModelFile, Port
from harness.folders import cache_dir
from harness.models.store import ModelStore

pytestmark = pytest.mark.slow

# CenterFace in float64 (by torch, once): onnxruntime was 0.8e-5 away, LiteRT 2.4e-5, on this file as on litert-torch's.
TOLERANCES = {"efficientnet-lite0": 1e-5, "resnet50-seeded": 1e-5, "centerface": 5e-5, "minilm-l6": 1e-5}
NOT_DELEGATED = {"GATHER", "CAST"}  # XNNPACK has neither; only MiniLM's embedding and mask need them
Arrays = Mapping[str, np.ndarray]


@pytest.fixture(scope="module")
def store() -> ModelStore:
    return ModelStore(cache_dir())


@pytest.fixture(scope="module")
def mil() -> ModuleType:
    """The interpreter of MIL, a file beside the tests."""
    path = Path(__file__).parents[2] / "fixtures" / "mil_interpreter.py"
    spec = importlib.util.spec_from_file_location("mil_interpreter", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inputs_of(onnx: ModelFile) -> dict[str, np.ndarray]:
    """One seeded sample by role: pixels in -1..1, token ids, a mask with padding at the end."""
    random = np.random.RandomState(7)
    found = {}
    for port in onnx.inputs:
        shape = tuple(size or 1 for size in port.shape)
        if port.role == "input_ids":
            found[port.role] = random.randint(1000, 30000, shape).astype(np.int64)
        elif port.role == "attention_mask":
            found[port.role] = (np.arange(shape[-1]) < 90).astype(np.int64).reshape(1, -1)
        else:
            found[port.role] = random.uniform(-1, 1, shape).astype(np.float32)
    return found


def by_onnxruntime(onnx: ModelFile, inputs: Arrays) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(str(onnx.path), providers=["CPUExecutionProvider"])
    found = session.run([p.tensor for p in onnx.outputs], {p.tensor: inputs[p.role] for p in onnx.inputs})
    return {port.role: value for port, value in zip(onnx.outputs, found, strict=True)}


def close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, float(np.abs(expected).max())))


def arranged(value: np.ndarray, port: Port) -> np.ndarray:
    value = value.transpose(0, 2, 3, 1) if port.layout == "nhwc" else value
    return np.ascontiguousarray(value.astype(port.dtype))


@pytest.mark.parametrize("network", TOLERANCES)
def test_tflite_files_agree_and_run_in_one_delegate(store: ModelStore, network: str) -> None:
    onnx, tflite = store.ensure(network, "onnx"), store.ensure(network, "tflite")
    inputs = inputs_of(onnx)
    interpreter = Interpreter(model_path=str(tflite.path), num_threads=2)
    interpreter.allocate_tensors()
    ends = {d["name"]: d["index"] for d in [*interpreter.get_input_details(), *interpreter.get_output_details()]}
    for port in tflite.inputs:
        interpreter.set_tensor(ends[port.tensor], arranged(inputs[port.role], port))
    interpreter.invoke()
    expected = by_onnxruntime(onnx, inputs)
    for port in tflite.outputs:
        value = interpreter.get_tensor(ends[port.tensor])
        close(value.transpose(0, 3, 1, 2) if port.layout == "nhwc" else value, expected[port.role], TOLERANCES[network])
    operators, partitions = outside_the_delegate(interpreter)
    assert partitions == 1
    assert operators <= (NOT_DELEGATED if network == "minilm-l6" else set())


FRAMES = 80


@pytest.fixture(scope="module")
def voice() -> list[np.ndarray]:
    """Frames of 64 samples of before and 512 new ones at 16 kHz: noise, a vowel that comes and goes, noise.

    The vowel is 30 harmonics of 105 to 135 Hz under the formants of an open a, at 700, 1220 and 2600 Hz.
    """
    size = 512 * FRAMES
    time = np.arange(size) / 16000
    pitch = 120 + 15 * np.sin(2 * np.pi * 3 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / 16000
    sound = np.zeros(size)
    for harmonic in range(1, 31):
        for centre, width, weight in ((700, 130, 1.0), (1220, 150, 0.5), (2600, 200, 0.25)):
            sound += weight * np.exp(-(((harmonic * pitch - centre) / width) ** 2)) * np.sin(harmonic * phase)
    sound *= 0.4 / np.abs(sound).max() * np.clip(np.sin(2 * np.pi * 2 * time), 0, 1)
    sound[: 512 * 12] = sound[512 * 50 :] = 0
    sound = np.concatenate([np.zeros(64), sound + np.random.RandomState(0).normal(0, 0.002, size)])
    return [sound[start : start + 576].astype(np.float32)[None] for start in range(0, size, 512)]


def stream(step: Callable[[Arrays], Arrays], voice: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The probability of speech in every frame and the last state, each frame with the state of the one before."""
    state, found = np.zeros((2, 1, 128), np.float32), []
    for frame in voice:
        made = step({"input": frame, "state": state})
        state = made["stateN"]
        found.append(made["output"][0, 0])
    return np.array(found), state


@pytest.fixture(scope="module")
def heard(store: ModelStore, voice: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """What onnxruntime makes of the published file; the network hears the vowel and not the noise."""
    onnx = store.ensure("silero-vad", "onnx")
    session = onnxruntime.InferenceSession(str(onnx.path), providers=["CPUExecutionProvider"])

    def step(inputs: Arrays) -> Arrays:
        return dict(zip(("output", "stateN"), session.run(["output", "stateN"], dict(inputs)), strict=True))

    probabilities, state = stream(step, voice)
    assert probabilities[5:12].max() < 0.1 < 0.9 < probabilities.max()
    return probabilities, state


def test_a_stream_through_tflite_agrees_frame_by_frame(
    store: ModelStore, voice: list[np.ndarray], heard: tuple[np.ndarray, np.ndarray]
) -> None:
    file = store.ensure("silero-vad", "tflite", batch=8)
    assert file.batch == 1  # a stream has no other
    interpreter = Interpreter(model_path=str(file.path), num_threads=1)
    interpreter.allocate_tensors()
    ends = {d["name"]: d["index"] for d in [*interpreter.get_input_details(), *interpreter.get_output_details()]}

    def step(inputs: Arrays) -> Arrays:
        for port in file.inputs:
            interpreter.set_tensor(ends[port.tensor], inputs[port.role])
        interpreter.invoke()
        return {port.role: interpreter.get_tensor(ends[port.tensor]) for port in file.outputs}

    probabilities, state = stream(step, voice)
    assert np.abs(probabilities - heard[0]).max() < 1e-5
    close(state, heard[1], 1e-5)
    assert outside_the_delegate(interpreter) == ({"MIRROR_PAD"}, 1)  # XNNPACK has no reflecting pad


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("fp16", 2e-2)])
def test_a_stream_through_core_ml_agrees_frame_by_frame(
    store: ModelStore,
    voice: list[np.ndarray],
    heard: tuple[np.ndarray, np.ndarray],
    mil: ModuleType,
    precision: str,
    tolerance: float,
) -> None:
    package = store.ensure("silero-vad", "coreml", precision)
    program = mil.load_program(package.path)

    def step(inputs: Arrays) -> Arrays:
        made = mil.run(program, {port.tensor: inputs[port.role] for port in package.inputs})
        return {port.role: made[port.tensor] for port in package.outputs}

    probabilities, state = stream(step, voice)
    assert np.abs(probabilities - heard[0]).max() < tolerance
    close(state, heard[1], tolerance)


def outside_the_delegate(interpreter: Any) -> tuple[set[str], int]:
    """Operators that still run by themselves (found backwards from the outputs), and the number of delegate nodes."""
    entries = interpreter._get_ops_details()
    makers = {index: entry for entry in entries if entry["op_name"] != "DELEGATE" for index in entry["outputs"]}
    delegates = [entry for entry in entries if entry["op_name"] == "DELEGATE"]
    makers |= {index: entry for entry in delegates for index in entry["outputs"]}
    waiting = [detail["index"] for detail in interpreter.get_output_details()]
    seen: dict[int, str] = {}
    while waiting:
        maker = makers.get(waiting.pop())
        if maker is not None and maker["index"] not in seen:
            seen[maker["index"]] = maker["op_name"]
            waiting += list(maker["inputs"])
    return set(seen.values()) - {"DELEGATE"}, len(delegates)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("network", ["efficientnet-lite0", "minilm-l6"])
def test_core_ml_packages_hold_the_same_network(
    store: ModelStore, mil: ModuleType, network: str, precision: str
) -> None:
    onnx, package = store.ensure(network, "onnx"), store.ensure(network, "coreml", precision)
    inputs = inputs_of(onnx)
    feeds = {port.tensor: inputs[port.role].astype(port.dtype) for port in package.inputs}
    found = mil.run(mil.load_program(package.path), feeds)
    expected = by_onnxruntime(onnx, inputs)
    for port in package.outputs:
        # fp16 here means weights rounded to 11 bits, computed in float32: what the rounding alone does
        close(found[port.tensor], expected[port.role], 2e-5 if precision == "fp32" else 2e-2)


@pytest.mark.parametrize("network", ["resnet50-seeded", "centerface"])
def test_core_ml_packages_have_the_operators_and_weights_of_the_onnx_file(store: ModelStore, network: str) -> None:
    import coremltools
    import onnx as onnx_package
    from onnx import numpy_helper

    onnx, package = store.ensure(network, "onnx"), store.ensure(network, "coreml")
    graph = onnx_package.load(onnx.path).graph
    spec = coremltools.utils.load_spec(str(package.path))
    function = spec.mlProgram.functions["main"]
    operators = [op.type for op in function.block_specializations[function.opset].operations]
    for theirs, ours in (("Conv", "conv"), ("ConvTranspose", "conv_transpose"), ("Relu", "relu"), ("Add", "add")):
        assert operators.count(ours) == sum(node.op_type == theirs for node in graph.node)
    stored = (package.path / "Data/com.apple.CoreML/weights/weight.bin").read_bytes()
    weights = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    consumers = [(node.op_type, node.input[1], node.output[0]) for node in graph.node if node.op_type == "Conv"]
    normalised = {node.input[0] for node in graph.node if node.op_type == "BatchNormalization"}
    kept = [name for _, name, output in consumers if output not in normalised]
    assert kept
    assert all(weights[name].tobytes() in stored for name in kept)
