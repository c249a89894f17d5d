"""The suite's models: one TOML file each, saying where it comes from, under which licence, and which files it exists as.

name, title, licence, homepage, note
[[source]]    name, source, sha256, bytes, and a licence of its own where it differs
[[input]], [[output]]    role, dtype, shape (0: the batch), in the canonical order
[calibration] workload, dataset, digest, samples: the data that set the scales of quantised files, prepared as that workload
              prepares its own; `digest` pins the dataset's content
[[artifact]]  format, precision, and either `shipped` (a source's name) with the `tensors` of that file by role (without
              them, by position), or `recipe` with `sources` and `parameters`; a TFLite or CoreML recipe is written from
              the ONNX file, one of harness.models.quantisation from the file that it names
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import ModelError, SuiteError, UsageError
from harness.toml_files import TomlFile, read_toml

FORMATS = ("onnx", "openvino", "tflite", "coreml")
PRECISIONS = ("fp32", "fp16", "bf16", "int8", "int8-float-ends", "int4")
DTYPES = ("float32", "float16", "int64", "int32", "int8", "uint8", "bool")
WRITERS = {"tflite_writer": "tflite", "coreml_writer": "coreml"}  # recipe -> the format it writes
_T = TypeVar("_T")


@dataclass(frozen=True)
class SourceFile:
    """A published file. `sha256` and `bytes` pin it."""

    name: str
    source: str
    sha256: str
    bytes: int
    licence: str | None = None


@dataclass(frozen=True)
class Tensor:
    """A canonical input or output; 0 in `shape` is the batch."""

    role: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ArtifactEntry:
    """One format and precision of a model: a published file as it is, or a recipe."""

    format: str
    precision: str
    shipped: str | None = None
    tensors: Mapping[str, str] = field(default_factory=dict)  # role -> tensor's name in a shipped file
    batch: int | None = None  # the one batch that the file is made for; None: any
    recipe: str | None = None
    sources: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CalibrationEntry:
    """Which data set the scales of a model's quantised files: `samples` of a dataset that is no evaluation data."""

    workload: str  # whose task and parameters prepare the samples
    dataset: str  # of harness.datasets.catalogue
    digest: str  # of the whole dataset: the first 16 digits, as its identity has them
    samples: int


@dataclass(frozen=True)
class ModelEntry:
    """One model of the catalogue."""

    name: str
    title: str
    licence: str
    homepage: str
    sources: tuple[SourceFile, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    artifacts: tuple[ArtifactEntry, ...]
    note: str = ""
    calibration: CalibrationEntry | None = None

    def source(self, name: str) -> SourceFile:
        """Return a source by its name. Raises ModelError."""
        for source in self.sources:
            if source.name == name:
                return source
        raise ModelError(f"The model {self.name} has no source {name!r}.")

    def artifact(self, model_format: str, precision: str) -> ArtifactEntry:
        """Return how the model exists in this format and precision. Raises ModelError that lists what exists."""
        for entry in self.artifacts:
            if (entry.format, entry.precision) == (model_format, precision):
                return entry
        known = ", ".join(f"{entry.format} {entry.precision}" for entry in self.artifacts)
        raise ModelError(f"The model {self.name} does not exist as {model_format} {precision}.", f"There is: {known}.")


@cache
def catalogue() -> Mapping[str, ModelEntry]:
    """Return the models that this product knows, by name."""
    folder = files("harness.models") / "catalog"
    paths = sorted(Path(str(item)) for item in folder.iterdir() if item.name.endswith(".toml"))
    entries = [read_entry(path) for path in paths]
    return {entry.name: entry for entry in entries}


def find_model(name: str) -> ModelEntry:
    """Return one model of the catalogue. Raises UsageError with the names there are."""
    try:
        return catalogue()[name]
    except KeyError:
        raise UsageError(f"There is no model {name!r}.", f"There are: {', '.join(catalogue())}.") from None


def read_entry(path: Path) -> ModelEntry:
    """Read one catalogue file strictly. Raises SuiteError that names file, line and key."""
    return _Reader(read_toml(path)).model()


class _Reader:
    def __init__(self, document: TomlFile) -> None:
        self._document = document

    def model(self) -> ModelEntry:
        keys = ("name", "title", "licence", "homepage", "note", "source", "input", "output", "artifact", "calibration")
        data = self._document.data
        self._document.check_keys((), data, keys)
        sources = tuple(self._source(index, table) for index, table in self._tables("source"))
        inputs = tuple(self._tensor("input", index, table) for index, table in self._tables("input"))
        outputs = tuple(self._tensor("output", index, table) for index, table in self._tables("output"))
        names = tuple(source.name for source in sources)
        roles = {tensor.role for tensor in (*inputs, *outputs)}
        artifacts = tuple(self._artifact(index, table, names, roles) for index, table in self._tables("artifact"))
        for kind, found in (("input", inputs), ("output", outputs), ("artifact", artifacts)):
            if not found:
                raise self._document.error((), f"the model has no [[{kind}]].")
        text = {key: self._value((), data, key, str) for key in ("name", "title", "licence", "homepage")}
        note = self._optional((), data, "note", str) or ""
        for index, entry in enumerate(artifacts):
            if (entry.format, entry.precision) in [(e.format, e.precision) for e in artifacts[:index]]:
                raise self._error("artifact", index, "format", f"{entry.format} {entry.precision} stands here twice.")
        calibration = self._calibration(artifacts)
        return ModelEntry(
            **text,
            sources=sources,
            inputs=inputs,
            outputs=outputs,
            artifacts=artifacts,
            note=note,
            calibration=calibration,
        )

    def _source(self, index: int, table: Any) -> SourceFile:
        from harness.models.sources import parse_source

        key = ("source", index)
        self._document.check_keys(key, table, ("name", "source", "sha256", "bytes", "licence"))
        text = {name: self._value(key, table, name, str) for name in ("name", "source", "sha256")}
        if not re.fullmatch("[0-9a-f]{64}", text["sha256"]):
            raise self._error(*key, "sha256", "sha256 must be 64 hexadecimal digits in lower case.")
        try:
            parse_source(text["source"])
        except ModelError as error:
            raise self._error(*key, "source", str(error)) from error
        size = self._value(key, table, "bytes", int)
        if size <= 0:
            raise self._error(*key, "bytes", "bytes must be positive.")
        return SourceFile(**text, bytes=size, licence=self._optional(key, table, "licence", str))

    def _tensor(self, kind: str, index: int, table: Any) -> Tensor:
        key = (kind, index)
        self._document.check_keys(key, table, ("role", "dtype", "shape"))
        role, dtype = self._value(key, table, "role", str), self._value(key, table, "dtype", str)
        self._choice(key, "dtype", dtype, DTYPES)
        shape = self._value(key, table, "shape", list)
        if not all(type(size) is int and size >= 0 for size in shape):
            raise self._error(*key, "shape", "shape must be a list of whole numbers, 0 for the batch.")
        return Tensor(role, dtype, tuple(shape))

    def _artifact(self, index: int, table: Any, sources: tuple[str, ...], roles: set[str]) -> ArtifactEntry:
        key = ("artifact", index)
        names = ("format", "precision", "shipped", "tensors", "batch", "recipe", "sources", "parameters")
        self._document.check_keys(key, table, names)
        model_format, precision = self._value(key, table, "format", str), self._value(key, table, "precision", str)
        self._choice(key, "format", model_format, FORMATS)
        self._choice(key, "precision", precision, PRECISIONS)
        shipped, recipe = self._optional(key, table, "shipped", str), self._optional(key, table, "recipe", str)
        if (shipped is None) == (recipe is None):
            raise self._error(*key, "format", "it needs either shipped or recipe.")
        tensors = self._optional(key, table, "tensors", dict) or {}
        if shipped is not None:
            self._choice(key, "shipped", shipped, sources)
            if tensors and set(tensors) != roles:
                raise self._error(*key, "tensors", f"tensors must name exactly the roles {', '.join(sorted(roles))}.")
        self._recipe(key, model_format, precision, recipe)
        used = tuple(self._optional(key, table, "sources", list) or ())
        for name in used:
            self._choice(key, "sources", name, sources)
        parameters = self._optional(key, table, "parameters", dict) or {}
        batch = self._optional(key, table, "batch", int)
        return ArtifactEntry(model_format, precision, shipped, tensors, batch, recipe, used, parameters)

    def _calibration(self, artifacts: tuple[ArtifactEntry, ...]) -> CalibrationEntry | None:
        from harness.models.quantisation import RECIPES, method

        key, table = ("calibration",), self._optional((), self._document.data, "calibration", dict)
        if table is None:
            for index, entry in enumerate(artifacts):
                if entry.recipe is not None and entry.recipe in RECIPES and method(entry.recipe).calibrated:
                    raise self._error("artifact", index, "recipe", f"{entry.recipe} needs a [calibration].")
            return None
        self._document.check_keys(key, table, ("workload", "dataset", "digest", "samples"))
        text = {name: self._value(key, table, name, str) for name in ("workload", "dataset", "digest")}
        if not re.fullmatch("[0-9a-f]{16}", text["digest"]):
            raise self._document.error((*key, "digest"), "digest must be 16 hexadecimal digits in lower case.")
        return CalibrationEntry(**text, samples=self._value(key, table, "samples", int))

    def _recipe(self, key: tuple[str, int], model_format: str, precision: str, recipe: str | None) -> None:
        from harness.models.quantisation import recipes_for
        from harness.models.recipes import NAMES

        if recipe is None:
            return
        writing = NAMES if model_format == "onnx" else tuple(n for n, f in WRITERS.items() if f == model_format)
        self._choice(key, "recipe", recipe, (*writing, *recipes_for(model_format, precision)))

    def _tables(self, kind: str) -> list[tuple[int, Any]]:
        found = self._document.data.get(kind, [])
        if not isinstance(found, list):
            raise self._document.error((kind,), f"{kind} must be written as [[{kind}]].")
        return list(enumerate(found))

    def _value(self, key: tuple[str | int, ...], table: Any, name: str, kind: type[_T]) -> _T:
        value = self._optional(key, table, name, kind)
        if value is None or value == "":
            raise self._document.error(key, f"{name!r} is missing.")
        return value

    def _optional(self, key: tuple[str | int, ...], table: Any, name: str, kind: type[_T]) -> _T | None:
        value = table.get(name)
        if value is not None and type(value) is not kind:
            words = {str: "a text", int: "a whole number", list: "a list", dict: "a table"}
            raise self._document.error((*key, name), f"{name} must be {words[kind]}.")
        return value

    def _choice(self, key: tuple[str, int], name: str, value: Any, allowed: tuple[str, ...]) -> None:
        if value not in allowed:
            raise self._document.error((*key, name), f"{value!r} is not a {name} that is known.", allowed)

    def _error(self, kind: str, index: int, name: str, what: str) -> SuiteError:
        return self._document.error((kind, index, name), what)
