"""ONNX files of lower precision, by onnxruntime's own tools."""

from __future__ import annotations

from collections.abc import Mapping

from harness.models.quantisation import onnx_float16, onnx_nbits, onnx_static
from harness.models.quantisation.contract import Method

SOURCE = ("onnx", "fp32")
TOOLS = ("onnx", "onnxruntime", "numpy")

METHODS: Mapping[str, Method] = {
    "onnx_static_qdq": Method("1", (*TOOLS, "pillow"), SOURCE, True, onnx_static.build),
    "onnx_float16": Method("1", TOOLS, SOURCE, False, onnx_float16.build),
    "onnx_matmul_nbits": Method("1", (*TOOLS, "onnx-ir"), SOURCE, False, onnx_nbits.build),
}
