"""Writes an ONNX network as a TFLite file, without torch and without tensorflow.

The file's layout is TFLite's own: pictures and feature maps are NHWC where ONNX has NCHW, and the ports say so. Activations
and paddings are fused so that LiteRT's XNNPACK delegate takes every float operator it knows; what that share is for a net,
the backend's report tells.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.models.converted import Converted


def convert(onnx_bytes: bytes, batch: int = 1, input_shapes: Mapping[str, tuple[int, ...]] | None = None) -> Converted:
    """The network for one batch size and fixed input shapes, float32 with int64 narrowed to int32.

    `input_shapes` pins inputs by name (ONNX order, NCHW; 0 stands for the batch). The same arguments give the same
    bytes. ModelError names an operator and node that cannot be written.
    """
    from harness.models.onnx_graph import malformed_is_model_error, read_graph, simplify
    from harness.models.tflite_writer.fusion import fuse_for_tflite
    from harness.models.tflite_writer.writer import write

    graph = read_graph(onnx_bytes, batch, input_shapes)
    with malformed_is_model_error():
        simplify(graph)
        fuse_for_tflite(graph)
        return write(graph)


__all__ = ["Converted", "convert"]
