"""OpenVINO: the math mode asked for is the one that runs, AUTO never hides the device, options are refused aloud."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from backends import create
from backends.base import LoadOptions, ModelRejected, OptionUnsupported, TargetUnsupported
from backends.openvino.precision import effective_precision, layer_precisions
from backends.openvino.session import reason_of

FileMaker = Callable[..., Path]
BACKEND = create("openvino")
BATCH = {"x": (4, 64)}
CAN_BF16 = "BF16" in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def worst(path: Path, weights: np.ndarray, samples: list, options: LoadOptions) -> tuple[float, str | None]:
    """Largest error against numpy in float64, and the precision that the report names."""
    session = BACKEND.load(path, "onnx", "cpu", options)
    session.prepare(1)
    exact = [sample.astype(np.float64) @ weights.astype(np.float64) for sample in samples]
    errors = [
        float(np.abs(session.infer(0, [sample])[0] - truth).max()) for sample, truth in zip(samples, exact, strict=True)
    ]
    precision = session.report().precision
    session.close()
    return max(errors), precision


def test_fp32_is_exact_to_its_own_rounding(onnx_file: FileMaker, weights: np.ndarray, samples: list) -> None:
    error, precision = worst(onnx_file(), weights, samples, LoadOptions(precision="fp32", input_shapes=BATCH))
    assert precision == "fp32"
    assert error < 64 * 4 * 4 * 2**-23  # 64 products of numbers up to about four


def test_the_cold_start_holds_the_plugins_loading_and_the_reshaping(
    onnx_file: FileMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other runtimes do both within what is timed as load and compile."""
    from backends.openvino import adapter

    def slowed(real: Callable[..., object]) -> Callable[..., object]:
        def slowly(*arguments: object) -> object:
            time.sleep(0.2)
            return real(*arguments)

        return slowly

    for name in ("device_of", "reshape"):
        monkeypatch.setattr(adapter, name, slowed(getattr(adapter, name)))
    session = BACKEND.load(onnx_file(), "onnx", "cpu", LoadOptions(input_shapes=BATCH))
    session.close()
    assert session.load_ms >= 200
    assert session.compile_ms >= 200


def test_bf16_is_seen_in_the_numbers_and_in_the_report(
    onnx_file: FileMaker, weights: np.ndarray, samples: list
) -> None:
    options = LoadOptions(precision="bf16", input_shapes=BATCH)
    if not CAN_BF16:  # an older processor must say so instead
        with pytest.raises(OptionUnsupported, match="does not compute in bf16"):
            BACKEND.load(onnx_file(), "onnx", "cpu", options)
        return
    error, precision = worst(onnx_file(), weights, samples, options)
    assert precision == "bf16"
    assert 1e-3 < error < 1.0  # eight bits of mantissa: far from fp32, yet the same function


def test_the_vendors_default_is_left_alone_and_named(onnx_file: FileMaker, weights: np.ndarray, samples: list) -> None:
    error, precision = worst(onnx_file(), weights, samples, LoadOptions(precision="default", input_shapes=BATCH))
    assert precision == ("bf16" if CAN_BF16 else "fp32")
    assert (error > 1e-3) == (precision == "bf16")


def test_auto_reports_the_device_that_it_chose(onnx_file: FileMaker, weights: np.ndarray, samples: list) -> None:
    session = BACKEND.load(onnx_file(), "onnx", "auto", LoadOptions(precision="fp32", input_shapes=BATCH))
    session.prepare(1)
    np.testing.assert_allclose(session.infer(0, [samples[0]])[0], samples[0] @ weights, rtol=1e-4, atol=1e-4)
    report = session.report()
    session.close()
    assert report.target == "cpu"
    assert report.devices == ("CPU",)
    assert report.precision == "fp32"
    assert report.details["asked_device"] == "AUTO"


def test_a_probe_of_auto_names_the_processor() -> None:
    status = BACKEND.probe("auto")
    assert status.works
    assert "AUTO" not in (status.device_name or "AUTO")


def test_gpu_here_says_what_its_plugin_said() -> None:
    status = BACKEND.probe("gpu")
    assert (status.works, status.verified) == (False, False)
    assert "libOpenCL.so.1" in status.reason or "OpenVINO sees no GPU device" in status.reason
    assert "\n" not in status.reason
    assert "intel-opencl-icd" in status.fix


def test_npu_here_says_what_is_missing() -> None:
    status = BACKEND.probe("npu")
    assert (status.works, status.verified) == (False, False)
    assert "OpenVINO sees no NPU device" in status.reason
    assert "driver" in status.fix


def test_a_second_cpu_does_not_exist(onnx_file: FileMaker) -> None:
    with pytest.raises(TargetUnsupported, match="no number 1"):
        BACKEND.load(onnx_file(), "onnx", "cpu", LoadOptions(device_index=1))


def test_threads_and_streams_are_read_back(onnx_file: FileMaker) -> None:
    session = BACKEND.load(onnx_file(), "onnx", "cpu", LoadOptions(threads=2, streams=2))
    report = session.report()
    assert (report.threads, report.streams) == (2, 2)
    assert session.preferred_slots == 2
    session.close()


def test_the_performance_hint_passes_by_its_own_name(onnx_file: FileMaker) -> None:
    session = BACKEND.load(onnx_file(), "onnx", "cpu", LoadOptions(extra={"PERFORMANCE_HINT": "THROUGHPUT"}))
    assert session.report().details["performance_hint"] == "THROUGHPUT"
    session.close()


def test_a_wrong_hint_is_refused_in_openvinos_own_words(onnx_file: FileMaker) -> None:
    with pytest.raises(OptionUnsupported, match="LATENCY/THROUGHPUT") as caught:
        BACKEND.load(onnx_file(), "onnx", "cpu", LoadOptions(extra={"PERFORMANCE_HINT": "FASTEST"}))
    assert "Exception from" not in str(caught.value)


def test_auto_takes_no_thread_number(onnx_file: FileMaker) -> None:
    with pytest.raises(OptionUnsupported, match="AUTO takes no INFERENCE_NUM_THREADS"):
        BACKEND.load(onnx_file(), "onnx", "auto", LoadOptions(threads=1))


def test_ir_is_read_beside_onnx(onnx_file: FileMaker, weights: np.ndarray, samples: list, tmp_path: Path) -> None:
    path = tmp_path / "dense.xml"
    ov.save_model(ov.Core().read_model(str(onnx_file())), str(path), compress_to_fp16=False)
    session = BACKEND.load(path, "openvino", "cpu", LoadOptions(input_shapes=BATCH))
    session.prepare(1)
    np.testing.assert_allclose(session.infer(0, [samples[0]])[0], samples[0] @ weights, rtol=1e-4, atol=1e-4)
    session.close()


def test_ir_without_its_weights_is_rejected(onnx_file: FileMaker, tmp_path: Path) -> None:
    path = tmp_path / "dense.xml"
    ov.save_model(ov.Core().read_model(str(onnx_file())), str(path))
    path.with_suffix(".bin").unlink()
    with pytest.raises(ModelRejected):
        BACKEND.load(path, "openvino", "cpu", LoadOptions())


def test_a_compile_cache_is_filled_and_then_used(onnx_file: FileMaker, tmp_path: Path) -> None:
    options = LoadOptions(cache_dir=tmp_path / "cache", input_shapes=BATCH)
    states = []
    for _ in range(2):
        session = BACKEND.load(onnx_file(), "onnx", "cpu", options)
        states.append(session.report().details["loaded_from_cache"])
        session.close()
    assert any((tmp_path / "cache").iterdir())
    assert states == [False, True]


def test_a_placement_pass_gives_time_by_layer(onnx_file: FileMaker, samples: list, tmp_path: Path) -> None:
    session = BACKEND.load(onnx_file(), "onnx", "cpu", LoadOptions(profile_dir=tmp_path, input_shapes=BATCH))
    session.prepare(1)
    session.infer(0, [samples[0]])
    times = session.report().details["time_by_layer_type"]
    session.close()
    assert sum(times.values()) == pytest.approx(1)
    assert "FullyConnected" in times or "MatMul" in times


def test_outputs_that_the_caller_keeps_are_not_openvinos_memory(onnx_file: FileMaker, samples: list) -> None:
    session = BACKEND.load(onnx_file(), "onnx", "cpu", LoadOptions(input_shapes=BATCH))
    session.prepare(1)
    kept = session.infer(0, [samples[0]])[0].copy()
    before = kept.copy()
    session.close()
    np.testing.assert_array_equal(kept, before)


def test_openvino_leaves_nothing_in_the_home_folder(onnx_file: FileMaker, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "import sys; from pathlib import Path; from backends import create; from backends.base import LoadOptions;"
        "create('openvino').load(Path(sys.argv[1]), 'onnx', 'cpu', LoadOptions()).close()"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(onnx_file())], check=True, env={**os.environ, "HOME": str(home)}, timeout=60
    )
    assert list(home.iterdir()) == []


# Rows as OpenVINO 2026.4 gave them for compiled models: (layerType, primitiveType, runtimePrecision).
F32 = ("Convolution", "brgconv_avx512_1x1_f32", "f32")
F32_OF_F16 = ("Convolution", "brgconv_avx512_1x1_f32", "f16")  # weights kept in fp16, computed in fp32
BF16 = ("FullyConnected", "brgemm_avx512_amx_bf16", "bf16")
INT8 = ("Convolution", "brgconv_avx512_dw_I8", "u8")
BOOLEAN = ("Subgraph", "jit_avx512_I8", "u8")  # a logical NOT
ADDITION = ("Subgraph", "jit_avx512_f32", "f32")
SOFTMAX = ("Softmax", "jit_avx512_f32", "f32")


@pytest.mark.parametrize(
    ("hint", "layers", "expected"),
    [
        ("fp32", [F32, F32, SOFTMAX], "fp32"),
        ("fp32", [F32_OF_F16], "fp32"),
        ("bf16", [BF16, SOFTMAX], "bf16"),
        ("bf16", [BF16, F32], "bf16"),
        ("fp32", [BF16, F32], "mixed"),  # said fp32, ran bf16: never called fp32
        ("bf16", [F32], "fp32"),
        ("fp32", [INT8, SOFTMAX], "int8"),
        ("fp32", [INT8, F32], "mixed"),  # first and last layers in float
        ("fp32", [ADDITION], "fp32"),
        ("fp32", [BOOLEAN], None),  # single bytes that are no quantised numbers
        ("fp16", [], "fp16"),
    ],
)
def test_the_kernels_overrule_the_hint(hint: str, layers: list[tuple[str, str, str]], expected: str | None) -> None:
    assert effective_precision(hint, layer_precisions(layers)) == expected


def test_a_network_of_booleans_claims_no_precision(tmp_path: Path) -> None:
    """It was called int8 once, and its measurement invalid, because OpenVINO keeps a boolean in a byte."""
    path = tmp_path / "not.xml"
    asked = ov.opset13.parameter([4, 64], ov.Type.boolean, name="x")
    ov.save_model(ov.Model([ov.opset13.logical_not(asked, name="y")], [asked], "not"), str(path))
    for precision in ("fp32", "default"):
        session = BACKEND.load(path, "openvino", "cpu", LoadOptions(precision=precision))
        assert session.report().precision is None
        session.close()


def test_double_precision_becomes_what_is_asked_for(tmp_path: Path, weights: np.ndarray, samples: list) -> None:
    """OpenVINO computes no fp64: the error against numpy says which precision ran, and the report must agree."""
    path = tmp_path / "double.xml"
    asked = ov.opset13.parameter([4, 64], ov.Type.f64, name="x")
    product = ov.opset13.matmul(asked, ov.opset13.constant(weights.astype(np.float64)), False, False, name="y")
    ov.save_model(ov.Model([product], [asked], "double"), str(path), compress_to_fp16=False)
    sample = samples[0].astype(np.float64)
    for precision in ("fp32", "default"):
        session = BACKEND.load(path, "openvino", "cpu", LoadOptions(precision=precision))
        session.prepare(1)
        error = float(np.abs(session.infer(0, [sample])[0] - sample @ weights.astype(np.float64)).max())
        found = session.report().precision
        session.close()
        assert found == ("bf16" if error > 1e-3 else "fp32")
        assert precision == "default" or found == "fp32"


def test_weights_kept_in_fp16_are_computed_in_fp32(
    onnx_file: FileMaker, weights: np.ndarray, samples: list, tmp_path: Path
) -> None:
    path = tmp_path / "half.xml"
    ov.save_model(ov.Core().read_model(str(onnx_file())), str(path), compress_to_fp16=True)
    session = BACKEND.load(path, "openvino", "cpu", LoadOptions(precision="fp32", input_shapes=BATCH))
    session.prepare(1)
    exact = samples[0].astype(np.float64) @ weights.astype(np.float16).astype(np.float64)
    assert np.abs(session.infer(0, [samples[0]])[0] - exact).max() < 64 * 4 * 4 * 2**-23
    assert session.report().precision == "fp32"
    session.close()


@pytest.mark.parametrize("group", [None, "0"])
def test_activations_made_int8_on_the_way_are_not_called_fp32(tmp_path: Path, group: str | None) -> None:
    """A layer with int4 weights, asked for in fp32: the error against numpy in float64 says what its activations were."""
    random, rows, width, outputs, each = np.random.RandomState(0), 8, 384, 256, 32
    whole = random.randint(-8, 8, (outputs, width // each, each)).astype(np.int8)
    scales = random.uniform(0.01, 0.02, (outputs, width // each, 1)).astype(np.float16)
    pairs = whole.reshape(-1, 2) & 15
    packed = (pairs[:, 0] | (pairs[:, 1] << 4)).astype(np.uint8)
    asked = ov.opset13.parameter([rows, width], ov.Type.f32, name="x")
    kept = ov.opset13.constant(ov.Tensor(packed, ov.Shape(list(whole.shape)), ov.Type.i4))
    wide = ov.opset13.multiply(ov.opset13.convert(kept, ov.Type.f16), ov.opset13.constant(scales))
    flat = ov.opset13.convert(ov.opset13.reshape(wide, np.array([outputs, width]), False), ov.Type.f32)
    path = tmp_path / "int4.xml"
    product = ov.opset13.matmul(asked, flat, False, True, name="y")
    ov.save_model(ov.Model([product], [asked], "int4"), str(path), compress_to_fp16=False)

    sample = random.randn(rows, width).astype(np.float32)
    weights = (whole * scales.astype(np.float64)).reshape(outputs, width)
    exact = sample.astype(np.float64) @ weights.T
    parts = sample.astype(np.float64).reshape(rows, -1, each)
    steps = np.abs(parts).max(-1, keepdims=True) / 127
    rounded = (np.rint(parts / steps) * steps).reshape(rows, width) @ weights.T

    extra = {} if group is None else {"DYNAMIC_QUANTIZATION_GROUP_SIZE": group}
    session = BACKEND.load(path, "openvino", "cpu", LoadOptions(precision="fp32", extra=extra))
    session.prepare(1)
    error = float(np.abs(session.infer(0, [sample])[0] - exact).max() / np.abs(exact).max())
    report = session.report()
    session.close()
    by_int8 = float(np.abs(rounded - exact).max() / np.abs(exact).max())
    assert report.details["math_modes"]["DYNAMIC_QUANTIZATION_GROUP_SIZE"] == (0 if group == "0" else 32)
    if group == "0":
        assert error < 1e-5 and report.precision == "fp32"
    else:  # a processor without int8 products leaves the activations alone; then the report doubts more than it must
        assert error < 1e-5 or error == pytest.approx(by_int8, rel=0.01)
        assert report.precision == "mixed"


def test_the_telling_line_of_a_message_is_found() -> None:
    text = "Exception from src/a.cpp:1:\nException from src/b.cpp:2:\nNotFound: Unsupported property NOPE by CPU plugin.\n\n"
    assert reason_of(RuntimeError(text)) == "NotFound: Unsupported property NOPE by CPU plugin"


def test_closing_after_requests_in_flight_never_waits_for_its_own_lock(onnx_file: FileMaker, samples: list) -> None:
    # Without care about one close in fifty hangs: OpenVINO's thread needs Python's lock to let go of the call back.
    for _ in range(60):
        session = BACKEND.load(onnx_file(4), "onnx", "cpu", LoadOptions(threads=1))
        session.prepare(2)
        session.submit(0, [samples[0]])
        session.submit(1, [samples[1]])
        session.wait(1)
        session.wait(0)
        session.close()
