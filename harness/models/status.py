"""What the catalogue's models exist as, and what of it is in the cache. Nothing is fetched, nothing built."""

from __future__ import annotations

from dataclasses import dataclass

from harness.models.build import lineage_of, needs_calibration, tool_names
from harness.models.cache import Cache
from harness.models.catalog import ArtifactEntry, ModelEntry
from harness.models.manifest import Manifest, find_manifest, tool_versions
from harness.models.sources import parse_source, suffix_of

SUFFIXES = {"onnx": "onnx", "openvino": "xml", "tflite": "tflite", "coreml": "mlpackage"}
ANY_BATCH = ("onnx", "openvino")  # formats whose files are not made for one batch


@dataclass(frozen=True)
class FormatStatus:
    """One format and precision in which a model exists."""

    model: str
    format: str
    precision: str
    origin: str  # "shipped": a published file as it is; "built": written here by a recipe; "file": the user's own
    source: str | None
    licence: str | None
    bytes: int | None  # None: not built yet, so not known
    sha256: str | None
    cached: bool
    reason: str | None = None  # why it cannot be had here as things are; None: it can, as far as is known
    recipe: str | None = None
    calibration: str | None = None  # the data that set its scales: name@digest, or what will be used; None: none needed
    calibration_samples: int | None = None


def status_of(cache: Cache, entry: ModelEntry, artifact: ArtifactEntry) -> FormatStatus:
    """Return how a model exists in one format and precision."""
    common = (entry.name, artifact.format, artifact.precision)
    if artifact.shipped is not None:
        source = entry.source(artifact.shipped)
        held = cache.holds(source.sha256, source.bytes, suffix_of(parse_source(source.source)))
        licence = source.licence or entry.licence
        return FormatStatus(*common, "shipped", source.source, licence, source.bytes, source.sha256, held)
    lineage = lineage_of(entry, artifact, made_for(artifact, 1))
    assert artifact.recipe is not None
    found = find_manifest(cache, lineage, tool_versions(tool_names(artifact.recipe)))
    held = found is not None and cache.holds(found.sha256, found.bytes, found.suffix)
    missing = [tool for tool in tool_names(artifact.recipe) if tool_versions((tool,)) is None]
    return FormatStatus(
        *common,
        "built",
        lineage.source,
        entry.licence,
        found.bytes if found is not None else None,
        found.sha256 if found is not None else None,
        held,
        f"{', '.join(missing)} is not installed" if missing and not held else None,
        artifact.recipe,
        *_calibration_of(entry, artifact, found),
    )


def made_for(artifact: ArtifactEntry, batch: int) -> int | None:
    """Return the batch that a built file is made for when `batch` is asked for; None: any."""
    return artifact.batch if artifact.format in ANY_BATCH else artifact.batch or batch


def file_name(entry: ModelEntry, artifact: ArtifactEntry, batch: int | None) -> str:
    """Return a built file's name, for people."""
    precision = "" if artifact.precision == "fp32" else f"-{artifact.precision}"
    ending = "" if batch is None else f"-b{batch}"
    return f"{entry.name}{precision}{ending}.{SUFFIXES[artifact.format]}"


def _calibration_of(
    entry: ModelEntry, artifact: ArtifactEntry, found: Manifest | None
) -> tuple[str | None, int | None]:
    """Return the identity and the number of samples that set the scales of a file, or will set them."""
    if found is not None and found.calibration is not None:
        return found.calibration.identity, found.calibration.samples
    if found is not None or entry.calibration is None or not needs_calibration(artifact):
        return None, None
    return f"{entry.calibration.dataset}@{entry.calibration.digest}", entry.calibration.samples
