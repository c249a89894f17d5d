"""Reads ONNX bytes into a `Graph`: pins the input shapes, infers each node's shape, computes what is constant.

A user's file is untrusted: its size, its node count and the size of every computed constant are bounded, data outside the
file is not followed, and nothing in it is executed but ONNX's own reference operators on constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.artifacts import Port
from harness.errors import ModelError
from harness.models.onnx_graph.graph import (
    TORCH_ROUTE_FIX,
    Array,
    Graph,
    Node,
    TensorType,
    malformed_is_model_error,
)

MAX_FILE_BYTES = 2**31 - 1  # protobuf's own limit
MAX_NODES = 50_000
MAX_CONSTANT_BYTES = 2**29  # one computed constant; the largest real one here is MiniLM's 47 MB embedding

# Never computed here: what is not determined by its inputs, and what may run for ever.
_NOT_COMPUTED = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
    | {"If", "Loop", "Scan", "SequenceMap"}
)


def parse_model(onnx_bytes: bytes) -> Any:
    """The ModelProto of untrusted bytes; ModelError where they are none, or where weights lie outside."""
    try:
        import onnx
    except ImportError as error:
        raise ModelError(
            "Reading an ONNX file needs the package onnx, which is not installed.",
            "Install it with `pip install 'weighbridge[convert]'`.",
        ) from error
    if len(onnx_bytes) > MAX_FILE_BYTES:
        raise ModelError(f"The ONNX file has {len(onnx_bytes)} bytes; protobuf ends at {MAX_FILE_BYTES}.")
    try:
        model = onnx.load_model_from_string(onnx_bytes)
    except Exception as error:  # protobuf's DecodeError is not importable the same way in all its versions
        raise ModelError(
            "The file is not an ONNX model: its bytes do not parse.",
            "Check that it was downloaded whole, and that it is not a pointer file of Git LFS.",
        ) from error
    if not model.graph.node or not model.graph.output:
        raise ModelError("The file is not an ONNX model: it has no operators or no outputs.", "Check the file.")
    if len(model.graph.node) > MAX_NODES:
        raise ModelError(f"The ONNX graph has {len(model.graph.node)} nodes; at most {MAX_NODES} are read.")
    for initializer in model.graph.initializer:
        if initializer.data_location == onnx.TensorProto.EXTERNAL:
            raise ModelError(
                f"The ONNX model keeps its weight '{initializer.name}' in another file.",
                "Save it as one file: onnx.save(onnx.load(path), new_path, save_as_external_data=False).",
            )
    return model


def read_graph(onnx_bytes: bytes, batch: int, input_shapes: Mapping[str, tuple[int, ...]] | None = None) -> Graph:
    """The network with every shape fixed.

    `input_shapes` pins inputs by name, overriding what the file says; a 0 in it, and an unknown first dimension of other
    inputs, become `batch`. Other unknown dimensions raise a ModelError that names the input.
    """
    model = parse_model(onnx_bytes)
    from onnx import numpy_helper

    opsets = {entry.domain: entry.version for entry in model.opset_import}
    try:
        constants = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    except Exception as error:
        raise ModelError(f"A weight of the ONNX model cannot be read: {error}.", "Check the file.") from error
    types = {name: TensorType(value.dtype, tuple(value.shape)) for name, value in constants.items()}

    with malformed_is_model_error():
        pinned = _pin_inputs(model, set(constants), batch, input_shapes or {})
    types.update(pinned)
    inputs = list(pinned)

    graph = Graph([], constants, types, inputs, [value.name for value in model.graph.output])
    folder = _Folder(graph, model, opsets)
    with malformed_is_model_error():
        for index, proto in enumerate(model.graph.node):
            folder.take(proto, index)
    for name in graph.outputs:
        if name in graph.constants:
            raise ModelError(f"Output '{name}' of the ONNX model is a constant.", TORCH_ROUTE_FIX)
        if name not in graph.types:
            raise ModelError(f"Output '{name}' of the ONNX model is computed by no node.", "Check the file.")
    graph.drop_unused()
    return graph


def read_ends(
    onnx_bytes: bytes, batch: int, input_shapes: Mapping[str, tuple[int, ...]]
) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Only the inputs, pinned as `read_graph` does, and the outputs, 0 for a size that the graph alone does not tell."""
    import onnx
    from onnx import helper

    model = parse_model(onnx_bytes)
    with malformed_is_model_error():
        pinned = _pin_inputs(model, {item.name for item in model.graph.initializer}, batch, input_shapes)
    for value in model.graph.input:
        if value.name in pinned:
            value.CopyFrom(_value_info(value.name, pinned[value.name]))
    del model.graph.value_info[:]
    for value in model.graph.output:  # what the file says may belong to other input shapes
        value.type.tensor_type.ClearField("shape")
    try:
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:
        raise ModelError(f"The shapes of the ONNX model do not fit: {error}.", "Check the input shapes.") from error
    outputs = []
    for value in model.graph.output:
        tensor = value.type.tensor_type
        shape = tuple(dim.dim_value if dim.HasField("dim_value") else 0 for dim in tensor.shape.dim)
        dtype = str(np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)))
        outputs.append(Port(value.name, value.name, dtype, shape))
    return tuple(Port(name, name, str(known.dtype), known.shape) for name, known in pinned.items()), tuple(outputs)


def _value_info(name: str, known: TensorType) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(known.dtype), known.shape)


def _pin_inputs(
    model: Any, weights: set[str], batch: int, input_shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, TensorType]:
    """The type of every input in order, weights (which IR versions below 4 list among them) left out."""
    if batch < 1:
        raise ModelError(f"A model cannot be made for a batch of {batch}.", "Ask for a batch of 1 or more.")
    ports = {value.name: value for value in model.graph.input if value.name not in weights}
    stray = next((name for name in input_shapes if name not in ports), None)
    if stray is not None:
        raise ModelError(
            f"A shape is given for input '{stray}', which the model has not.", f"Its inputs are: {', '.join(ports)}."
        )
    return {name: _input_type(value, batch, input_shapes.get(name)) for name, value in ports.items()}


def _input_type(value: Any, batch: int, pinned: tuple[int, ...] | None) -> TensorType:
    """The type of a graph input with all dimensions known."""
    from onnx import helper

    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.elem_type:
        raise ModelError(f"Input '{value.name}' of the ONNX model is not a tensor.", TORCH_ROUTE_FIX)
    dims = [d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else 0 for d in tensor.shape.dim]
    if pinned is not None:
        if tensor.HasField("shape") and len(pinned) != len(dims):
            raise ModelError(
                f"Input '{value.name}' has {len(dims)} dimensions, the shape that is given for it {len(pinned)}.",
                "Give one size per dimension.",
            )
        shape = tuple(size or batch for size in pinned)
    else:
        if not tensor.HasField("shape"):
            raise ModelError(
                f"Input '{value.name}' of the ONNX model has no shape.",
                "Give the input's shape, for example in the suite file.",
            )
        if dims and not dims[0]:
            dims[0] = batch
        if 0 in dims:
            raise ModelError(
                f"Input '{value.name}' of the ONNX model has an open size in dimension {dims.index(0)}.",
                "Give the input's shape, for example in the suite file.",
            )
        shape = tuple(dims)
    return TensorType(np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)), shape)


class _Folder:
    """Takes the nodes one by one: computes the constant ones, infers types for the rest."""

    def __init__(self, graph: Graph, model: Any, opsets: dict[str, int]) -> None:
        self.graph = graph
        self.model = model
        self.opsets = opsets

    def take(self, proto: Any, index: int) -> None:
        from onnx import helper

        domain = "" if proto.domain == "ai.onnx" else proto.domain
        opset = self.opsets.get(domain, self.opsets.get("ai.onnx", 0) if not domain else 0)
        name = proto.name or f"{proto.op_type}_{index}"  # PyTorch's older exporters leave nodes unnamed
        attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}
        node = Node(proto.op_type, name, list(proto.input), list(proto.output), attributes, opset)
        if domain:
            raise node.refuse(f"it is of the domain '{domain}', not a standard ONNX operator")
        for needed in node.inputs:
            if needed and needed not in self.graph.types:
                raise ModelError(
                    f"Node '{name}' reads '{needed}', which nothing before it computes.", "Check the file."
                )

        graph = self.graph
        if node.op == "Shape":
            shape = graph.types[node.inputs[0]].shape
            start, end = attributes.get("start", 0), attributes.get("end", len(shape))
            return self._store(node, [np.array(shape[start:end], dtype=np.int64)])
        if node.op == "Size":
            return self._store(node, [np.array(graph.types[node.inputs[0]].elements, dtype=np.int64)])
        constant = all(not value or value in graph.constants for value in node.inputs)
        constant = constant and node.op not in _NOT_COMPUTED
        if constant and node.op == "NonZero":  # its size depends on the data, and is bounded by them
            return self._store(node, self._evaluate(proto, node))
        self._infer(proto, node)
        if constant:
            for output in node.outputs:
                if output and graph.types[output].elements * graph.types[output].dtype.itemsize > MAX_CONSTANT_BYTES:
                    raise node.refuse("it computes a constant of more than 512 MB")
            return self._store(node, self._evaluate(proto, node))
        graph.nodes.append(node)
        return None

    def _store(self, node: Node, values: list[Array]) -> None:
        for name, value in zip(node.outputs, values, strict=False):
            if name:
                array = np.asarray(value)
                self.graph.constants[name] = array
                self.graph.types[name] = TensorType(array.dtype, tuple(array.shape))

    def _evaluate(self, proto: Any, node: Node) -> list[Array]:
        """Run one node on constants with ONNX's reference implementation."""
        from onnx import helper
        from onnx.reference import ReferenceEvaluator

        names = [value for value in dict.fromkeys(node.inputs) if value]
        nothing = [helper.make_tensor_value_info(value, 0, None) for value in names]
        outputs = [helper.make_tensor_value_info(value, 0, None) for value in node.outputs if value]
        graph = helper.make_graph([proto], "constant", nothing, outputs)
        model = helper.make_model(graph, opset_imports=list(self.model.opset_import))
        feeds = {value: self.graph.constants[value] for value in names}
        try:
            return [np.asarray(value) for value in ReferenceEvaluator(model).run(None, feeds)]
        except Exception as error:
            raise node.refuse(f"its constant value cannot be computed ({error})") from error

    def _infer(self, proto: Any, node: Node) -> None:
        """Set the types of a node's outputs; all their sizes must be known."""
        import onnx
        from onnx import helper, numpy_helper, shape_inference

        graph = self.graph
        types, data = {}, {}
        for name in node.inputs:
            if not name:
                continue
            known = graph.types[name]
            types[name] = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(known.dtype), known.shape)
            # Shapes, axes, sizes: what shape inference may look at. Never the weights.
            if name in graph.constants and known.elements <= 4096:
                data[name] = numpy_helper.from_array(graph.constants[name], name)
        try:
            schema = onnx.defs.get_schema(node.op, node.opset, "")
            found = shape_inference.infer_node_outputs(
                schema,
                proto,
                types,
                data,
                opset_imports=list(self.model.opset_import),
                ir_version=self.model.ir_version,
            )
        except Exception as error:
            reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
            raise node.refuse(f"its shapes do not fit ({reason})") from error
        for name in node.outputs:
            if not name:
                continue
            tensor = found[name].tensor_type if name in found else None
            if (
                tensor is None
                or not tensor.HasField("shape")
                or any(not d.HasField("dim_value") for d in tensor.shape.dim)
            ):
                raise node.refuse("the shape of its output depends on the data, not only on the inputs' shapes")
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
            graph.types[name] = TensorType(dtype, tuple(d.dim_value for d in tensor.shape.dim))
