"""Core ML: Apple's processors, graphics and neural engine."""

from __future__ import annotations

from backends.coreml.adapter import BACKEND

__all__ = ["BACKEND"]
