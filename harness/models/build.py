"""Building one model file: by a recipe from published weights, by a writer from an ONNX file, or in lower precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness.artifacts import ModelFile, Port
from harness.canonical import digest_of
from harness.errors import ModelError
from harness.models.catalog import WRITERS, ArtifactEntry, ModelEntry
from harness.models.converted import Built, Converted
from harness.models.manifest import Lineage, tool_versions
from harness.models.progress import Progress
from harness.models.quantisation import RECIPES, Calibration, Settings, method, method_digest
from harness.models.recipes import recipe, recipe_digest

__all__ = [
    "Built",
    "build_onnx",
    "built_from",
    "convert_digest",
    "fixed_shapes",
    "lineage_of",
    "needs_calibration",
    "published",
    "quantise",
    "source_of",
    "tool_names",
    "write_from_onnx",
]

WRITER_TOOLS = {
    "tflite_writer": ("ai-edge-litert", "flatbuffers", "numpy", "onnx"),
    "coreml_writer": ("coremltools", "numpy", "onnx"),
}


def tool_names(name: str) -> tuple[str, ...]:
    """Return the distributions that a recipe, a writer or a method of lower precision works with."""
    if name in RECIPES:
        return method(name).tools
    return WRITER_TOOLS[name] if name in WRITER_TOOLS else recipe(name).TOOLS


def source_of(entry: ModelEntry, artifact: ArtifactEntry) -> ArtifactEntry | None:
    """Return the file of the same model that this one is made from; None where it comes from published files."""
    if artifact.recipe is not None and artifact.recipe in RECIPES:
        return entry.artifact(*method(artifact.recipe).source)
    return entry.artifact("onnx", "fp32") if artifact.recipe in WRITERS else None


def published(entry: ModelEntry, artifact: ArtifactEntry) -> ArtifactEntry:
    """Return the artifact at the root: the one that is a published file, or is built from published weights."""
    before = source_of(entry, artifact)
    return artifact if before is None else published(entry, before)


def lineage_of(entry: ModelEntry, artifact: ArtifactEntry, batch: int | None) -> Lineage:
    """Return what decides the bytes of a catalogue model's file, the tools apart."""
    steps = _steps(entry, artifact)
    root = published(entry, artifact)
    sources = [entry.source(name) for name in (root.sources if root.shipped is None else (root.shipped,))]
    if len(sources) == 1:
        source, source_sha256 = sources[0].source, sources[0].sha256
    else:  # seeded weights: the recipe and its parameters are the source
        source, source_sha256 = f"seed:{root.parameters.get('seed')}", steps[0][1]
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


def _steps(entry: ModelEntry, artifact: ArtifactEntry) -> list[tuple[str, str]]:
    """Return the name (with its version) and the digest of every step from the published files to this one."""
    if artifact.recipe is None:
        return []
    before = source_of(entry, artifact)
    if before is None:
        return [_step(artifact)]
    if artifact.recipe in WRITERS:
        own = artifact.recipe, convert_digest(artifact.recipe, artifact.precision)
    else:
        chosen = method(artifact.recipe)
        calibration = _asked(entry) if chosen.calibrated else None
        settings = Settings(artifact.precision, artifact.parameters)
        own = f"{artifact.recipe}/{chosen.version}", method_digest(artifact.recipe, settings, calibration)
    return [*_steps(entry, before), own]


def _asked(entry: ModelEntry) -> dict[str, Any] | None:
    """Return which calibration data are asked for, and how they are prepared."""
    from harness.workloads.definition import load_workloads

    if entry.calibration is None:
        return None
    workload = load_workloads()[entry.calibration.workload]
    return {**asdict(entry.calibration), "task": workload.task, "parameters": dict(workload.parameters)}


def convert_digest(writer: str, precision: str) -> str:
    """Return a writer's identity: its own source code, and the precision it writes."""
    return recipe_digest(writer, _code_digest(writer), {"precision": precision})


def build_onnx(entry: ModelEntry, artifact: ArtifactEntry, sources: Mapping[str, Path]) -> Built:
    """Build an ONNX file by its recipe; `sources` are the published files by name. Raises ModelError."""
    assert artifact.recipe is not None
    require_tools(artifact.recipe, "onnx")
    data = recipe(artifact.recipe).build(sources, artifact.parameters)
    inputs, outputs = (
        tuple(Port(t.role, t.role, t.dtype, t.shape) for t in tensors) for tensors in (entry.inputs, entry.outputs)
    )
    return Built(data, ".onnx", inputs, outputs)


def write_from_onnx(model_format: str, precision: str, onnx: ModelFile, batch: int) -> Built:
    """Write a TFLite or CoreML file from an ONNX file, for one batch. Ports get the ONNX file's roles.

    Raises ModelError that names the package that is missing, or the operator that cannot be written.
    """
    require_tools(f"{model_format}_writer", model_format)
    data, shapes = onnx.path.read_bytes(), fixed_shapes(onnx, batch)
    if model_format == "tflite":
        from harness.models import tflite_writer

        return built_from(tflite_writer.convert(data, batch, shapes), model_format, onnx)
    from harness.models import coreml_writer

    return built_from(coreml_writer.convert(data, batch, shapes, precision=precision), model_format, onnx)


def needs_calibration(artifact: ArtifactEntry) -> bool:
    """Say whether data set the scales of this file."""
    return artifact.recipe is not None and artifact.recipe in RECIPES and method(artifact.recipe).calibrated


def quantise(artifact: ArtifactEntry, source: ModelFile, calibration: Calibration | None, progress: Progress) -> Built:
    """Build a file of lower precision from the file that its recipe starts from.

    Raises ModelError that names the package that is missing, or says what the tool cannot do with this network.
    """
    assert artifact.recipe is not None
    require_tools(artifact.recipe, artifact.format)
    settings = Settings(artifact.precision, artifact.parameters)
    return method(artifact.recipe).build(source, calibration, settings, progress)


def fixed_shapes(onnx: ModelFile, batch: int) -> dict[str, tuple[int, ...]]:
    """Return the inputs' shapes by tensor name, with the batch in the place of 0."""
    return {port.tensor: tuple(size or batch for size in port.shape) for port in onnx.inputs}


def built_from(converted: Converted, model_format: str, onnx: ModelFile) -> Built:
    """Return a converted model with the roles of the ONNX file that it was converted from."""
    inputs, outputs = _with_roles(converted.inputs, onnx.inputs), _with_roles(converted.outputs, onnx.outputs)
    return Built(converted.data, ".tflite" if model_format == "tflite" else ".zip", inputs, outputs)


def require_tools(name: str, model_format: str) -> None:
    """Raise ModelError when a distribution that this recipe or writer works with is not installed."""
    missing = [tool for tool in tool_names(name) if tool_versions((tool,)) is None]
    if missing:
        extra = "quantize" if name in RECIPES else "convert"
        raise ModelError(
            f"A {model_format} file cannot be built here: {', '.join(missing)} is not installed.",
            f"Install weighbridge[{extra}], or copy the cache folder of a machine where `weigh models build` was run.",
        )


def _with_roles(written: tuple[Port, ...], onnx: tuple[Port, ...]) -> tuple[Port, ...]:
    """A writer's port has the ONNX tensor's name as its role; give it the canonical role and order."""
    by_tensor = {port.role: port for port in written}
    ports = []
    for port in onnx:
        found = by_tensor.get(port.tensor)
        if found is None:
            raise ModelError(f"The written model has no tensor for {port.role}.", "Report this fault of the writer.")
        ports.append(Port(port.role, found.tensor, found.dtype, found.shape, found.layout))
    return tuple(ports)


def _step(artifact: ArtifactEntry) -> tuple[str, str]:
    """Return a recipe's name with its version, and its digest."""
    assert artifact.recipe is not None
    version = recipe(artifact.recipe).VERSION
    return f"{artifact.recipe}/{version}", recipe_digest(artifact.recipe, version, artifact.parameters)


@cache
def _code_digest(writer: str) -> str:
    """Return a digest of a writer's source files, so that what an older writer wrote is never taken for the newer's."""
    assert writer in WRITERS
    folder = Path(str(files("harness.models")))
    paths = [path for package in (writer, "onnx_graph") for path in sorted((folder / package).rglob("*.py"))]
    return digest_of({path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths})
