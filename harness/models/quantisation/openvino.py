"""OpenVINO IR from an ONNX file: fp32, fp16 weights, int8 by NNCF's post-training quantisation, int4 weights by NNCF.

An IR is two files, packed as a zip of model.xml and model.bin. Its bytes are the same every time on one kind of processor:
NNCF takes its statistics from OpenVINO's own kernels, so that the last bits of int8 scales may differ between processors
with and without AMX, say. A fleet gets one file for all its devices, from the machine that built it.
"""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.artifacts import ModelFile, Port
from harness.errors import ModelError
from harness.models.archives import pack_folder
from harness.models.converted import Built
from harness.models.progress import Progress
from harness.models.quantisation.contract import Array, Calibration, Inputs, Method, Settings
from harness.models.quantisation.openvino_ir import layers_at_the_ends, without_chance

SOURCE = ("onnx", "fp32")
TOOLS = ("openvino", "numpy")
NNCF_TOOLS = ("openvino", "nncf", "numpy")


def ir(source: ModelFile, calibration: Calibration | None, settings: Settings, progress: Progress) -> Built:
    """The network as OpenVINO keeps it: weights in fp32, or in fp16 and widened again when a device computes in fp32."""
    settings.check_names()
    ov = _openvino()
    return _packed(ov, _converted(ov, source), source, halved=settings.precision == "fp16")


def nncf_int8(source: ModelFile, calibration: Calibration | None, settings: Settings, progress: Progress) -> Built:
    """Weights int8 per channel, activations int8, biases corrected for the error that this makes (NNCF's fast way).

    Parameters, by NNCF's own names: `preset` "performance" (symmetric activations) or "mixed" (asymmetric ones), and
    `model_type` "any" or "transformer", which keeps what transformers need in float.
    """
    settings.check_names("preset", "model_type")
    preset = settings.text("preset", "performance", ("performance", "mixed"))
    transformer = settings.text("model_type", "any", ("any", "transformer")) == "transformer"
    assert calibration is not None  # the method says that it is calibrated
    ov = _openvino()
    with _quiet():
        import nncf

    model = _converted(ov, source)
    data = nncf.Dataset(_counted(calibration, progress), lambda sample: _arrays(source.inputs, sample))
    with _quiet():
        try:
            made = nncf.quantize(
                model,
                data,
                preset=nncf.QuantizationPreset(preset),
                target_device=nncf.TargetDevice.CPU,
                subset_size=len(calibration),
                fast_bias_correction=True,
                model_type=nncf.ModelType.TRANSFORMER if transformer else None,
                ignored_scope=nncf.IgnoredScope(names=layers_at_the_ends(model)) if settings.float_ends else None,
            )
        except Exception as error:  # nncf raises its own and nearly anything else
            raise _refused("quantise", source, error) from error
    return _packed(ov, made, source)


def nncf_int4(source: ModelFile, calibration: Calibration | None, settings: Settings, progress: Progress) -> Built:
    """Weights of matrix products in int4, a scale for each `group` of them; embeddings and the last layer in int8."""
    settings.check_names("group")
    group = settings.whole("group", 64)
    ov = _openvino()
    with _quiet():
        import nncf

        model = _converted(ov, source)
        try:
            made = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT4_SYM, ratio=1.0, group_size=group)
        except Exception as error:  # as above
            raise _refused("compress", source, error) from error
    return _packed(ov, made, source)


def _openvino() -> Any:
    """The package, with its telemetry and NNCF's (which is the same package) kept out of the home folder."""
    from backends.base import RuntimeMissing
    from backends.openvino.adapter import import_runtime

    try:
        return import_runtime()
    except RuntimeMissing as error:
        raise ModelError(error.what, error.fix) from error


def _converted(ov: Any, source: ModelFile) -> Any:
    try:
        return ov.convert_model(str(source.path))
    except Exception as error:  # the front end raises several kinds
        raise _refused("convert", source, error) from error


def _refused(what: str, source: ModelFile, error: Exception) -> ModelError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = (lines[-1] if lines else type(error).__name__).rstrip(".")
    return ModelError(
        f"OpenVINO's tools cannot {what} {source.artifact.name}: {reason}.",
        "Use the ONNX file, which OpenVINO reads too.",
    )


class _counted:  # noqa: N801 - reads as the function that it is
    """The calibration data, counted on a bar in their first pass."""

    def __init__(self, calibration: Calibration, progress: Progress) -> None:
        self._calibration, self._progress = calibration, progress

    def __len__(self) -> int:
        return len(self._calibration)

    def __iter__(self) -> Iterator[Inputs]:
        with self._progress.step("Calibrating", len(self._calibration), "samples") as step:
            for sample in self._calibration:
                yield sample
                step.advance(1)


def _arrays(ports: tuple[Port, ...], sample: Inputs) -> dict[str, Array]:
    return {port.tensor: np.ascontiguousarray(sample[port.role], dtype=port.dtype) for port in ports}


def _packed(ov: Any, model: Any, source: ModelFile, halved: bool = False) -> Built:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "model.xml"
        ov.save_model(model, str(path), compress_to_fp16=halved)
        path.write_bytes(without_chance(path.read_bytes()))
        data = pack_folder(path.parent)
    return Built(data, ".zip", source.inputs, source.outputs)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep NNCF's bars (standard output), its log and its warnings about missing torch to itself."""
    logger = logging.getLogger("nncf")
    level = logger.level
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


METHODS: Mapping[str, Method] = {
    "openvino_ir": Method("1", TOOLS, SOURCE, calibrated=False, build=ir),
    "openvino_nncf_int8": Method("1", NNCF_TOOLS, SOURCE, calibrated=True, build=nncf_int8),
    "openvino_nncf_int4": Method("1", NNCF_TOOLS, SOURCE, calibrated=False, build=nncf_int4),
}
