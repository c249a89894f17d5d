"""The written networks compute what their published weights mean: against plain numpy, and against the published files."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from harness.artifacts import ModelFile
from harness.models.recipes import centerface
from harness.models.recipes.minilm import read_safetensors
from harness.models.store import ModelStore
from harness.models.torch_legacy import read_state

Array = npt.NDArray[Any]


def onnx_run(model: str | bytes, inputs: dict[str, Array]) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def tflite_run(file: ModelFile, inputs: dict[str, Array]) -> dict[str, Array]:
    """Run by role, translating layouts as the ports say."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(file.path))
    interpreter.allocate_tensors()
    places = {d["name"]: d["index"] for d in (*interpreter.get_input_details(), *interpreter.get_output_details())}
    for port in file.inputs:
        value = inputs[port.role].astype(port.dtype)
        interpreter.set_tensor(places[port.tensor], value.transpose(0, 2, 3, 1) if port.layout == "nhwc" else value)
    interpreter.invoke()
    found = {port.role: interpreter.get_tensor(places[port.tensor]) for port in file.outputs}
    layouts = {port.role: port.layout for port in file.outputs}
    return {role: v.transpose(0, 3, 1, 2) if layouts[role] == "nhwc" else v for role, v in found.items()}


# EfficientNet-Lite0 in float64, normalisation as its own step, padding by TensorFlow's rule


def convolution(x: Array, weight: Array, stride: int, depthwise: bool) -> Array:
    """x [C, H, W]; every tap of the kernel is one shifted product."""
    kernel, size = weight.shape[2], x.shape[1]
    output = -(-size // stride)
    total = max((output - 1) * stride + kernel - size, 0)
    before = total // 2
    x = np.pad(x, ((0, 0), (before, total - before), (before, total - before)))
    result = np.zeros((weight.shape[0], output, output))
    for dy in range(kernel):
        for dx in range(kernel):
            window = x[:, dy : dy + (output - 1) * stride + 1 : stride, dx : dx + (output - 1) * stride + 1 : stride]
            tap = weight[:, :, dy, dx]
            result += window * tap[:, :1, None] if depthwise else np.tensordot(tap, window, 1)
    return result


def efficientnet(state: dict[str, Array], image: Array) -> Array:
    def normal(x: Array, name: str) -> Array:
        gamma, beta, mean, variance = (
            state[f"{name}.{part}"].astype(np.float64)[:, None, None]
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        return (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta

    def relu6(x: Array) -> Array:
        return np.minimum(np.maximum(x, 0), 6)

    def weight(name: str) -> Array:
        return state[f"{name}.weight"].astype(np.float64)

    x = relu6(normal(convolution(image.astype(np.float64), weight("_conv_stem"), 2, False), "_bn0"))
    first_strides = {0: 1, 1: 2, 3: 2, 5: 2, 8: 1, 11: 2, 15: 1}  # block -> stride where a stage begins
    for block in range(16):
        name, start, stride = f"_blocks.{block}", x, first_strides.get(block, 1)
        if f"{name}._expand_conv.weight" in state:
            x = relu6(normal(convolution(x, weight(f"{name}._expand_conv"), 1, False), f"{name}._bn0"))
        x = relu6(normal(convolution(x, weight(f"{name}._depthwise_conv"), stride, True), f"{name}._bn1"))
        x = normal(convolution(x, weight(f"{name}._project_conv"), 1, False), f"{name}._bn2")
        if stride == 1 and x.shape == start.shape:
            x = x + start
    x = relu6(normal(convolution(x, weight("_conv_head"), 1, False), "_bn1")).mean((1, 2))
    return weight("_fc") @ x + state["_fc.bias"]


@pytest.mark.parametrize("model_format", ["onnx", pytest.param("tflite", marks=pytest.mark.slow)])
def test_efficientnet_is_its_checkpoint(models: ModelStore, model_format: str) -> None:
    image = np.random.RandomState(3).uniform(-1, 1, (1, 3, 224, 224)).astype(np.float32)
    expected = efficientnet(read_state(models.source_file("efficientnet-lite0", "weights")), image[0])
    file = models.ensure("efficientnet-lite0", model_format)
    run = onnx_run(str(file.path), {"image": image}) if model_format == "onnx" else tflite_run(file, {"image": image})
    assert np.abs(run["logits"][0] - expected).max() < 5e-5
    assert np.ptp(expected) > 1  # or the comparison would say nothing


# MiniLM, one sentence without padding


def minilm(weights: dict[str, Array], ids: Array) -> Array:
    from math import erf

    def w(name: str) -> Array:
        return weights[name].astype(np.float64)

    def dense(x: Array, name: str) -> Array:
        return x @ w(f"{name}.weight").T + w(f"{name}.bias")

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * w(f"{name}.weight") + w(f"{name}.bias")

    x = w("embeddings.word_embeddings.weight")[ids] + w("embeddings.position_embeddings.weight")[: len(ids)]
    x = norm(x + w("embeddings.token_type_embeddings.weight")[0], "embeddings.LayerNorm")
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        q, k, v = (dense(x, f"{name}.attention.self.{part}").reshape(-1, 12, 32) for part in ("query", "key", "value"))
        scores = np.exp(np.einsum("ihd,jhd->hij", q, k) / np.sqrt(32))
        mixed = np.einsum("hij,jhd->ihd", scores / scores.sum(-1, keepdims=True), v).reshape(-1, 384)
        x = norm(dense(mixed, f"{name}.attention.output.dense") + x, f"{name}.attention.output.LayerNorm")
        wide = dense(x, f"{name}.intermediate.dense")
        wide = wide * 0.5 * (1 + np.vectorize(erf)(wide / np.sqrt(2)))
        x = norm(dense(wide, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


SENTENCES = (
    "A man is playing a guitar.",
    "Someone plays the guitar.",
    "The stock market fell sharply today.",
    "Shares dropped on Wall Street.",
)


@pytest.fixture(scope="module")
def tokens(models: ModelStore) -> dict[str, Array]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(models.source_file("minilm-l6", "tokenizer")))
    encoded = tokenizer.encode_batch(list(SENTENCES))
    return {
        "input_ids": np.array([e.ids for e in encoded], np.int64),
        "attention_mask": np.array([e.attention_mask for e in encoded], np.int64),
    }


@pytest.mark.slow
def test_minilm_is_its_weights_and_padding_changes_nothing(models: ModelStore, tokens: dict[str, Array]) -> None:
    weights = read_safetensors(models.source_file("minilm-l6", "weights"))
    found = onnx_run(str(models.ensure("minilm-l6", "onnx").path), tokens)["embedding"]
    for row, (ids, mask) in enumerate(zip(tokens["input_ids"], tokens["attention_mask"], strict=True)):
        assert np.abs(found[row] - minilm(weights, ids[: mask.sum()])).max() < 2e-6


@pytest.mark.slow
def test_sentences_that_mean_the_same_are_closer(models: ModelStore, tokens: dict[str, Array]) -> None:
    found = onnx_run(str(models.ensure("minilm-l6", "onnx").path), tokens)["embedding"]
    alike = found @ found.T
    assert np.allclose(np.diag(alike), 1, atol=1e-5)
    assert min(alike[0, 1], alike[2, 3]) > 0.5 > 0.2 > max(alike[0, 2], alike[0, 3], alike[1, 2], alike[1, 3])


@pytest.mark.slow
def test_minilm_gives_the_same_in_tflite(models: ModelStore, tokens: dict[str, Array]) -> None:
    first = {role: value[:1] for role, value in tokens.items()}
    onnx = onnx_run(str(models.ensure("minilm-l6", "onnx").path), first)["embedding"]
    tflite = tflite_run(models.ensure("minilm-l6", "tflite"), first)["embedding"]
    assert np.abs(onnx - tflite).max() < 2e-6


def test_centerface_computes_what_the_published_file_computes(models: ModelStore) -> None:
    """The published file takes ten pictures of 32x32 and nothing else, so that size is written for the comparison."""
    published = models.source_file("centerface", "onnx")
    pictures = np.random.RandomState(5).uniform(0, 255, (10, 3, 32, 32)).astype(np.float32)
    expected = onnx_run(str(published), {"input.1": pictures})
    found = onnx_run(centerface.build({"onnx": published}, {"height": 32, "width": 32}), {"image": pictures})
    for theirs, ours in (("537", "heatmap"), ("538", "scale"), ("539", "offset"), ("540", "landmarks")):
        assert np.abs(expected[theirs] - found[ours]).max() < 1e-5
        assert np.ptp(expected[theirs]) > 1e-3


@pytest.mark.slow
def test_seeded_resnet50_keeps_its_activations_normal(models: ModelStore) -> None:
    """No denormal numbers, which slow CPUs, and no growth, in any layer."""
    import onnx

    model = onnx.load(str(models.ensure("resnet50-seeded", "onnx").path))
    layers = [node.output[0] for node in model.graph.node if node.op_type in ("Conv", "Add", "Relu")]
    model.graph.output.extend(onnx.helper.make_tensor_value_info(name, 1, None) for name in layers)
    image = np.random.RandomState(7).uniform(-2, 2.6, (1, 3, 224, 224)).astype(np.float32)
    sink = io.BytesIO()
    onnx.save(model, sink)
    found = onnx_run(sink.getvalue(), {"image": image})
    for value in found.values():
        assert 0.1 < value.std() < 100
        assert np.abs(value[value != 0]).min() > np.finfo(np.float32).tiny


@pytest.fixture(scope="module")
def melody() -> Array:
    """Two seconds at 22,050 Hz: A4 struck every half second, and E5 (659.25 Hz) held in the second half."""
    t = np.arange(43844) / 22050
    struck = 0.5 * np.sin(2 * np.pi * 440 * t) * np.exp(-4 * (t % 0.5))
    held = 0.3 * np.sin(2 * np.pi * 659.25 * t) * (t > 1)
    return (struck + held).astype(np.float32).reshape(1, -1, 1)


def by_role(file: ModelFile, values: dict[str, Array]) -> dict[str, Array]:
    return {port.role: values[port.tensor] for port in file.outputs}


def test_basic_pitch_agrees_between_its_files_role_by_role(models: ModelStore, melody: Array) -> None:
    onnx = models.ensure("basic-pitch", "onnx")
    first = by_role(onnx, onnx_run(str(onnx.path), {onnx.inputs[0].tensor: melody}))
    second = tflite_run(models.ensure("basic-pitch", "tflite"), {"audio": melody})
    assert set(first) == set(second) == {"note", "onset", "contour"}
    for role, value in first.items():
        assert np.abs(value - second[role]).max() < 1e-4
    assert np.abs(first["note"] - second["onset"]).max() > 0.1  # a swap would be seen


def test_basic_pitch_calls_note_what_lasts_and_onset_what_begins(models: ModelStore, melody: Array) -> None:
    """E5 is held for a second: its note goes on (key 76 - 21 = 55), its onset is over after some frames."""
    file = models.ensure("basic-pitch", "onnx")
    found = by_role(file, onnx_run(str(file.path), {file.inputs[0].tensor: melody}))
    late = slice(120, 160)  # frames of 256 samples, 0.4 to 0.85 s after E5 began
    note, onset = found["note"][0, late, 55].mean(), found["onset"][0, late, 55].mean()
    assert note > 2 * onset


def test_the_core_ml_package_of_basic_pitch_has_the_roles_right(models: ModelStore) -> None:
    """Core ML runs on Macs only; the package's own program says which output comes out of which head of the network."""
    import coremltools

    file = models.ensure("basic-pitch", "coreml")
    function = coremltools.utils.load_spec(str(file.path)).mlProgram.functions["main"]
    block = function.block_specializations[function.opset]
    makers = {output.name: operation for operation in block.operations for output in operation.outputs}

    def head(tensor: str) -> str:
        shape = makers[tensor].inputs["shape"].arguments[0].name  # the reshape to [1, 172, keys] is named for the head
        return str(shape)

    for port in file.outputs:
        if port.role != "contour":
            assert f"_{port.role}_" in head(port.tensor)


def test_silero_carries_its_state(models: ModelStore) -> None:
    file = models.ensure("silero-vad", "onnx")
    chunk = np.random.RandomState(9).uniform(-0.1, 0.1, (1, 576)).astype(np.float32)
    state = np.zeros((2, 1, 128), np.float32)
    first = onnx_run(str(file.path), {"input": chunk, "state": state})
    second = onnx_run(str(file.path), {"input": chunk, "state": first["stateN"]})
    assert 0 <= first["output"][0, 0] <= 1
    assert first["output"] != second["output"]
