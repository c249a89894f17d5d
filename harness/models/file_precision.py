"""The precision of a user's own model file, from its weights: what `weigh run model.onnx` may call it and ask for."""

from __future__ import annotations

from pathlib import Path

QUANTISED_WEIGHTS = ("INT4", "INT8", "UINT8")  # of TFLite's TensorType
FLOAT_WEIGHTS = {"FLOAT16": "fp16", "FLOAT32": "fp32", "FLOAT64": "fp64", "BFLOAT16": "bf16"}


def file_precision(path: Path, model_format: str) -> str | None:
    """Return int8 for a quantised file, fp32, fp16, fp64 or bf16 by its weights, "mixed" where those differ.

    None where there are no such weights, or where this format's weights are not looked at. Never raises: whether the
    file can be read at all is said by `harness.models.inspection`.
    """
    if model_format == "onnx":
        from backends.onnxruntime.graph import read_graph

        graph = read_graph(path)
        return graph.precision if graph is not None else None
    return _tflite(path) if model_format == "tflite" else None


def _tflite(path: Path) -> str | None:
    try:
        from ai_edge_litert import schema_py_generated as schema

        names = {value: name for name, value in vars(schema.TensorType).items() if isinstance(value, int)}
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes()))
        weights = [
            tensor
            for graph in model.subgraphs
            for tensor in graph.tensors
            if model.buffers[tensor.buffer].data is not None
        ]
        quantised = any(
            names[tensor.type] in QUANTISED_WEIGHTS and tensor.quantization and tensor.quantization.scale is not None
            for tensor in weights
        )
        floats = {FLOAT_WEIGHTS[names[tensor.type]] for tensor in weights if names[tensor.type] in FLOAT_WEIGHTS}
    except Exception:  # the schema's code raises nearly anything on damaged files
        return None
    if quantised:
        return "int8"
    if len(floats) == 1:
        return floats.pop()
    return "mixed" if floats else None
