"""The store of model files: `ensure` gives a file that is ready to load, fetching and building it first where needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from harness.artifacts import ModelFile
from harness.errors import ModelError
from harness.models.build import (
    build_onnx,
    lineage_of,
    quantise,
    source_of,
    tool_names,
    write_from_onnx,
)
from harness.models.cache import Cache, DamagedFileError
from harness.models.catalog import ArtifactEntry, ModelEntry, find_model
from harness.models.converted import Built
from harness.models.manifest import (
    CalibrationRecord,
    Lineage,
    Manifest,
    calibration_of_file,
    find_manifest,
    tool_versions,
    write_manifest,
)
from harness.models.progress import Progress, SilentProgress
from harness.models.published import companions, pin, pins_of, ports_of
from harness.models.quantisation import RECIPES, Calibration
from harness.models.sources import Pinned, fetch_all, parse_source, suffix_of
from harness.models.status import SUFFIXES, FormatStatus, file_name, made_for, status_of
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
        name = file_name(entry, artifact, made_for(artifact, batch))
        lineage = lineage_of(entry, artifact, made_for(artifact, batch))
        assert artifact.recipe is not None
        tools = tool_versions(tool_names(artifact.recipe))
        can_make = self._holds_all(pins_of(entry, artifact))
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
        return tuple(status_of(self.cache, entry, artifact) for artifact in entry.artifacts)

    def prefetch(self, wanted: Iterable[tuple[str, str, str]]) -> None:
        """Fetch what these (model, format, precision) need and is not there, with one call of pip. See `ensure`."""
        pins: dict[Pinned, None] = {}
        for name, model_format, precision in wanted:
            entry = find_model(name)
            artifact = entry.artifact(model_format, precision)
            if not status_of(self.cache, entry, artifact).cached:
                pins.update(dict.fromkeys(pins_of(entry, artifact)))
            pins.update(dict.fromkeys(companions(entry)))
        fetch_all(list(pins), self.cache, self.offline, self.progress)

    def fetch_sources(self, models: Iterable[str]) -> int:
        """Fetch all published files of these models, with one call of pip. Returns how many files that are."""
        sources = [source for name in models for source in find_model(name).sources]
        fetch_all([pin(source) for source in sources], self.cache, self.offline, self.progress)
        return len(sources)

    def source_file(self, model: str, name: str) -> Path:
        """Return one of a model's published files, such as a tokenizer, fetching it where needed."""
        return fetch_all([pin(find_model(model).source(name))], self.cache, self.offline, self.progress)[0]

    def _shipped(self, entry: ModelEntry, artifact: ArtifactEntry) -> ModelFile:
        assert artifact.shipped is not None
        source = entry.source(artifact.shipped)
        path = self._fetched(entry, artifact)[0]
        if path.suffix == ".zip":
            path = unpacked_folder(self.cache, path, source.sha256, Path(parse_source(source.source).name).suffix)
        inputs, outputs, batch = ports_of(entry, artifact, path)
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
            # A copy of what `weigh models build` made: the data that set its scales must not judge it under another name.
            known = calibration_of_file(self.cache, own.artifact.sha256)
            if known is None:
                return own
            return replace(
                own, artifact=replace(own.artifact, calibration=known.identity), calibrated_on=known.contents
            )
        lineage = conversion_of(model, own, model_format, precision, batch)
        tools = tool_versions(tool_names(CONVERTED[model_format]))
        name = f"{model.path.stem}-b{batch}.{SUFFIXES[model_format]}"
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

    def quantised(
        self,
        lineage: Lineage,
        artifact: ArtifactEntry,
        source: ModelFile,
        calibration: Calibration | None,
        name: str,
        licence: str | None = None,
    ) -> ModelFile:
        """Return `source` in the precision of `artifact`, from the cache or built now. See own_quantisation."""
        assert artifact.recipe is not None
        record = None
        if calibration is not None:
            record = CalibrationRecord(calibration.identity, len(calibration), calibration.contents)
        tools = tool_versions(tool_names(artifact.recipe))
        return self._built(
            lineage, tools, lambda: (quantise(artifact, source, calibration, self.progress), record), name, licence
        )

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
                    found = self._make_now(lineage, tools or {}, make, name)
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

    def _make_now(
        self,
        lineage: Lineage,
        tools: dict[str, str],
        make: Callable[[], tuple[Built, CalibrationRecord | None]],
        name: str,
    ) -> tuple[Manifest, Path]:
        """Make a file and its manifest. Where that fails, a file that tools of other versions made is taken instead."""
        try:
            with self.progress.step(f"Building {name}", None):
                built, calibration = make()
        except ModelError as error:
            older = self._cached(find_manifest(self.cache, lineage, None))
            if older is None:
                raise
            self.progress.note(f"{error.what} The {name} that other versions of the tools made is used.")
            return older
        sha256, path = self.cache.add_bytes(built.data, built.suffix)
        size, ports = len(built.data), (built.inputs, built.outputs)
        manifest = Manifest(lineage, tools, sha256, size, built.suffix, *ports, calibration)
        write_manifest(self.cache, manifest)
        return manifest, self._ready(manifest, path)

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
        pins = pins_of(entry, artifact)
        more = [] if self._holds_all(pins) else companions(entry)
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
        return all(self.cache.holds(p.sha256, p.bytes, suffix_of(parse_source(p.source))) for p in pins)
