"""ONNX files of lower precision, by onnxruntime's own tools."""

from __future__ import annotations

from collections.abc import Mapping

from harness.models.quantisation.contract import Method

METHODS: Mapping[str, Method] = {}
