"""The dataset folders of the cache: made whole or not at all, and checked by SHA-256 whenever they are used."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.errors import ModelError
from harness.models.cache import Cache, cache_error

MANIFEST = "manifest.json"


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def kept_folder(
    cache: Path, name: str, make: Callable[[Path], None], expected: Mapping[str, str] | None = None
) -> tuple[Path, dict[str, str]]:
    """Return the folder `name` of the cache and its files' SHA-256 by relative path; make it where it is not whole.

    `make` fills an empty folder; it raises ModelError where it cannot. `expected` are pinned hashes: a file that differs, or
    lacks, is an error. The folder appears by one rename, so that an interrupted `make` leaves nothing behind that counts.
    """
    final = cache / "datasets" / name
    found = _read_whole(final, expected)
    if found is not None:
        return final, found
    with Cache(cache).lock(f"dataset-{name}"):
        found = _read_whole(final, expected)  # another process may have been faster
        if found is not None:
            return final, found
        return final, _made(final, name, make, expected or {})


def _made(final: Path, name: str, make: Callable[[Path], None], expected: Mapping[str, str]) -> dict[str, str]:
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=final.parent))
    except OSError as error:
        raise cache_error(final.parent, error) from error
    try:
        make(temporary)
        hashes = _hash_all(temporary)
        for relative, sha256 in expected.items():
            if hashes.get(relative) != sha256:
                raise ModelError(
                    f"The file {relative} of the dataset {name} is not the expected one: its SHA-256 is "
                    f"{hashes.get(relative, 'none, the file is not there')}, not {sha256}."
                )
        (temporary / MANIFEST).write_text(json.dumps(hashes, indent=0, sort_keys=True), encoding="utf-8")
        if final.exists():  # a damaged or partial folder from before
            shutil.rmtree(final)
        temporary.chmod(0o755)
        os.replace(temporary, final)
        return hashes
    except OSError as error:
        raise cache_error(final.parent, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _read_whole(folder: Path, expected: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return the hashes of a folder whose files are all still as its manifest, and the pins, say; else None."""
    try:
        recorded = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        hashes = _hash_all(folder)
    except (OSError, ValueError):
        return None
    if hashes != recorded or any(hashes.get(name) != sha256 for name, sha256 in (expected or {}).items()):
        return None
    return hashes


def _hash_all(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): file_sha256(path) for path in files}
