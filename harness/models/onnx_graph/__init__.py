"""An ONNX network with every shape fixed and every constant computed, ready to be written in another format.

The TFLite and CoreML writers share it: `read_graph` (reading, shapes, constants), then `simplify` (patterns that both
formats know as one operator).
"""

from __future__ import annotations

from harness.models.onnx_graph.graph import Graph, Node, TensorType, malformed_is_model_error
from harness.models.onnx_graph.read import read_graph
from harness.models.onnx_graph.simplify import simplify

__all__ = ["Graph", "Node", "TensorType", "malformed_is_model_error", "read_graph", "simplify"]
