"""Building one file of a catalogue model: by a recipe from published weights, or by a writer from the ONNX file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from harness.artifacts import ModelFile, Port
from harness.canonical import digest_of
from harness.errors import ModelError
from harness.models.catalog import WRITERS, ArtifactEntry, ModelEntry
from harness.models.manifest import Lineage, tool_versions
from harness.models.recipes import recipe, recipe_digest

WRITER_TOOLS = {
    "tflite_writer": ("ai-edge-litert", "flatbuffers", "numpy", "onnx"),
    "coreml_writer": ("coremltools", "numpy", "onnx"),
}


@dataclass(frozen=True)
class Built:
    """A built file's content, with its ports."""

    data: bytes
    suffix: str  # ".zip" for the packed folder of a CoreML package
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


def tools_of(artifact: ArtifactEntry) -> dict[str, str] | None:
    """Return the versions of the tools that build this artifact, None when one is not installed."""
    assert artifact.recipe is not None
    return tool_versions(_tool_names(artifact.recipe))


def lineage_of(entry: ModelEntry, artifact: ArtifactEntry, batch: int | None) -> Lineage:
    """Return what decides the artifact's bytes, the tools apart."""
    assert artifact.recipe is not None
    onnx = entry.artifact("onnx", "fp32")
    steps = [_step(onnx)] if onnx.recipe is not None else []
    if artifact.format != "onnx":
        steps.append(_step(artifact))
    sources = [entry.source(name) for name in (onnx.sources if onnx.shipped is None else (onnx.shipped,))]
    if len(sources) == 1:
        source, source_sha256 = sources[0].source, sources[0].sha256
    else:  # seeded weights: the recipe and its parameters are the source
        source, source_sha256 = f"seed:{onnx.parameters.get('seed')}", steps[0][1]
    return Lineage(
        model=entry.name,
        format=artifact.format,
        precision=artifact.precision,
        batch=batch,
        recipe=" + ".join(name for name, _ in steps),
        recipe_sha256=steps[0][1] if len(steps) == 1 else digest_of([digest for _, digest in steps]),
        source=source,
        source_sha256=source_sha256,
    )


def build_artifact(
    entry: ModelEntry, artifact: ArtifactEntry, sources: Mapping[str, Path], onnx: ModelFile | None, batch: int | None
) -> Built:
    """Build the file. `sources` are the weights by name for an ONNX recipe; `onnx` is what a writer reads.

    Raises ModelError that names the missing package, or the operator that a writer cannot write.
    """
    assert artifact.recipe is not None
    missing = [name for name in _tool_names(artifact.recipe) if tool_versions((name,)) is None]
    if missing:
        raise ModelError(
            f"{entry.name} cannot be built as {artifact.format} here: {', '.join(missing)} is not installed.",
            "Install weighbridge[convert], or copy the cache folder of a machine where `weigh models build` was run.",
        )
    if onnx is None:
        data = recipe(artifact.recipe).build(sources, artifact.parameters)
        inputs, outputs = (
            tuple(Port(t.role, t.role, t.dtype, t.shape) for t in tensors) for tensors in (entry.inputs, entry.outputs)
        )
        return Built(data, ".onnx", inputs, outputs)
    return write_from_onnx(artifact.format, artifact.precision, onnx, batch or 1)


def write_from_onnx(model_format: str, precision: str, onnx: ModelFile, batch: int) -> Built:
    """Write a TFLite or CoreML file from an ONNX file, for one batch. Ports get the ONNX file's roles."""
    shapes = {port.tensor: tuple(size or batch for size in port.shape) for port in onnx.inputs}
    data = onnx.path.read_bytes()
    if model_format == "tflite":
        from harness.models import tflite_writer

        converted = tflite_writer.convert(data, batch, shapes)
        suffix = ".tflite"
    else:
        from harness.models import coreml_writer

        converted = coreml_writer.convert(data, batch, shapes, precision=precision)
        suffix = ".zip"
    return Built(
        converted.data, suffix, _with_roles(converted.inputs, onnx.inputs), _with_roles(converted.outputs, onnx.outputs)
    )


def _with_roles(written: tuple[Port, ...], onnx: tuple[Port, ...]) -> tuple[Port, ...]:
    """A writer's port has the ONNX tensor's name as its role; give it the canonical role and order."""
    by_tensor = {port.role: port for port in written}
    ports = []
    for port in onnx:
        found = by_tensor.get(port.tensor)
        if found is None:
            raise ModelError(
                f"The written model has no tensor for {port.role}.", "Report this: it is a fault of the writer."
            )
        ports.append(Port(port.role, found.tensor, found.dtype, found.shape, found.layout))
    return tuple(ports)


def _step(artifact: ArtifactEntry) -> tuple[str, str]:
    """Return a recipe's name with its version, and its digest."""
    assert artifact.recipe is not None
    parameters = dict(artifact.parameters)
    if artifact.recipe in WRITERS:
        module = import_module(f"harness.models.{artifact.recipe}")
        version = str(module.VERSION)
        parameters["precision"] = artifact.precision
    else:
        version = recipe(artifact.recipe).VERSION
    return f"{artifact.recipe}/{version}", recipe_digest(artifact.recipe, version, parameters)


def _tool_names(name: str) -> tuple[str, ...]:
    return WRITER_TOOLS[name] if name in WRITER_TOOLS else recipe(name).TOOLS
