"""What was built from what: a small JSON file per built model, so that it is found again and its lineage is known.

A manifest is found by model, format, precision, batch, recipe and source digests. The versions of the tools are part of it:
where the tools are installed in other versions, the model is built again; where the tools or the weights are not there (a
device that got its files from elsewhere), the newest manifest stands.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.artifacts import Port
from harness.canonical import canonical_json, digest_of
from harness.models.cache import Cache


@dataclass(frozen=True)
class Lineage:
    """Everything that decides a built file's bytes."""

    model: str
    format: str
    precision: str
    batch: int | None
    recipe: str
    recipe_sha256: str
    source: str
    source_sha256: str


@dataclass(frozen=True)
class CalibrationRecord:
    """The data that set a quantised file's scales. `contents` are the SHA-256 of the files or texts, sorted."""

    identity: str  # name@digest
    samples: int
    contents: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """A built file: its digest, its ports, and what it was built from with which tools and calibration data."""

    lineage: Lineage
    tools: Mapping[str, str]
    sha256: str
    bytes: int
    suffix: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    calibration: CalibrationRecord | None = None


def tool_versions(tools: Sequence[str]) -> dict[str, str] | None:
    """Return the versions of these distributions; None when one of them is not installed here."""
    found = {}
    for tool in tools:
        try:
            found[tool] = metadata.version(tool)
        except metadata.PackageNotFoundError:
            return None
    return found


def manifest_path(cache: Cache, lineage: Lineage, tools: Mapping[str, str]) -> Path:
    """Return where the manifest of this lineage and these tools lies."""
    return _folder(cache, lineage) / f"{digest_of(dict(tools))[:16]}.json"


def find_manifest(cache: Cache, lineage: Lineage, tools: Mapping[str, str] | None) -> Manifest | None:
    """Return the manifest of this lineage: with these tools, or, where `tools` is None, the newest with any."""
    if tools is not None:
        return _read(manifest_path(cache, lineage, tools), lineage)
    try:
        paths = sorted(_folder(cache, lineage).glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    except OSError:
        return None
    return next((found for path in paths if (found := _read(path, lineage)) is not None), None)


def calibration_of_file(cache: Cache, sha256: str) -> CalibrationRecord | None:
    """Return the calibration data of a file that was built here, by its digest, wherever it lies now and whatever its name.

    None where this cache does not know the file; then nothing is known of its calibration.
    """
    for path in (cache.root / "built").glob("*/*.json"):
        found = _read(path)
        if found is not None and found.sha256 == sha256 and found.calibration is not None:
            return found.calibration
    return None


def write_manifest(cache: Cache, manifest: Manifest) -> Path:
    """Write the manifest atomically and return its path."""
    path = manifest_path(cache, manifest.lineage, manifest.tools)
    with cache.working_folder() as folder, cache.writing():
        temporary = folder / "manifest"
        temporary.write_bytes(canonical_json(asdict(manifest)))
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(temporary, path)
    return path


def _folder(cache: Cache, lineage: Lineage) -> Path:
    name = re.sub(r"[^A-Za-z0-9._-]", "_", lineage.model)[:60]
    return cache.root / "built" / f"{name}-{lineage.format}-{lineage.precision}-{digest_of(asdict(lineage))[:16]}"


def _read(path: Path, lineage: Lineage | None = None) -> Manifest | None:
    """Return the manifest (of this lineage), or None when there is none that can be read: then the file is built again."""
    try:
        data = json.loads(path.read_bytes())
        found = Manifest(
            lineage=Lineage(**data["lineage"]),
            tools={str(name): str(version) for name, version in data["tools"].items()},
            sha256=str(data["sha256"]),
            bytes=int(data["bytes"]),
            suffix=str(data["suffix"]),
            inputs=tuple(_port(port) for port in data["inputs"]),
            outputs=tuple(_port(port) for port in data["outputs"]),
            calibration=_calibration(data.get("calibration")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found if lineage in (None, found.lineage) and re.fullmatch("[0-9a-f]{64}", found.sha256) else None


def _calibration(data: Mapping[str, Any] | None) -> CalibrationRecord | None:
    if data is None:
        return None
    return CalibrationRecord(str(data["identity"]), int(data["samples"]), tuple(map(str, data["contents"])))


def _port(data: Mapping[str, Any]) -> Port:
    return Port(data["role"], data["tensor"], data["dtype"], tuple(data["shape"]), data["layout"])
