"""The user's own labelled pictures: one sub-folder per class, or a table of files and classes.

Sub-folders: their names in sorted order are the classes 0, 1, 2, ... ; a name that is a number is that class. Table:
lines of `file <tab> class`, or `file class`; several classes that all count as right are joined by commas; `#`
begins a comment.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from harness.canonical import sha256_hex
from harness.datasets.definition import Dataset, samples_digest
from harness.datasets.files import file_sha256
from harness.errors import ModelError
from harness.tasks.base import Sample

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")
MAX_FILES = 200_000


def open_folder(name: str, folder: Path, labels: Path | None, cache: Path) -> Dataset:
    """Return the folder's dataset. Raises ModelError that names the folder, or the table and its line."""
    if not folder.is_dir():
        raise ModelError(f"The folder {folder} of the dataset {name} does not exist.", "Correct it in the suite file.")
    pairs = read_labels(labels, folder) if labels is not None else _sub_folders(folder)
    if not pairs:
        what = f"The folder {folder} of the dataset {name} holds no pictures in sub-folders."
        raise ModelError(what, "Make one sub-folder per class, or name a table of labels.")
    return labelled(name, f"{name} (own folder)", folder, pairs, cache)


def labelled(name: str, title: str, folder: Path, pairs: list[tuple[str, int | list[int]]], cache: Path) -> Dataset:
    """Return a dataset from (relative path, class) pairs."""
    samples = tuple(Sample(id=path, files=(str((folder / path).absolute()),), label=label) for path, label in pairs)
    hashes = remembered_hashes([sample.files[0] for sample in samples], cache, folder)
    return Dataset(
        name=name,
        title=title,
        digest=samples_digest(samples, hashes),
        samples=samples,
        source=f"file:{folder}",
        files=hashes,
    )


def read_labels(table: Path, folder: Path) -> list[tuple[str, int | list[int]]]:
    """Read a table of labels; files are relative to `folder` and must lie in it. Raises ModelError with the line."""
    try:
        lines = table.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ModelError(f"The table of labels {table} cannot be read: {reason}.") from error
    root = folder.resolve()
    pairs: list[tuple[str, int | list[int]]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        file, _, classes = line.rstrip().rpartition("\t") if "\t" in line else line.rstrip().rpartition(" ")
        try:
            allowed = [int(part) for part in classes.split(",")]
        except ValueError:
            if number == 1:  # a heading
                continue
            what = f"{table}, line {number}: {classes!r} is no class number."
            raise ModelError(what, "Write: file <tab> class, several classes joined by commas.") from None
        file = file.strip()
        if not (root / file).resolve().is_relative_to(root):
            raise ModelError(f"{table}, line {number}: {file!r} lies outside {folder}.")
        if not (root / file).is_file():
            raise ModelError(f"{table}, line {number}: there is no file {file!r} in {folder}.")
        pairs.append((file, allowed[0] if len(allowed) == 1 else allowed))
    if not pairs:
        raise ModelError(f"The table of labels {table} names no file.", "Write: file <tab> class.")
    return pairs


def _sub_folders(folder: Path) -> list[tuple[str, int | list[int]]]:
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    numbered = all(name.isdecimal() for name in classes)
    pairs: list[tuple[str, int | list[int]]] = []
    for position, name in enumerate(classes):
        number = int(name) if numbered else position
        found = sorted(path for path in (folder / name).iterdir() if path.suffix.lower() in ENDINGS)
        pairs += [(f"{name}/{path.name}", number) for path in found]
        if len(pairs) > MAX_FILES:
            raise ModelError(f"The folder {folder} holds more than {MAX_FILES} pictures.", "Name a table of labels.")
    return pairs


def remembered_hashes(paths: list[str], cache: Path, folder: Path) -> dict[str, str]:
    """Return each file's SHA-256; a file whose size and time stamp are as before is not read again.

    Fifty thousand pictures take half a minute to hash. The memory is only a hint: where it cannot be kept, or is damaged,
    everything is read.
    """
    memory = cache / "datasets" / "hashes" / f"{sha256_hex(str(folder.absolute()).encode())[:32]}.json"
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
        known = known if isinstance(known, dict) else {}
    except (OSError, ValueError):
        known = {}
    fresh: dict[str, list[object]] = {}
    for path in paths:
        try:
            state = os.stat(path)
            row = known.get(path)
            if not (isinstance(row, list) and len(row) == 3 and row[:2] == [state.st_size, state.st_mtime_ns]):
                row = [state.st_size, state.st_mtime_ns, file_sha256(Path(path))]
        except OSError as error:
            raise ModelError(f"The file {path} of a dataset cannot be read: {error.strerror}.") from error
        fresh[path] = row
    if any(known.get(path) != row for path, row in fresh.items()):
        _remember(memory, {**known, **fresh})
    return {path: str(row[2]) for path, row in fresh.items()}


def _remember(memory: Path, rows: dict[str, object]) -> None:
    temporary = memory.with_suffix(f".{os.getpid()}.tmp")
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(rows), encoding="utf-8")
        os.replace(temporary, memory)
    except OSError:
        temporary.unlink(missing_ok=True)
