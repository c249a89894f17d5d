"""Finding the summaries of a results tree and the files that belong to each. Touches the disk, understands no number.

DIVISION/SUBMITTER/results/SYSTEM/BENCHMARK/SCENARIO/performance/run_N/mlperf_log_summary.txt
DIVISION/SUBMITTER/results/SYSTEM/BENCHMARK/SCENARIO/accuracy/accuracy.txt
DIVISION/SUBMITTER/systems/SYSTEM.json
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness.canonical import sha256_hex
from harness.errors import RecordError, UsageError

SUMMARY = "mlperf_log_summary.txt"
MAX_TEXT_BYTES = 4 * 1024 * 1024
MAX_POWER_BYTES = 256 * 1024 * 1024
T = TypeVar("T")
_RELEASE = re.compile(r"inference_results_(v\d+\.\d+)")


@dataclass(frozen=True)
class SourceFile:
    """One file as read: where it stands in the source's tree, its digest and its text."""

    location: str  # from the division on, with forward slashes
    sha256: str
    text: str


class FileError(RecordError):
    """A file of a tree that cannot be used: a sentence that names it."""

    def __init__(self, location: str, why: object) -> None:
        super().__init__(f"{location} was not imported: {why}.")


@dataclass(frozen=True)
class Place:
    """Where one summary stands, taken apart."""

    path: Path
    division: str
    submitter: str
    system: str
    benchmark: str
    scenario_folder: str
    location: str  # of the summary, from the division on
    base: Path  # the submitter's folder


def find_summaries(root: Path) -> tuple[list[Place], list[str]]:
    """All performance summaries below `root`, sorted, and a sentence for each that does not stand where it should.

    Summaries of accuracy, ranging and compliance runs hold no result and are passed over.
    """
    if not root.is_dir():
        raise UsageError(f"{root} is not a folder.", "Give the folder of an MLPerf Inference results tree.")
    places: list[Place] = []
    problems: list[str] = []
    for folder, folders, files in os.walk(root.resolve()):
        folders.sort()
        if SUMMARY not in files:
            continue
        path = Path(folder) / SUMMARY
        parts = path.parts
        if "compliance" in parts[-9:] or parts[-2] in {"accuracy", "ranging"}:
            continue
        if len(parts) < 10 or parts[-3] != "performance" or parts[-7] != "results":
            problems.append(
                f"{path} was not imported: it does not stand in DIVISION/SUBMITTER/results/SYSTEM/BENCHMARK/SCENARIO/"
                "performance/run_N."
            )
            continue
        places.append(
            Place(
                path=path,
                division=parts[-9],
                submitter=parts[-8],
                system=parts[-6],
                benchmark=parts[-5],
                scenario_folder=parts[-4],
                location="/".join(parts[-9:]),
                base=Path(*parts[:-7]),
            )
        )
    return places, problems


def release_in(path: Path) -> str | None:
    """ "v3.0" where a folder of the path is named as MLCommons names the repository, inference_results_v3.0."""
    found = _RELEASE.search(str(path.resolve()))
    return found[1] if found else None


def read_file(path: Path, location: str, limit: int = MAX_TEXT_BYTES) -> SourceFile:
    """Read one file of the tree. Raises RecordError, without the file's name, when that cannot or must not be done."""
    if path.is_symlink():
        raise RecordError("it is a symbolic link, which is not followed")
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # reading a pipe or a device might never end
            raise RecordError("it is not a regular file")
        size = found.st_size
        if size > limit:
            raise RecordError(f"it has {size} bytes, more than the {limit} that such a file may have")
        data = path.read_bytes()
    except OSError as error:
        raise RecordError(f"it cannot be read: {error.strerror}") from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(f"it is not UTF-8 text ({error.reason} at byte {error.start})") from error
    if "\0" in text:
        raise RecordError("it holds NUL characters, so it is no text")
    return SourceFile(location, sha256_hex(data), text)


def reading(file: SourceFile, read: Callable[[str], T]) -> T:
    """Read one file; what is wrong with it becomes a sentence that names it."""
    try:
        return read(file.text)
    except RecordError as error:
        raise FileError(file.location, error.what) from error
