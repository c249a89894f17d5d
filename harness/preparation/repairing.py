"""Puts back what a killed run left changed. Whatever measures calls it at its start, and so does `weigh doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.preparation.journal import JOURNAL, LOCK, Entry, Found, boot_of, machine_of, read_journal, remove
from harness.preparation.settings import ALLOWED, GONE, VALUE, read, write

ROOT = Path("/")


@dataclass(frozen=True)
class PutBack:
    """What became of one change: "restored", "untouched" (it was so already), "changed by others", or "failed"."""

    entry: Entry
    how: str
    sentence: str


def put_back(root: Path, entries: Sequence[Entry]) -> list[PutBack]:
    """Put back in reverse order what is still as the journal left it. Never raises: each outcome has its sentence."""
    return [_one(root, entry) for entry in reversed(entries)]


def repair(folder: Path, root: Path | None = None) -> tuple[str, ...]:
    """Put back what an abandoned journal in `folder` says; return sentences for a person, where there is something to say.

    A journal whose process still lives is left alone. It stays where something could not be put back, so that a later start,
    perhaps with more rights, can. Never raises.
    """
    from filelock import FileLock, Timeout

    root = ROOT if root is None else root
    if not (folder / JOURNAL).exists():
        return ()
    try:
        with FileLock(folder / LOCK, timeout=0):
            return _repair(folder, root)
    except Timeout:
        return ()  # a run that lives keeps its own promise
    except OSError as error:
        return (f"A run was killed while the machine was prepared, and its journal cannot be worked on: {error}.",)


def pending(folder: Path, root: Path | None = None) -> tuple[Entry, ...]:
    """Return what an unfinished or living preparation has changed; with `root`, on that machine only."""
    try:
        found = read_journal(folder)
    except (ValueError, OSError):
        return ()
    if found is None or (root is not None and is_of_another(found, root)):
        return ()
    return found.entries


def is_of_another(found: Found, root: Path) -> bool:
    """Say whether a journal tells of another machine than that of `root`: a state folder may be shared."""
    return bool(found.machine) and found.machine != machine_of(root)


def _repair(folder: Path, root: Path) -> tuple[str, ...]:
    try:
        found = read_journal(folder)
    except ValueError as error:
        return (f"A run was killed while the machine was prepared, but {error}. Look at it, then remove it.",)
    if found is None:
        return ()
    if is_of_another(found, root):
        return ()  # it is another machine's; that machine puts it back
    if found.boot and found.boot != boot_of(root):
        remove(folder)
        return ("A run was killed while the machine was prepared; the restart since then has put everything back.",)
    outcomes = put_back(root, found.entries)
    if any(outcome.how == "failed" for outcome in outcomes):
        said = [outcome.sentence for outcome in outcomes if outcome.how == "failed"]
        return ("A run was killed while the machine was prepared, and not everything could be put back.", *said)
    remove(folder)
    said = [outcome.sentence for outcome in outcomes if outcome.how != "untouched"]
    return ("A run was killed while the machine was prepared.", *said) if said else ()


def _one(root: Path, entry: Entry) -> PutBack:
    plain = VALUE.fullmatch(entry.before) and VALUE.fullmatch(entry.during)
    if not plain or not ALLOWED.fullmatch(entry.path):
        return PutBack(entry, "failed", f"The journal names {entry.path}, which is nothing that this product changes.")
    now = read(root, entry.path)
    if now == entry.before:
        return PutBack(entry, "untouched", f"The {entry.name} is {entry.before} as before.")
    if not (root / entry.path).exists():
        return PutBack(entry, "changed by others", f"The {entry.name} is no longer there.")
    if now is not None and now != entry.during and entry.during != GONE:
        words = f"The {entry.name} was set to {now} by somebody else meanwhile and is left so (before: {entry.before})."
        return PutBack(entry, "changed by others", words)
    try:
        write(root, entry.path, entry.before)
    except OSError as error:
        why = error.strerror or str(error)
        words = (
            f"The {entry.name} could not be set back to {entry.before}: {why}. Run `weigh doctor` with the rights to."
        )
        return PutBack(entry, "failed", words)
    if read(root, entry.path) != entry.before:
        return PutBack(entry, "failed", f"The {entry.name} did not take its old value {entry.before}.")
    return PutBack(entry, "restored", f"The {entry.name} is {entry.before} again (it was {entry.during}).")
