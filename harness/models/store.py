"""The store of model files: `ensure` gives a file that is ready to load, fetching and building it first where needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts import ModelFile, Port
from harness.models.build import Built, build_artifact, lineage_of, tools_of
from harness.models.cache import Cache, DamagedFileError
from harness.models.catalog import ArtifactEntry, ModelEntry, find_model
from harness.models.manifest import Manifest, find_manifest, write_manifest
from harness.models.progress import Progress, SilentProgress
from harness.models.sources import Pinned, fetch_all, parse_source
from harness.models.unpacked import unpacked_folder
from harness.models.user_model import UserModel
from harness.records import Artifact

__all__ = ["FormatStatus", "ModelStore", "UserModel"]


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
    reason: str | None = None  # why it cannot be had here, where that is known


class ModelStore:
    """Model files below one cache folder.

    `offline` rules fetching out: what is cached, or can be built from what is cached, is still given.
    """

    def __init__(self, cache: Path, offline: bool = False, progress: Progress | None = None) -> None:
        self.cache = Cache(cache)
        self.offline = offline
        self.progress: Progress = progress or SilentProgress()

    def ensure(self, model: str | UserModel, model_format: str, precision: str = "fp32", batch: int = 1) -> ModelFile:
        """Return the model's file in this format and precision, made for `batch` samples at once or for any number.

        Raises ModelError (UsageError for an unknown name) when it does not exist so, cannot be fetched, or cannot be built.
        """
        if isinstance(model, UserModel):
            raise NotImplementedError
        entry = find_model(model)
        artifact = entry.artifact(model_format, precision)
        if artifact.shipped is not None:
            return self._shipped(entry, artifact)
        return self._built(entry, artifact, batch)

    def prefetch(self, wanted: Iterable[tuple[str, str, str]]) -> None:
        """Fetch what these (model, format, precision) need and is not there, with one call of pip. See `ensure`."""
        pins: dict[Pinned, None] = {}
        for name, model_format, precision in wanted:
            entry = find_model(name)
            pins.update(dict.fromkeys(self._pins(entry, entry.artifact(model_format, precision))))
        fetch_all(list(pins), self.cache, self.offline, self.progress)

    def source_file(self, model: str, name: str) -> Path:
        """Return one of a model's published files, such as a tokenizer, fetching it where needed."""
        source = find_model(model).source(name)
        return fetch_all([Pinned(source.source, source.sha256, source.bytes)], self.cache, self.offline, self.progress)[
            0
        ]

    def _shipped(self, entry: ModelEntry, artifact: ArtifactEntry) -> ModelFile:
        assert artifact.shipped is not None
        source = entry.source(artifact.shipped)
        path = fetch_all(self._pins(entry, artifact), self.cache, self.offline, self.progress)[0]
        if path.suffix == ".zip":
            path = unpacked_folder(self.cache, path, source.sha256, Path(parse_source(source.source).name).suffix)
        inputs, outputs = (
            tuple(Port(t.role, artifact.tensors[t.role], t.dtype, t.shape) for t in tensors)
            for tensors in (entry.inputs, entry.outputs)
        )
        record = Artifact(
            format=artifact.format,
            precision=artifact.precision,
            sha256=source.sha256,
            bytes=source.bytes,
            name=parse_source(source.source).name,
            source=source.source,
            source_sha256=source.sha256,
            licence=source.licence or entry.licence,
        )
        return ModelFile(record, path, inputs, outputs, artifact.batch)

    def _built(self, entry: ModelEntry, artifact: ArtifactEntry, batch: int) -> ModelFile:
        made_for = None if artifact.format == "onnx" else batch
        lineage = lineage_of(entry, artifact, made_for)
        tools = tools_of(artifact)
        found = self._cached(find_manifest(self.cache, lineage, tools))
        if found is None:
            with self.cache.lock(f"build-{entry.name}-{artifact.format}-{artifact.precision}"):
                found = self._cached(find_manifest(self.cache, lineage, tools)) or self._build(
                    entry, artifact, made_for
                )
        manifest, path = found
        record = Artifact(
            format=artifact.format,
            precision=artifact.precision,
            sha256=manifest.sha256,
            bytes=manifest.bytes,
            name=f"{entry.name}{'' if made_for is None else f'-b{made_for}'}.{_SUFFIX_NAMES[artifact.format]}",
            source=lineage.source,
            source_sha256=lineage.source_sha256,
            recipe=lineage.recipe,
            recipe_sha256=lineage.recipe_sha256,
            tools=dict(manifest.tools),
            licence=entry.licence,
        )
        return ModelFile(record, path, manifest.inputs, manifest.outputs, made_for)

    def _build(self, entry: ModelEntry, artifact: ArtifactEntry, batch: int | None) -> tuple[Manifest, Path]:
        lineage = lineage_of(entry, artifact, batch)
        onnx = None if artifact.format == "onnx" else self.ensure(entry.name, "onnx", "fp32")
        paths = fetch_all(self._pins(entry, artifact), self.cache, self.offline, self.progress) if onnx is None else []
        tools = tools_of(artifact)
        with self.progress.step(f"Building {entry.name} as {artifact.format} {artifact.precision}", None):
            built: Built = build_artifact(
                entry, artifact, dict(zip(artifact.sources, paths, strict=False)), onnx, batch
            )
        sha256, path = self.cache.add_bytes(built.data, built.suffix)
        manifest = Manifest(lineage, tools or {}, sha256, len(built.data), built.suffix, built.inputs, built.outputs)
        write_manifest(self.cache, manifest)
        return manifest, self._ready(manifest, path)

    def _cached(self, manifest: Manifest | None) -> tuple[Manifest, Path] | None:
        if manifest is None:
            return None
        try:
            path = self.cache.find(manifest.sha256, manifest.bytes, manifest.suffix)
        except DamagedFileError as error:
            self.progress.note(f"{error.what} Building it again.")
            return None
        return None if path is None else (manifest, self._ready(manifest, path))

    def _ready(self, manifest: Manifest, path: Path) -> Path:
        if manifest.suffix == ".zip":
            return unpacked_folder(self.cache, path, manifest.sha256, ".mlpackage")
        return path

    def _pins(self, entry: ModelEntry, artifact: ArtifactEntry) -> list[Pinned]:
        """Return the published files behind an artifact, the file itself first when it is a shipped one."""
        names: Sequence[str] = [artifact.shipped] if artifact.shipped is not None else artifact.sources
        if artifact.recipe is not None and artifact.format != "onnx":
            names = entry.artifact("onnx", "fp32").sources
        return [Pinned(s.source, s.sha256, s.bytes) for s in map(entry.source, names)]


_SUFFIX_NAMES = {"onnx": "onnx", "tflite": "tflite", "coreml": "mlpackage"}
