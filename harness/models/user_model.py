"""A user's own model file, with the ports that its author gave or that the file itself says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.artifacts import Port

SUFFIXES = {".onnx": "onnx", ".tflite": "tflite", ".mlpackage": "coreml", ".mlmodel": "coreml", ".xml": "openvino"}


@dataclass(frozen=True)
class UserModel:
    """A model file of the user's. Without ports they are read from the file, each role being the tensor's own name."""

    path: Path
    format: str
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    precision: str = "fp32"
    licence: str | None = None

    @property
    def name(self) -> str:
        """The file's name, for people."""
        return self.path.name
