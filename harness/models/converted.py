"""What a writer or a recipe gives back: the bytes of one model file, and the ports that tie it to the canonical tensors."""

from __future__ import annotations

from dataclasses import dataclass

from harness.artifacts import Port


@dataclass(frozen=True)
class Converted:
    """One written model. `data` is the file (TFLite) or a zip of the folder (CoreML); the same bytes every time.

    A port's `role` is the tensor's name in the ONNX graph, its `shape` the canonical (ONNX) shape with every size fixed.
    """

    data: bytes
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@dataclass(frozen=True)
class Built:
    """A built file's content, with ports whose roles are the canonical ones."""

    data: bytes
    suffix: str  # ".onnx", ".tflite"; ".zip" for a folder: a CoreML package, or OpenVINO's model.xml and model.bin
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
