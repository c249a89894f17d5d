"""The ports of a user's own model file, read from the file itself.

Files are untrusted, and a runtime's native parser may crash on a crafted one, so none is called here: ONNX is read as
protobuf, TFLite through the schema's Python code, OpenVINO IR as XML, CoreML as protobuf by coremltools.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.artifacts import Port
from harness.errors import ModelError
from harness.models.onnx_header import read_onnx_ports

MAX_XML_BYTES = 64 << 20
Ports = tuple[tuple[Port, ...], tuple[Port, ...]]

_IR_DTYPES = {
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "i8": "int8",
    "u8": "uint8",
    "bool": "bool",
    "boolean": "bool",
}


def read_ports(path: Path, model_format: str) -> Ports:
    """Return the inputs and outputs of a model file; roles are the tensors' own names, free sizes are 0.

    Raises ModelError when the file is not of this format, is damaged, or its reader is not installed here.
    """
    readers = {"onnx": _onnx, "tflite": _tflite, "openvino": _openvino, "coreml": _coreml}
    reader = readers.get(model_format)
    if reader is None:
        raise ModelError(f"{model_format!r} is no model format.", f"There are: {', '.join(readers)}.")
    if not path.exists():
        raise ModelError(f"There is no model file {path}.", "Correct the path.")
    try:
        inputs, outputs = reader(path)
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error
    except Exception as error:  # the schemas' readers raise nearly anything on damaged files
        raise ModelError(
            f"{path} is not a {model_format} file that can be read ({error}).", "Is it damaged?"
        ) from error
    if not inputs or not outputs:
        raise ModelError(f"{path} has no inputs or no outputs.", "It is not a model that can be run by itself.")
    return inputs, outputs


def _onnx(path: Path) -> Ports:
    inputs, outputs = read_onnx_ports(path)
    first, second = (
        tuple(Port(p.name, p.name, p.dtype, tuple(size or 0 for size in p.shape)) for p in ports)
        for ports in (inputs, outputs)
    )
    return first, second


def _tflite(path: Path) -> Ports:
    try:
        from ai_edge_litert import schema_py_generated as schema
    except ImportError as error:
        raise ModelError(
            f"The inputs of {path.name} cannot be read here: ai-edge-litert is not installed.",
            "Install weighbridge[tflite], or write the model's inputs and outputs into the workload.",
        ) from error
    data = path.read_bytes()
    if data[4:8] != b"TFL3":
        raise ModelError(f"{path} is not a TFLite file.", "Is it damaged, or of another kind?")
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data))
    graph = model.subgraphs[0]
    kinds = {value: name.lower() for name, value in vars(schema.TensorType).items() if isinstance(value, int)}

    def port(index: int) -> Port:
        tensor = graph.tensors[index]
        shape = tensor.shape if tensor.shapeSignature is None else tensor.shapeSignature
        sizes = tuple(0 if size < 0 else int(size) for size in (() if shape is None else shape))
        name = tensor.name.decode("utf-8")
        return Port(name, name, kinds[tensor.type], sizes)

    return tuple(map(port, graph.inputs)), tuple(map(port, graph.outputs))


def _openvino(path: Path) -> Ports:
    from xml.etree import ElementTree

    if path.stat().st_size > MAX_XML_BYTES:
        raise ModelError(f"{path} is larger than {MAX_XML_BYTES} bytes, which no OpenVINO IR is.")
    text = path.read_bytes().decode("utf-8")  # in another encoding, an entity would pass unseen
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ModelError(f"{path} is refused: an OpenVINO IR declares no document type and no entities.")
    root = ElementTree.fromstring(text)  # noqa: S314 - no entities, as checked above
    names = {
        (layer.get("id"), port.get("id")): port.get("names", "").split(",")[0]
        for layer in root.iterfind("./layers/layer")
        for port in layer.iterfind("./output/port")
    }
    feeding = {e.get("to-layer"): (e.get("from-layer"), e.get("from-port")) for e in root.iterfind("./edges/edge")}
    found: dict[str, list[Port]] = {"Parameter": [], "Result": []}
    for layer in root.iterfind("./layers/layer"):
        kind, number = layer.get("type", ""), layer.get("id")
        if kind in found:
            side = layer.find("./output/port" if kind == "Parameter" else "./input/port")
            if side is None:
                raise ModelError(f"{path} has a {kind} without a port.")
            name = names.get((number, side.get("id")) if kind == "Parameter" else feeding.get(number, ("", "")), "")
            name = name or layer.get("name", "")
            element = side.get("precision", "").lower().replace("fp", "f")
            if element not in _IR_DTYPES:
                raise ModelError(f"{path} has {name!r} with the element type {element!r}, which is not supported.")
            sizes = tuple(max(int(dim.text or 0), 0) for dim in side.iterfind("dim"))
            found[kind].append(Port(name, name, _IR_DTYPES[element], sizes))
    return tuple(found["Parameter"]), tuple(found["Result"])


def _coreml(path: Path) -> Ports:
    try:
        import coremltools
    except ImportError as error:
        raise ModelError(
            f"The inputs of {path.name} cannot be read here: coremltools is not installed.",
            "Install weighbridge[coreml], or write the model's inputs and outputs into the workload.",
        ) from error
    description = coremltools.utils.load_spec(str(path)).description
    kinds = {65568: "float32", 65600: "float64", 131104: "int32", 65552: "float16"}

    def port(feature: Any) -> Port:
        kind = feature.type.WhichOneof("Type")
        if kind != "multiArrayType":
            raise ModelError(
                f"{path.name} has {feature.name!r} as a {kind}, and only arrays are supported.",
                "Convert the model with array inputs (coremltools' TensorType).",
            )
        array = feature.type.multiArrayType
        return Port(
            feature.name, feature.name, kinds.get(array.dataType, "float32"), tuple(int(n) for n in array.shape)
        )

    return tuple(map(port, description.input)), tuple(map(port, description.output))
