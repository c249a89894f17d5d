"""Files of lower precision: int8, int4 weights, fp16, made from a model's fp32 file by the formats' own tools.

A recipe of the catalogue (`[[artifact]] format, precision, recipe, parameters`) names one *method*. `RECIPES` says for which
format and precisions it stands and which module has it; the module offers `METHODS: Mapping[str, Method]` by recipe
name, and imports its heavy tools inside functions. What a method is given and gives back stands in `contract`.

    onnx.py      onnxruntime's quantiser and float16 converter
    tflite.py    ai-edge-quantizer
    openvino.py  NNCF; an IR is packed as a zip of model.xml and model.bin, and the store unpacks it
    coreml.py    coremltools
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from harness.errors import ModelError
from harness.models.quantisation.contract import Calibration, Method, Settings

__all__ = ["RECIPES", "Calibration", "Method", "RecipeEntry", "Settings", "method", "method_digest", "recipes_for"]


@dataclass(frozen=True)
class RecipeEntry:
    """What is known of a recipe without importing its module."""

    format: str  # that it writes
    precisions: tuple[str, ...]
    module: str  # of this package


RECIPES: Mapping[str, RecipeEntry] = {
    "onnx_static_qdq": RecipeEntry("onnx", ("int8", "int8-float-ends"), "onnx"),
    "onnx_float16": RecipeEntry("onnx", ("fp16",), "onnx"),
    "onnx_matmul_nbits": RecipeEntry("onnx", ("int4",), "onnx"),
    "tflite_static_int8": RecipeEntry("tflite", ("int8", "int8-float-ends"), "tflite"),
    "tflite_float16": RecipeEntry("tflite", ("fp16",), "tflite"),
    "tflite_int4_weights": RecipeEntry("tflite", ("int4",), "tflite"),
    "openvino_ir": RecipeEntry("openvino", ("fp32", "fp16"), "openvino"),
    "openvino_nncf_int8": RecipeEntry("openvino", ("int8", "int8-float-ends"), "openvino"),
    "openvino_nncf_int4": RecipeEntry("openvino", ("int4",), "openvino"),
    "coreml_int8_weights": RecipeEntry("coreml", ("int8",), "coreml"),
    "coreml_4bit_palette": RecipeEntry("coreml", ("int4",), "coreml"),
}


def recipes_for(model_format: str, precision: str) -> tuple[str, ...]:
    """Return the recipes that write this format and precision; the first is the one to take without a choice."""
    return tuple(
        name for name, entry in RECIPES.items() if entry.format == model_format and precision in entry.precisions
    )


def method(recipe: str) -> Method:
    """Return a recipe's method; its module is imported now. Raises ModelError for an unknown one."""
    if recipe not in RECIPES:
        raise ModelError(f"There is no recipe {recipe!r}.", f"There are: {', '.join(RECIPES)}.")
    module = import_module(f"harness.models.quantisation.{RECIPES[recipe].module}")
    return cast(Mapping[str, Method], module.METHODS)[recipe]


def method_digest(recipe: str, settings: Settings, calibration: Mapping[str, object] | None) -> str:
    """Return the identity of a recipe with its settings and the calibration data that it asks for."""
    from harness.canonical import digest_of

    return digest_of(
        {
            "recipe": recipe,
            "version": method(recipe).version,
            "precision": settings.precision,
            "parameters": dict(settings.parameters),
            "calibration": None if calibration is None else dict(calibration),
        }
    )
