"""TensorFlow Lite files, by LiteRT (ai-edge-litert) or the older tflite-runtime."""

from __future__ import annotations

from backends.tflite.adapter import BACKEND

__all__ = ["BACKEND"]
