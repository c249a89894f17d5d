"""TFLite files of lower precision, by Google's ai-edge-quantizer: static int8, float16 weights, int4 weights.

Inputs and outputs stay float32, so that a case means the same work in every precision: the file itself quantises what
comes in, and gives back floats.

What LiteRT 2.3 then executes on a CPU: int8 files run in XNNPACK's integer kernels (QUANTIZE and DEQUANTIZE at the ends);
float16 weights are widened once when the file is loaded, and the arithmetic is fp32; int4 weights of fully connected
layers run in XNNPACK's kernels for quantised activations, which scale each row of activations to int8 as it comes.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from harness.artifacts import ModelFile, Port
from harness.errors import ModelError
from harness.models.converted import Built
from harness.models.progress import Progress
from harness.models.quantisation.contract import Array, Calibration, Method, Settings
from harness.models.quantisation.tflite_graph import LAYERS, TfliteGraph

TOOLS = ("ai-edge-litert", "ai-edge-quantizer", "flatbuffers", "numpy")
SOURCE = ("tflite", "fp32")
RANGE_BITS = 12  # significant bits of a calibrated range: see `_rounded_outwards`
ALL, LAYERS_ONLY = "all", "layers"
EXTREMES, MEANS = "extremes", "means"


def static_int8(source: ModelFile, calibration: Calibration | None, settings: Settings, progress: Progress) -> Built:
    """Weights int8 per channel, activations int8 with the ranges that the calibration data reach.

    Parameter `operations`: "all" (every operator that the tool knows), or "layers" (those with weights only, for networks
    whose normalisations and softmax suffer, as in transformers). Parameter `ranges`: "extremes" of all samples, or "means"
    of every sample's.
    """
    settings.check_names("operations", "ranges")
    which = settings.text("operations", ALL, (ALL, LAYERS_ONLY))
    kind = settings.text("ranges", EXTREMES, (EXTREMES, MEANS))
    assert calibration is not None  # the method says that it is calibrated
    graph = TfliteGraph(source.path.read_bytes())
    with _quiet():
        from ai_edge_quantizer import qtyping, recipe_manager

        names = qtyping.TFLOperationName
        recipe = recipe_manager.RecipeManager()
        wanted = [names.ALL_SUPPORTED] if which == ALL else [names(name) for name in LAYERS.values()]
        for name in wanted:
            recipe.add_static_config(".*", name, activation_num_bits=8, weight_num_bits=8)
        for name in (names.INPUT, names.OUTPUT):
            recipe.add_quantization_config(".*", name, algorithm_key="no_quantize")
        for scope in graph.scopes_of_ends() if settings.float_ends else ():
            recipe.add_quantization_config(scope, names.ALL_SUPPORTED, algorithm_key="no_quantize")
        ranges = _ranges(source, calibration, recipe, kind, progress)
        return _quantised(source, graph, recipe, ranges)


def float16(source: ModelFile, calibration: Calibration | None, settings: Settings, progress: Progress) -> Built:
    """Weights in float16, half the size; a runtime may widen them when it loads the file."""
    settings.check_names()
    with _quiet():
        from ai_edge_quantizer import qtyping, recipe_manager

        recipe = recipe_manager.RecipeManager()
        recipe.add_weight_only_config(
            ".*", qtyping.TFLOperationName.ALL_SUPPORTED, num_bits=16, algorithm_key="float_casting"
        )
        return _quantised(source, TfliteGraph(source.path.read_bytes()), recipe, None)


def int4_weights(source: ModelFile, calibration: Calibration | None, settings: Settings, progress: Progress) -> Built:
    """Weights of fully connected layers in int4, in blocks of `block` weights with a scale each; the rest stays float."""
    settings.check_names("block")
    block = settings.whole("block", 32)
    with _quiet():
        from ai_edge_quantizer import qtyping, recipe_manager

        granularity = getattr(qtyping.QuantGranularity, f"BLOCKWISE_{block}", None)
        if granularity is None:
            raise ModelError(f"int4 weights cannot come in blocks of {block}.", "Take 32, 64, 128 or 256.")
        recipe = recipe_manager.RecipeManager()
        layer = qtyping.TFLOperationName.FULLY_CONNECTED
        recipe.add_dynamic_config(".*", layer, num_bits=4, granularity=granularity)
        return _quantised(source, TfliteGraph(source.path.read_bytes()), recipe, None)


def _ranges(source: ModelFile, calibration: Calibration, recipe: Any, kind: str, progress: Progress) -> dict[str, Any]:
    """Least and greatest value of every tensor: over all samples, or on average per sample.

    An average cuts what only some samples reach, which makes the steps finer for the rest. The network's inputs and outputs
    always keep their extremes: a classifier's best logits are what few samples reach. The tool's own way, a moving
    average, forgets all but the last samples, and at the outputs too.
    """
    from ai_edge_quantizer import calibrator

    keeper = calibrator.Calibrator(
        source.path.read_bytes(),
        num_threads=1,  # one order of additions, the same on every machine
        mode=calibrator.CalibrationMode.CALIBRATION_PROFILER_BASED,
        qsv_update_func=_both,
    )
    with progress.step("Calibrating", len(calibration), "samples") as step:
        for signature, inputs in _file_inputs(source, calibration, keeper):
            keeper.calibrate({signature: [inputs]}, recipe)
            step.advance(source.batch or 1)
    graph = TfliteGraph(source.path.read_bytes())
    ends = {end.name for end in (*graph.inputs(), *graph.outputs())}
    ranges = {}
    for name, found in keeper.get_model_qsvs().items():
        count = found.get("count", 1)
        averaged = kind == MEANS and name not in ends and count > 1
        ranges[name] = {
            side: _rounded_outwards(found[f"sum_{side}"] / count if averaged else found[side])
            for side in ("min", "max")
        }
    return ranges


def _both(known: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a tensor with one sample more: extremes, and sums of every sample's extremes."""
    return {
        "min": np.minimum(known["min"], new["min"]),
        "max": np.maximum(known["max"], new["max"]),
        "sum_min": known.get("sum_min", known["min"]) + new["min"],
        "sum_max": known.get("sum_max", known["max"]) + new["max"],
        "count": known.get("count", 1) + 1,
    }


def _file_inputs(source: ModelFile, calibration: Calibration, keeper: Any) -> Iterator[tuple[str, dict[str, Array]]]:
    """The samples as the file's signature wants them: by its own names, in its layout, as many at once as its batch."""
    interpreter = keeper._tfl_interpreter
    signature = next(iter(interpreter.get_signature_list()))
    details = interpreter.get_signature_runner(signature).get_input_details()
    names = {str(detail["name"]): name for name, detail in details.items()}
    batch = source.batch or 1
    waiting: list[Mapping[str, Array]] = []
    for sample in calibration:
        waiting.append(sample)
        if len(waiting) == batch:
            yield signature, _stacked(source.inputs, names, waiting)
            waiting = []
    if waiting:  # the last ones again, which widens no range
        yield signature, _stacked(source.inputs, names, (waiting * batch)[:batch])


def _stacked(ports: tuple[Port, ...], names: Mapping[str, str], samples: list[Mapping[str, Array]]) -> dict[str, Array]:
    made = {}
    for port in ports:
        array = np.concatenate([sample[port.role] for sample in samples]) if len(samples) > 1 else samples[0][port.role]
        array = np.moveaxis(array, 1, -1) if port.layout == "nhwc" else array
        made[names[port.tensor]] = np.ascontiguousarray(array, dtype=port.dtype)
    return made


def _rounded_outwards(value: Array) -> Array:
    """The next number away from zero with 12 significant bits.

    Kernels of different processors add in different orders, so ranges differ in their last bits from machine to machine;
    rounded, they (and the file's bytes) rarely do. The range grows by at most 1 in 2048, an eighth of a step of int8.
    """
    mantissa, exponent = np.frexp(np.asarray(value, dtype=np.float64))
    scaled = np.ldexp(mantissa, RANGE_BITS)
    away = np.where(scaled < 0, np.floor(scaled), np.ceil(scaled))
    rounded: Array = np.ldexp(away, exponent - RANGE_BITS).astype(np.float32)
    return rounded


def _quantised(source: ModelFile, graph: TfliteGraph, recipe: Any, ranges: dict[str, Any] | None) -> Built:
    from ai_edge_quantizer import quantizer

    tool = quantizer.Quantizer(source.path.read_bytes(), recipe.get_quantization_recipe())
    try:
        made = tool.quantize(ranges, enable_progress_bar=False, enable_progress_report=False).quantized_model
    except (ValueError, RuntimeError, KeyError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"ai-edge-quantizer cannot quantise {source.artifact.name}: {reason}.") from error
    assert made is not None
    changed = TfliteGraph(bytes(made))
    if not changed.quantised_tensors() and not changed.float16_tensors():
        raise ModelError(
            f"ai-edge-quantizer found nothing to quantise in {source.artifact.name}.",
            "Its operators with weights are none of those that the recipe covers; use the fp32 file.",
        )
    changed.repair_biases(graph)
    return Built(changed.pack(), ".tflite", *_ports(source, changed))


def _ports(source: ModelFile, changed: TfliteGraph) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """The source's ports with the new file's names: the tool renames an output that it puts a DEQUANTIZE before."""
    before = TfliteGraph(source.path.read_bytes())
    ends = zip((*before.inputs(), *before.outputs()), (*changed.inputs(), *changed.outputs()), strict=True)
    renamed = {old.name: new for old, new in ends}
    inputs, outputs = (
        tuple(
            Port(port.role, renamed[port.tensor].name, renamed[port.tensor].dtype, port.shape, port.layout)
            for port in ports
        )
        for ports in (source.inputs, source.outputs)
    )
    return inputs, outputs


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the tool's log, its bars on standard error and numpy's warnings to itself."""
    import contextlib
    import io

    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        level = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(level)


METHODS: Mapping[str, Method] = {
    "tflite_static_int8": Method("1", TOOLS, SOURCE, calibrated=True, build=static_int8),
    "tflite_float16": Method("1", TOOLS, SOURCE, calibrated=False, build=float16),
    "tflite_int4_weights": Method("1", TOOLS, SOURCE, calibrated=False, build=int4_weights),
}
