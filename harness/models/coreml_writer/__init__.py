"""Writes an ONNX network as a Core ML package (an ML Program for iOS 16, macOS 13 and newer), without torch, on any system.

Only macOS can run the result; writing it, and reading its specification back, works everywhere. Tensors keep ONNX's NCHW.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.models.converted import Converted


def convert(
    onnx_bytes: bytes,
    batch: int = 1,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    precision: str = "fp32",
) -> Converted:
    """The network for one batch size and fixed input shapes, as the bytes of a zip of the .mlpackage folder.

    `precision` is that of weights and computation, fp32 or fp16; inputs and outputs are float32 in both (int64 becomes
    int32). `input_shapes` pins inputs by name; 0 stands for the batch. The same arguments give the same bytes.
    ModelError names an operator and node that cannot be written.
    """
    from harness.errors import UsageError
    from harness.models.coreml_writer.package import pack_program
    from harness.models.coreml_writer.program import build_program
    from harness.models.onnx_graph import malformed_is_model_error, read_graph, simplify

    if precision not in ("fp32", "fp16"):
        raise UsageError(f"Core ML packages are written in fp32 or fp16, not in '{precision}'.")
    graph = read_graph(onnx_bytes, batch, input_shapes)
    with malformed_is_model_error():
        simplify(graph)
    program, inputs, outputs = build_program(graph)
    return Converted(pack_program(program, precision, inputs, outputs), inputs, outputs)


__all__ = ["Converted", "convert"]
