"""OpenVINO: Intel's processors, graphics and NPUs."""

from __future__ import annotations

from backends.openvino.adapter import BACKEND

__all__ = ["BACKEND"]
