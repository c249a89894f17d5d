"""onnxruntime: every execution provider under one roof, each strictly on its own."""

from __future__ import annotations

from backends.onnxruntime.adapter import BACKEND

__all__ = ["BACKEND"]
