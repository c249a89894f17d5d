"""int8 ONNX files: static quantisation by onnxruntime, as pairs of QuantizeLinear and DequantizeLinear (QDQ).

Weights are int8, symmetric, one scale per channel; activations uint8 with a zero point, one scale per tensor. uint8 because
x86 multiplies unsigned by signed bytes (VNNI): with int8 activations the same network took 1.7 times as long in onnxruntime
and 2.6 times as long in OpenVINO on a Xeon, while Arm's kernels take both. CPUs without VNNI (before Cascade Lake and Zen 4)
add pairs of products in 16 bits, which can saturate: there the accuracy may be lower, and the gate says so.

Scales come from calibration data. The ranges found are rounded outward to 11 binary digits, so that another CPU, whose
convolutions differ in the last bits, writes the same file.

Parameters: `calibration` ("minmax": the extremes of all samples; "means": the means of each sample's; "percentile",
"entropy"), `percentile` (99.99), `operators` (those to quantise; all that onnxruntime knows), `keep` (patterns of node names
that stay in float), `float_outputs` (operators whose outputs do).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from harness.artifacts import ModelFile, Port
from harness.canonical import digest_of, sha256_hex
from harness.errors import ModelError
from harness.models.converted import Built
from harness.models.progress import Progress, Step
from harness.models.quantisation.contract import Array, Calibration, Inputs, Settings
from harness.models.quantisation.onnx_graph_preparation import end_layers, prepared, refused, serialised, silenced

CALIBRATIONS = ("minmax", "means", "percentile", "entropy")
_known: dict[str, Any] = {}  # ranges found by this process: int8 with and without float ends needs the same

MANTISSA_BITS = 11


def build(source: ModelFile, calibration: Calibration | None, settings: Settings, progress: Progress) -> Built:
    """Quantise an fp32 ONNX file. Raises ModelError where onnxruntime cannot, or a range is not finite."""
    from onnx.onnx_cpp2py_export.checker import ValidationError
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, InvalidGraph, NotImplemented

    assert calibration is not None  # the method is marked as calibrated
    settings.check_names("calibration", "percentile", "operators", "keep", "float_outputs")
    method = settings.text("calibration", "minmax", CALIBRATIONS)
    refusals = (ValueError, RuntimeError, TypeError, KeyError, ValidationError, Fail, InvalidArgument, InvalidGraph)
    with tempfile.TemporaryDirectory(prefix="weighbridge-quantise-") as temporary:
        folder = Path(temporary)
        try:
            data = _quantised(source, calibration, settings, method, folder, progress)
        except (*refusals, NotImplemented) as error:
            raise refused(source.artifact.name, settings.precision, error) from error
    return Built(data, ".onnx", source.inputs, source.outputs)


def _quantised(
    source: ModelFile, calibration: Calibration, settings: Settings, method: str, folder: Path, progress: Progress
) -> bytes:
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.calibrate import save_tensors_data
    from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

    model = prepared(source, folder)
    operators = sorted(_words(settings, "operators") or {*QDQRegistry, *QLinearOpsRegistry})
    kept = [node.name for node in model.graph.node if any(fnmatchcase(node.name, p) for p in _words(settings, "keep"))]
    if settings.float_ends:
        kept += end_layers(model, without=kept)
    ready, result, ranges = folder / "float.onnx", folder / "int8.onnx", folder / "ranges.json"
    onnx.save(model, str(ready))
    with silenced():
        key = digest_of(
            [sha256_hex(ready.read_bytes()), calibration.identity, operators, method, _percentile(settings)]
        )
        if key not in _known:
            _known[key] = _ranges(ready, source, calibration, operators, settings, method, folder, progress)
        found = _known[key]
        save_tensors_data(found, ranges)
        quantize_static(
            str(ready),
            str(result),
            None,
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=operators,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=kept,
            calibrate_method=found.calibration_method,
            calibration_cache_path=str(ranges),
            extra_options={
                "WeightSymmetric": True,
                "MatMulConstBOnly": True,  # attention's products of activations stay in float
                "OpTypesToExcludeOutputQuantization": list(_words(settings, "float_outputs")),
            },
        )
    quantised = onnx.load(str(result))
    onnx.checker.check_model(quantised)
    if not any(node.op_type == "DequantizeLinear" for node in quantised.graph.node):
        raise ModelError(
            f"{source.artifact.name} has no layer that onnxruntime quantises.", "Take its fp32 or fp16 file."
        )
    return serialised(quantised)


def _ranges(
    model: Path,
    source: ModelFile,
    calibration: Calibration,
    operators: list[str],
    settings: Settings,
    method: str,
    folder: Path,
    progress: Progress,
) -> Any:
    """Run the calibration data through the float network; return each activation's range (onnxruntime's TensorsData)."""
    from onnxruntime import InferenceSession, SessionOptions
    from onnxruntime.quantization.calibrate import CalibrationMethod, TensorData, TensorsData, create_calibrator

    chosen = {
        "minmax": (CalibrationMethod.MinMax, {}),
        "means": (CalibrationMethod.MinMax, {"moving_average": True}),
        "percentile": (CalibrationMethod.Percentile, {"percentile": _percentile(settings), "symmetric": False}),
        "entropy": (CalibrationMethod.Entropy, {}),
    }[method]
    calibrator = create_calibrator(
        model,
        operators,
        augmented_model_path=str(folder / "observed.onnx"),
        calibrate_method=chosen[0],
        extra_options=chosen[1],
    )
    # Its own session leaves the graph as it is; with onnxruntime's optimisations the same values come 1.6 times as fast.
    options = SessionOptions()
    options.log_severity_level = 3
    calibrator.infer_session = InferenceSession(
        str(folder / "observed.onnx"), options, providers=["CPUExecutionProvider"]
    )
    with progress.step(f"Calibrating with {calibration.identity}", len(calibration), "samples") as step:
        if method in ("minmax", "means"):  # at once: what is kept of a sample is two numbers per activation
            calibrator.collect_data(_Reader(_feeds(calibration, source), step))
        else:  # one by one: histograms are made from whole activations, which are kept until the reader ends
            for row in calibration:
                calibrator.collect_data(_Reader(_feeds([row], source), step))
    data = {}
    for name, value in calibrator.compute_data().items():
        low, high = (np.asarray(edge, dtype=np.float32) for edge in value.range_value)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ModelError(
                f"The calibration data drive {name} of {source.artifact.name} to a value that is no number."
            )
        data[name] = TensorData(lowest=rounded_outward(low, down=True), highest=rounded_outward(high, down=False))
    return TensorsData(chosen[0], data)


def rounded_outward(values: Array, down: bool) -> Array:
    """Round float32 values to 11 binary digits, all down or all up: by at most a thousandth, and never inward."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    scaled = mantissa * (1 << MANTISSA_BITS)
    whole = np.floor(scaled) if down else np.ceil(scaled)
    return np.asarray(np.ldexp(whole, exponent - MANTISSA_BITS), dtype=np.float32)


def _feeds(rows: Iterable[Inputs], source: ModelFile) -> Iterator[Mapping[str, Array]]:
    for row in rows:
        yield {port.tensor: _as_the_file(row[port.role], port) for port in source.inputs}


def _as_the_file(array: Array, port: Port) -> Array:
    laid_out = np.moveaxis(array, 1, -1) if port.layout == "nhwc" else array
    return np.ascontiguousarray(laid_out, dtype=port.dtype)


class _Reader:
    """The samples as onnxruntime's calibrators ask for them."""

    def __init__(self, feeds: Iterator[Mapping[str, Array]], step: Step) -> None:
        self._feeds = feeds
        self._step = step

    def get_next(self) -> Mapping[str, Array] | None:
        found = next(self._feeds, None)
        self._step.advance(0 if found is None else 1)
        return found


def _words(settings: Settings, name: str) -> tuple[str, ...]:
    value = settings.parameters.get(name, ())
    if not isinstance(value, (list, tuple)) or not all(isinstance(word, str) for word in value):
        raise ModelError(f"The parameter {name} must be a list of texts, not {value!r}.")
    return tuple(value)


def _percentile(settings: Settings) -> float:
    value = settings.parameters.get("percentile", 99.99)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 50 < value <= 100:
        raise ModelError(f"The parameter percentile must lie above 50 and be at most 100, not {value!r}.")
    return float(value)
