"""Converts one ONNX file through torch: `python -I convert_onnx.py REQUEST.json` in an environment that has torch.

Nothing of Weighbridge is importable there. REQUEST.json: {"format": "tflite" | "coreml", "precision", "model", "output",
"result", "inputs": [{"name", "dtype", "shape"}], "outputs": [name]}. The answer goes to the file "result", written
whole or not at all: {"inputs": [name], "outputs": [name], "tools": {distribution: version}} with names in the order of the
request, or {"error": text}.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
from typing import Any


def main(request_path: str) -> int:
    """Do what the request says and answer. The exit status is 0 even for a refusal, which is an answer too."""
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    try:
        answer = convert(request)
    except ImportError as error:
        answer = {"error": f"its environment lacks the package {error.name or error}"}
    except Exception as error:
        lines = str(error).strip().splitlines()
        answer = {"error": f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"}
    partial = request["result"] + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(answer, file)
    os.replace(partial, request["result"])
    return 0


def convert(request: dict[str, Any]) -> dict[str, Any]:
    """ONNX to a torch module, and that to the wanted format."""
    torch = importlib.import_module("torch")
    module = torch_module(request)
    examples = tuple(torch.zeros(item["shape"], dtype=getattr(torch, item["dtype"])) for item in request["inputs"])
    # A net's output may depend on inputs by position only; zeros trace the same graph as data would.
    writer = {"tflite": to_tflite, "coreml": to_coreml}[request["format"]]
    inputs, outputs = writer(module, examples, request)
    names = ("torch", "onnx", "onnx2torch", "litert-torch" if request["format"] == "tflite" else "coremltools")
    return {"inputs": inputs, "outputs": outputs, "tools": {name: importlib.metadata.version(name) for name in names}}


def torch_module(request: dict[str, Any]) -> Any:
    """The network as a torch module in inference mode, with the request's shapes written into the graph first."""
    onnx = importlib.import_module("onnx")
    model = onnx.load(request["model"])
    shapes = {item["name"]: item["shape"] for item in request["inputs"]}
    weights = {item.name for item in model.graph.initializer}
    for value in [v for v in model.graph.input if v.name not in weights]:
        dims = value.type.tensor_type.shape.dim
        for dim, size in zip(dims, shapes[value.name], strict=True):
            dim.dim_value = size
    del model.graph.value_info[:]
    if min(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")) < 13:
        model = importlib.import_module("onnx.version_converter").convert_version(model, 13)
    return importlib.import_module("onnx2torch").convert(model).eval()


def to_tflite(module: Any, examples: tuple[Any, ...], request: dict[str, Any]) -> tuple[list[str], list[str]]:
    """By litert-torch. Its signature says args_0, args_1, ... and output_0, ...; the tensors have other names again."""
    if request["precision"] != "fp32":
        raise ValueError(f"this way writes TFLite files in fp32, not {request['precision']}")
    edge = importlib.import_module("litert_torch").convert(module, examples)
    edge.export(request["output"])
    schema = importlib.import_module("ai_edge_litert.schema_py_generated")
    with open(request["output"], "rb") as file:
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(file.read()))
    signature, tensors = model.signatureDefs[0], model.subgraphs[0].tensors

    def tensor_names(entries: Any, prefix: str, count: int) -> list[str]:
        by_name = {entry.name.decode(): tensors[entry.tensorIndex].name.decode() for entry in entries}
        return [by_name[f"{prefix}_{index}"] for index in range(count)]

    inputs = tensor_names(signature.inputs, "args", len(examples))
    return inputs, tensor_names(signature.outputs, "output", len(request["outputs"]))


def to_coreml(module: Any, examples: tuple[Any, ...], request: dict[str, Any]) -> tuple[list[str], list[str]]:
    """By coremltools from a trace, for iOS 16 and macOS 13 as Weighbridge's own writer."""
    torch, tools = importlib.import_module("torch"), importlib.import_module("coremltools")
    numpy = importlib.import_module("numpy")
    traced = torch.jit.trace(module, examples)
    inputs = [f"input_{index}" for index in range(len(examples))]
    outputs = [f"output_{index}" for index in range(len(request["outputs"]))]
    dtypes = {"float32": numpy.float32, "int64": numpy.int32, "int32": numpy.int32}
    model = tools.convert(
        traced,
        inputs=[
            tools.TensorType(name=name, shape=item["shape"], dtype=dtypes[item["dtype"]])
            for name, item in zip(inputs, request["inputs"], strict=True)
        ],
        outputs=[tools.TensorType(name=name) for name in outputs],
        convert_to="mlprogram",
        minimum_deployment_target=tools.target.iOS16,
        compute_precision=tools.precision.FLOAT16 if request["precision"] == "fp16" else tools.precision.FLOAT32,
        skip_model_load=True,
    )
    model.save(request["output"])
    return inputs, outputs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
