"""The ground floor: one module per runtime. Importing this package imports no runtime."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from backends.base import Backend

BACKENDS = ("onnxruntime", "openvino", "tflite", "coreml")


def create(name: str) -> Backend:
    """Return the backend called `name`; raises KeyError for an unknown name."""
    if name not in BACKENDS:
        raise KeyError(name)
    module = import_module(f"backends.{name}")
    return cast("Backend", module.BACKEND)
