"""Core ML packages with smaller weights, by coremltools.optimize: int8 weights, and weights of 16 values (4 bits).

Only weights: coremltools quantises activations on macOS alone, where Core ML itself runs the calibration data. So "int8" of
a Core ML package says how the weights are kept; the package computes in float16, because int8 arithmetic needs quantised
activations. Written and read back on any system; not verified on hardware.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.artifacts import ModelFile
from harness.errors import ModelError
from harness.models.converted import Built
from harness.models.progress import Progress
from harness.models.quantisation.contract import Calibration, Method, Settings

SOURCE = ("coreml", "fp16")
TOOLS = ("coremltools", "numpy")
LEAST_WEIGHTS = 2048  # coremltools' own threshold: of smaller tensors nothing is won


def int8_weights(source: ModelFile, calibration: Calibration | None, settings: Settings, progress: Progress) -> Built:
    """Weights in int8 with a scale per output channel, symmetric around zero."""
    settings.check_names()
    optimise = _tools().optimize.coreml
    kind = optimise.OpLinearQuantizerConfig(mode="linear_symmetric", dtype="int8", weight_threshold=LEAST_WEIGHTS)
    return _with(source, optimise.linear_quantize_weights, kind)


def palette(source: ModelFile, calibration: Calibration | None, settings: Settings, progress: Progress) -> Built:
    """Each tensor of weights in 16 values of its own, chosen by k-means: 4 bits a weight."""
    settings.check_names()
    optimise = _tools().optimize.coreml
    kind = optimise.OpPalettizerConfig(mode="kmeans", nbits=4, weight_threshold=LEAST_WEIGHTS)
    return _with(source, optimise.palettize_weights, kind)


def _tools() -> Any:
    from harness.models.coreml_writer.toolbox import coremltools

    return coremltools()


def _with(source: ModelFile, change: Any, kind: Any) -> Built:
    from harness.models.coreml_writer.package import pack_model
    from harness.models.coreml_writer.toolbox import quiet

    tools = _tools()
    with quiet():
        try:
            model = tools.models.MLModel(str(source.path), skip_model_load=True)  # loading means compiling: macOS only
            made = change(model, config=tools.optimize.coreml.OptimizationConfig(global_config=kind))
        except Exception as error:  # coremltools raises nearly anything
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ModelError(
                f"coremltools {tools.__version__} cannot compress {source.artifact.name}: {reason}.",
                "Use the fp16 package.",
            ) from error
    return Built(pack_model(made, source.inputs, source.outputs), ".zip", source.inputs, source.outputs)


METHODS: Mapping[str, Method] = {
    "coreml_int8_weights": Method("1", TOOLS, SOURCE, calibrated=False, build=int8_weights),
    "coreml_4bit_palette": Method("1", TOOLS, SOURCE, calibrated=False, build=palette),
}
