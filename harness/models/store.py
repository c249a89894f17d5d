"""The store of model files: `ensure` gives a file that is ready to load, fetching and building it first where needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts import ModelFile, Port
from harness.errors import ModelError
from harness.models.build import (
    build_onnx,
    lineage_of,
    needs_calibration,
    published,
    quantise,
    source_of,
    tool_names,
    write_from_onnx,
)
from harness.models.cache import Cache, DamagedFileError
from harness.models.catalog import ArtifactEntry, ModelEntry, SourceFile, find_model
from harness.models.converted import Built
from harness.models.inspection import read_ports
from harness.models.manifest import CalibrationRecord, Lineage, Manifest, find_manifest, tool_versions, write_manifest
from harness.models.progress import Progress, SilentProgress
from harness.models.quantisation import RECIPES
from harness.models.sources import Pinned, fetch_all, parse_source, suffix_of
from harness.models.unpacked import unpacked_folder, unpacked_model
from harness.models.user_model import (
    CONVERTED,
    NotConvertedError,
    UserModel,
    conversion_of,
    conversions,
    converter,
    own_file,
    torch_converter,
    with_torch,
)
from harness.records import Artifact

__all__ = ["FormatStatus", "ModelStore", "UserModel"]

_SUFFIXES = {"onnx": "onnx", "openvino": "xml", "tflite": "tflite", "coreml": "mlpackage"}
_ANY_BATCH = ("onnx", "openvino")  # formats whose files are not made for one batch


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
        if batch < 1:
            raise ModelError(f"A batch of {batch} cannot be meant.", "It must be 1 or more.")
        if isinstance(model, UserModel):
            return self._users(model, model_format, precision, batch)
        entry = find_model(model)
        artifact = entry.artifact(model_format, precision)
        if artifact.shipped is not None:
            return self._shipped(entry, artifact)
        batch = artifact.batch or batch  # a stream has one batch, whatever is asked for
        made_for = None if artifact.format in _ANY_BATCH else batch
        name = _file_name(entry, artifact, made_for)
        lineage = lineage_of(entry, artifact, made_for)
        assert artifact.recipe is not None
        tools = tool_versions(tool_names(artifact.recipe))
        can_make = self._holds_all(self._pins(entry, artifact))
        return self._built(lineage, tools, lambda: self._make(entry, artifact, batch), name, entry.licence, can_make)

    def formats(self, model: str | UserModel) -> tuple[FormatStatus, ...]:
        """Return every format and precision of a model, from where, and whether it is in the cache. Fetches nothing."""
        if isinstance(model, UserModel):
            own = own_file(model).artifact
            known = (own.format, own.precision, "file", own.source, own.licence, own.bytes, own.sha256, True)
            first = FormatStatus(model.name, *known)
            more = [(f, p, "built", own.source, own.licence, None, None, False) for f, p in conversions(model)]
            return (first, *(FormatStatus(model.name, *row) for row in more))
        entry = find_model(model)
        return tuple(self._status(entry, artifact) for artifact in entry.artifacts)

    def prefetch(self, wanted: Iterable[tuple[str, str, str]]) -> None:
        """Fetch what these (model, format, precision) need and is not there, with one call of pip. See `ensure`."""
        pins: dict[Pinned, None] = {}
        for name, model_format, precision in wanted:
            entry = find_model(name)
            artifact = entry.artifact(model_format, precision)
            if not self._status(entry, artifact).cached:
                pins.update(dict.fromkeys(self._pins(entry, artifact)))
            pins.update(dict.fromkeys(_companions(entry)))
        fetch_all(list(pins), self.cache, self.offline, self.progress)

    def fetch_sources(self, models: Iterable[str]) -> int:
        """Fetch all published files of these models, with one call of pip. Returns how many files that are."""
        sources = [source for name in models for source in find_model(name).sources]
        fetch_all([_pin(source) for source in sources], self.cache, self.offline, self.progress)
        return len(sources)

    def source_file(self, model: str, name: str) -> Path:
        """Return one of a model's published files, such as a tokenizer, fetching it where needed."""
        return fetch_all([_pin(find_model(model).source(name))], self.cache, self.offline, self.progress)[0]

    def _shipped(self, entry: ModelEntry, artifact: ArtifactEntry) -> ModelFile:
        assert artifact.shipped is not None
        source = entry.source(artifact.shipped)
        path = self._fetched(entry, artifact)[0]
        if path.suffix == ".zip":
            path = unpacked_folder(self.cache, path, source.sha256, Path(parse_source(source.source).name).suffix)
        inputs, outputs, batch = _ports_of(entry, artifact, path)
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
        return ModelFile(record, path, inputs, outputs, batch)

    def _users(self, model: UserModel, model_format: str, precision: str, batch: int) -> ModelFile:
        own = own_file(model)
        if (model_format, precision) == (model.format, model.precision):
            return own
        lineage = conversion_of(model, own, model_format, precision, batch)
        tools = tool_versions(tool_names(CONVERTED[model_format]))
        name = f"{model.path.stem}-b{batch}.{_SUFFIXES[model_format]}"
        try:
            make = converter(own, model_format, precision, batch)
            return self._built(lineage, tools, lambda: (make(), None), name, model.licence)
        except NotConvertedError as error:
            from harness.configuration import load_configuration
            from harness.models.onnx_graph.graph import TORCH_ROUTE_FIX

            interpreter = load_configuration().runtimes.get("convert")
            if interpreter is None and error.fix == TORCH_ROUTE_FIX:
                raise
            if interpreter is None:
                hint = "An environment with torch can convert more: name its interpreter in config.toml, [runtimes] convert."
                raise ModelError(error.what, f"{error.fix} {hint}".strip()) from error
            self.progress.note(f"{error.what} Converting it with {interpreter}.")
            torch = torch_converter(own, model_format, precision, batch, interpreter)
            tools = {"convert": str(interpreter)}
            return self._built(with_torch(lineage), tools, lambda: (torch(), None), name, model.licence)

    def _built(
        self,
        lineage: Lineage,
        tools: dict[str, str] | None,
        make: Callable[[], tuple[Built, CalibrationRecord | None]],
        name: str,
        licence: str | None,
        can_make: bool = True,
    ) -> ModelFile:
        """Return the file of this lineage from the cache, or make it: once, however many processes ask."""
        found = self._cached(find_manifest(self.cache, lineage, tools))
        if found is None and not can_make:  # what tools of other versions made is better than nothing
            found = self._cached(find_manifest(self.cache, lineage, None))
        if found is None:
            with self.cache.lock(f"build-{lineage.source_sha256[:16]}-{lineage.format}-{lineage.precision}"):
                found = self._cached(find_manifest(self.cache, lineage, tools))
                if found is None:
                    with self.progress.step(f"Building {name}", None):
                        built, calibration = make()
                    sha256, path = self.cache.add_bytes(built.data, built.suffix)
                    size = len(built.data)
                    manifest = Manifest(
                        lineage, tools or {}, sha256, size, built.suffix, built.inputs, built.outputs, calibration
                    )
                    write_manifest(self.cache, manifest)
                    found = manifest, self._ready(manifest, path)
        manifest, path = found
        record = Artifact(
            format=lineage.format,
            precision=lineage.precision,
            sha256=manifest.sha256,
            bytes=manifest.bytes,
            name=name,
            source=lineage.source,
            source_sha256=lineage.source_sha256,
            recipe=lineage.recipe,
            recipe_sha256=lineage.recipe_sha256,
            tools=dict(manifest.tools),
            licence=licence,
            calibration=manifest.calibration.identity if manifest.calibration is not None else None,
        )
        contents = manifest.calibration.contents if manifest.calibration is not None else ()
        return ModelFile(record, path, manifest.inputs, manifest.outputs, lineage.batch, contents)

    def _make(self, entry: ModelEntry, artifact: ArtifactEntry, batch: int) -> tuple[Built, CalibrationRecord | None]:
        before = source_of(entry, artifact)
        if before is None:
            sources = dict(zip(artifact.sources, self._fetched(entry, artifact), strict=True))
            return build_onnx(entry, artifact, sources), None
        source = self.ensure(entry.name, before.format, before.precision, batch)
        if artifact.recipe not in RECIPES:
            return write_from_onnx(artifact.format, artifact.precision, source, batch), None
        from harness.models.calibration import calibration_of

        calibration = calibration_of(entry, artifact, self)
        built = quantise(artifact, source, calibration, self.progress)
        if calibration is None:
            return built, None
        return built, CalibrationRecord(calibration.identity, len(calibration), calibration.contents)

    def _fetched(self, entry: ModelEntry, artifact: ArtifactEntry) -> list[Path]:
        """Return the published files behind an artifact; what else the model needs comes in the same go."""
        pins = self._pins(entry, artifact)
        more = [] if self._holds_all(pins) else _companions(entry)
        return fetch_all([*pins, *more], self.cache, self.offline, self.progress)[: len(pins)]

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
            return unpacked_model(self.cache, path, manifest.sha256, manifest.lineage.format)
        return path

    def _holds_all(self, pins: Iterable[Pinned]) -> bool:
        return all(self.cache.holds(pin.sha256, pin.bytes, suffix_of(parse_source(pin.source))) for pin in pins)

    def _pins(self, entry: ModelEntry, artifact: ArtifactEntry) -> list[Pinned]:
        """Return the published files behind an artifact: the file itself, or the weights it is built from."""
        artifact = published(entry, artifact)
        names: Sequence[str] = artifact.sources if artifact.shipped is None else [artifact.shipped]
        return [_pin(entry.source(name)) for name in names]

    def _status(self, entry: ModelEntry, artifact: ArtifactEntry) -> FormatStatus:
        common = (entry.name, artifact.format, artifact.precision)
        if artifact.shipped is not None:
            source = entry.source(artifact.shipped)
            held = self.cache.holds(source.sha256, source.bytes, suffix_of(parse_source(source.source)))
            licence = source.licence or entry.licence
            return FormatStatus(*common, "shipped", source.source, licence, source.bytes, source.sha256, held)
        lineage = lineage_of(entry, artifact, None if artifact.format in _ANY_BATCH else 1)
        assert artifact.recipe is not None
        found = find_manifest(self.cache, lineage, tool_versions(tool_names(artifact.recipe)))
        held = found is not None and self.cache.holds(found.sha256, found.bytes, found.suffix)
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


def _file_name(entry: ModelEntry, artifact: ArtifactEntry, made_for: int | None) -> str:
    """Return a built file's name, for people."""
    precision = "" if artifact.precision == "fp32" else f"-{artifact.precision}"
    batch = "" if made_for is None else f"-b{made_for}"
    return f"{entry.name}{precision}{batch}.{_SUFFIXES[artifact.format]}"


def _calibration_of(
    entry: ModelEntry, artifact: ArtifactEntry, found: Manifest | None
) -> tuple[str | None, int | None]:
    """Return the identity and the number of samples that set the scales of a file, or will set them."""
    if found is not None and found.calibration is not None:
        return found.calibration.identity, found.calibration.samples
    if found is not None or entry.calibration is None or not needs_calibration(artifact):
        return None, None
    return f"{entry.calibration.dataset}@{entry.calibration.digest}", entry.calibration.samples


def _pin(source: SourceFile) -> Pinned:
    return Pinned(source.source, source.sha256, source.bytes)


def _companions(entry: ModelEntry) -> list[Pinned]:
    """Return the published files that belong to the model and are no model themselves, such as a tokenizer."""
    used = {name for artifact in entry.artifacts for name in (artifact.shipped, *artifact.sources)}
    return [_pin(source) for source in entry.sources if source.name not in used]


def _ports_of(
    entry: ModelEntry, artifact: ArtifactEntry, path: Path
) -> tuple[tuple[Port, ...], tuple[Port, ...], int | None]:
    """Return the ports of a shipped file: by the catalogue's names, else by position from the file itself."""
    if artifact.tensors:
        inputs, outputs = (
            tuple(Port(t.role, artifact.tensors[t.role], t.dtype, t.shape) for t in tensors)
            for tensors in (entry.inputs, entry.outputs)
        )
        return inputs, outputs, artifact.batch
    found = read_ports(path, artifact.format)
    for tensors, ports in zip((entry.inputs, entry.outputs), found, strict=True):
        fits = len(tensors) == len(ports) and all(
            t.dtype == p.dtype and all(a == b or not a or not b for a, b in zip(t.shape, p.shape, strict=False))
            for t, p in zip(tensors, ports, strict=True)
        )
        if not fits:
            raise ModelError(f"{path.name} of {entry.name} has other inputs or outputs than the catalogue says.")
    inputs, outputs = (
        tuple(Port(t.role, p.tensor, p.dtype, t.shape) for t, p in zip(tensors, ports, strict=True))
        for tensors, ports in zip((entry.inputs, entry.outputs), found, strict=True)
    )
    return inputs, outputs, found[0][0].shape[0] or None
