"""Which of a model's files a backend takes."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from harness.models.store import FormatStatus
from harness.runner.case_sources import CaseSources


@dataclass
class Store:
    """A store that has these files, given as (format, precision, why it cannot be had)."""

    files: tuple[tuple[str, str, str | None], ...]

    def formats(self, model: Any) -> tuple[FormatStatus, ...]:
        return tuple(
            FormatStatus("net", kind, precision, "built", None, None, None, None, reason is None, reason)
            for kind, precision, reason in self.files
        )


FP32 = ("onnx", "fp32", None), ("openvino", "fp32", None)
ONNX_INT8, OWN_INT8 = ("onnx", "int8", None), ("openvino", "int8", None)


@pytest.mark.parametrize(
    ("precision", "files", "expected"),
    [
        ("fp32", FP32, "onnx"),  # one file for every runtime that reads it
        ("int8", (ONNX_INT8, OWN_INT8), "openvino"),  # quantised by NNCF, for its kernels
        ("int8", (ONNX_INT8, ("openvino", "int8", "nncf is not installed")), "onnx"),
        ("int8", (ONNX_INT8,), "onnx"),
        ("int4", FP32, None),
    ],
)
def test_lower_precision_comes_in_the_runtimes_own_format(
    precision: str, files: tuple[tuple[str, str, str | None], ...], expected: str | None
) -> None:
    sources = CaseSources.__new__(CaseSources)
    sources.store = Store(files)  # type: ignore[assignment]
    intent: Any = SimpleNamespace(
        workload=SimpleNamespace(model="net"), backend="openvino", artifact_precision=precision
    )
    assert sources.model_format(intent, ("onnx", "openvino")) == expected
