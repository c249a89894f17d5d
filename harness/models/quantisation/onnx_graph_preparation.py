"""Making an ONNX file ready for onnxruntime's quantisers, and its result the same bytes every time."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from harness.artifacts import ModelFile
from harness.errors import ModelError
from harness.models.onnx_graph.read import parse_model

OPSET = 17  # the recipes' own; scales per channel need 13 or newer
LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN")  # operators that hold weights


def prepared(source: ModelFile, folder: Path) -> Any:
    """Return the network as onnx.ModelProto: in a new enough opset, its constants folded, its shapes inferred.

    Every weight's name gets the ending ":w". onnxruntime 1.32 counts up the name of a bias that several layers share, and
    may hit that of another tensor ("conv1d_25" and "2" is also "conv1d_252"), which breaks the network.
    """
    import onnx
    from onnx import version_converter
    from onnxruntime.quantization.shape_inference import quant_pre_process

    model = parse_model(source.path.read_bytes())  # untrusted; never follows it to other files
    if _opset(model) < OPSET:
        model = version_converter.convert_version(model, OPSET)
    _name_nodes(model)
    names = {weight.name: f"{weight.name}:w" for weight in model.graph.initializer}
    for weight in model.graph.initializer:
        weight.name = names[weight.name]
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    given, ready = folder / "given.onnx", folder / "ready.onnx"
    onnx.save(model, str(given))
    with silenced():
        quant_pre_process(str(given), str(ready), skip_symbolic_shape=True)
    model = onnx.load(str(ready))
    _name_nodes(model)
    return model


def serialised(model: Any) -> bytes:
    """Return a network's bytes: without what only says who wrote it, and without operator sets that no node uses."""
    used = {node.domain for node in model.graph.node} | {function.domain for function in model.functions} | {""}
    kept = [opset for opset in model.opset_import if opset.domain in used]
    del model.opset_import[:]
    model.opset_import.extend(sorted(kept, key=lambda opset: opset.domain))
    del model.metadata_props[:]
    del model.graph.value_info[:]  # intermediate shapes: every runtime infers them anew
    model.producer_name, model.producer_version, model.doc_string = "weighbridge", "", ""
    return bytes(model.SerializeToString(deterministic=True))


def end_layers(model: Any, without: Collection[str] = ()) -> tuple[str, ...]:
    """Return the nodes of the first and the last layers with weights (some left out), in the graph's order.

    First is a layer where every way from an input to it meets no other such layer; last one from which a way to an output
    exists and every way to that output meets no other. So the residual paths of a transformer or ResNet
    do not make every layer an end, and of a network with several heads each has its own.
    """
    weights = {weight.name for weight in model.graph.initializer}
    nodes = [
        node
        for node in model.graph.node
        if node.op_type in LAYERS and node.name not in without and any(name in weights for name in node.input)
    ]
    layers = {id(node) for node in nodes}
    first = {name for name, depth in _depths(list(model.graph.node), layers, None).items() if depth == 1}
    last: set[str] = set()
    for output in model.graph.output:
        depths = _depths(list(reversed(model.graph.node)), layers, output.name)
        last |= {name for name, depth in depths.items() if depth == 1}
    return tuple(node.name for node in nodes if node.name in first | last)


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Keep what onnxruntime's tools print and log away from the user's terminal."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", RuntimeWarning
            )  # numpy's, where a range is no number: said as an error later
            yield
    finally:
        logging.disable(level)


def refused(name: str, precision: str, error: Exception) -> ModelError:
    """Return one sentence for what a quantiser of onnxruntime cannot do with a network."""
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ModelError(f"onnxruntime's tools cannot write {name} in {precision}: {first[:300]}")


def _depths(nodes: list[Any], layers: set[int], output: str | None) -> dict[str, int]:
    """Return, for each layer, the most layers that a way from the inputs to it meets, itself included.

    With an `output`, `nodes` come in reverse order, and ways go from that output backwards.
    """
    at: dict[str, int] = {} if output is None else {output: 0}  # tensor -> most layers met on the way to it
    found: dict[str, int] = {}
    for node in nodes:
        entering, leaving = (node.input, node.output) if output is None else (node.output, node.input)
        met = [at[name] for name in entering if name in at]
        if output is not None and not met:
            continue  # leads to another output
        depth = max(met, default=0)
        if id(node) in layers:
            depth += 1
            found[node.name] = depth
        for name in leaving:
            at[name] = max(at.get(name, 0), depth)
    return found


def _name_nodes(model: Any) -> None:
    """Give every node a name of its own, by which it can be kept in float."""
    seen: set[str] = set()
    for index, node in enumerate(model.graph.node):
        if not node.name or node.name in seen:
            node.name = f"{node.op_type}_{index}"
        seen.add(node.name)


def _opset(model: Any) -> int:
    return next((int(opset.version) for opset in model.opset_import if opset.domain in ("", "ai.onnx")), 1)
