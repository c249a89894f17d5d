"""A whole results tree as run records, with a sentence for each file that could not be used. Reads files, writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from db.importers.mlperf.convert import Files, Release, is_copy, to_run
from db.importers.mlperf.tree import (
    MAX_POWER_BYTES,
    FileError,
    Place,
    SourceFile,
    find_summaries,
    read_file,
    release_in,
)
from harness.errors import RecordError, UsageError
from harness.records import Run

# Days on which MLCommons published the rounds. A run must stand somewhere in time, and the files do not tell when they ran.
PUBLISHED = {
    "v3.0": "2023-04-05",
    "v3.1": "2023-09-11",
    "v4.0": "2024-03-27",
    "v4.1": "2024-08-28",
    "v5.0": "2025-04-02",
    "v5.1": "2025-09-09",
}


@dataclass(frozen=True)
class Tree:
    """What a results tree holds."""

    release: Release
    runs: tuple[Run, ...]
    problems: tuple[str, ...]  # one sentence for each file that could not be used
    idle_systems: tuple[str, ...]  # described, but without results here


def read_tree(
    root: Path, release: str | None = None, published: str | None = None, known: dict[str, str] | None = None
) -> Tree:
    """Read every performance result below `root`.

    The release is `release`, or what the path says, or what `known` (release by SHA-256 of published files) recognises.
    Raises UsageError when it stays unknown, or when there is no result at all.
    """
    places, problems = find_summaries(root)
    if not places and not problems:
        raise UsageError(
            f"{root} holds no mlperf_log_summary.txt.", "Give the folder of an MLPerf Inference results tree."
        )
    found: list[Files] = []
    for place in places:
        try:
            found.append(_files_of(place))
        except FileError as error:
            problems.append(error.what)
    version = release or release_in(root) or _recognised(found, known or {})
    chosen = _release(version, published)
    runs: list[tuple[bool, Run]] = []
    for files in found:
        try:
            run = to_run(files, chosen)
        except FileError as error:
            problems.append(error.what)
        else:
            runs.append((is_copy(files.place.scenario_folder, run.measurements[0].case.scenario), run))
    # Copies last: of measurements of one case and one moment, the first stored stands as the newest.
    runs.sort(key=lambda pair: pair[0])
    return Tree(chosen, tuple(run for _, run in runs), tuple(problems), _idle_systems(root, places))


def _files_of(place: Place) -> Files:
    folder = place.path.parent
    top = f"{place.division}/{place.submitter}"
    here = place.location.rsplit("/", 1)[0]
    scenario = here.rsplit("/", 2)[0]
    system = _file(place.base / "systems" / f"{place.system}.json", f"{top}/systems/{place.system}.json")
    if system is None:
        raise FileError(place.location, f"{top}/systems/{place.system}.json, which describes its system, is not there")
    summary = _file(place.path, place.location)
    assert summary is not None  # the walk has seen it, and read_file raises where it is gone since
    return Files(
        place=place,
        summary=summary,
        system=system,
        accuracy=_file(folder.parent.parent / "accuracy" / "accuracy.txt", f"{scenario}/accuracy/accuracy.txt"),
        power=_file(folder / "spl.txt", f"{here}/spl.txt", MAX_POWER_BYTES),
    )


def _file(path: Path, location: str, limit: int | None = None) -> SourceFile | None:
    """One file that may be missing. A file that is there and cannot be read is a problem, not a missing file."""
    if not path.is_symlink() and not path.exists():
        return None
    try:
        return read_file(path, location) if limit is None else read_file(path, location, limit)
    except RecordError as error:
        raise FileError(location, error.what) from error


def _recognised(found: Iterable[Files], known: dict[str, str]) -> str | None:
    versions = {known[file.sha256] for files in found for file in (files.summary, files.system) if file.sha256 in known}
    return versions.pop() if len(versions) == 1 else None


def _release(version: str | None, published: str | None) -> Release:
    if version is None:
        raise UsageError(
            "Neither the path nor the files tell which MLPerf Inference release these results are of.",
            "Name it: --release v3.0 (and --published YYYY-MM-DD for one that is not known here).",
        )
    day = published or PUBLISHED.get(version)
    if day is None:
        raise UsageError(
            f"The day on which {version} was published is not known here.", "Give it with --published YYYY-MM-DD."
        )
    from datetime import date

    try:
        return Release(version, date.fromisoformat(day).isoformat())
    except ValueError as error:
        raise UsageError(f"{day!r} is not a day.", "Write it as YYYY-MM-DD.") from error


def _idle_systems(root: Path, places: list[Place]) -> tuple[str, ...]:
    """Systems that the tree describes, but holds no result of."""
    used = {place.base / "systems" / f"{place.system}.json" for place in places}
    described = (file for file in root.resolve().rglob("*.json") if file.parent.name == "systems")
    return tuple("/".join(file.parts[-4:]) for file in sorted(described) if file not in used)
