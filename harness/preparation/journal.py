"""The journal: what was changed on this machine and how to put it back, on disk before the change is made.

One JSON object per line, each synchronised to the disk before the setting is written. A line that is cut off belongs to a
change that was not made. The lock beside it is the operating system's: it ends with the process that prepared the machine,
whatever kills it, and so tells an abandoned journal from one in use.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from harness.canonical import sha256_hex
from harness.environment.reading import text

SCHEMA = "weighbridge/preparation/1"
JOURNAL = "preparation.journal"
LOCK = "preparation.lock"


@dataclass(frozen=True)
class Entry:
    """A change: file, value before, value during the run."""

    name: str
    path: str
    before: str
    during: str


@dataclass(frozen=True)
class Found:
    """A journal as it lies on disk."""

    boot: str  # of the system's start in which the changes were made
    machine: str  # digest of the machine's own id
    entries: tuple[Entry, ...]


class Journal:
    """The journal in `folder`, opened for a preparation. The caller holds the lock."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._path = folder / JOURNAL
        self._file: IO[bytes] = self._path.open("xb")  # never over an abandoned one
        self._line({"schema": SCHEMA, "boot": boot_of(root), "machine": machine_of(root), "pid": os.getpid()})
        _sync_folder(folder)

    def add(self, entry: Entry) -> None:
        """Return when the entry is safe. Raises OSError (a full disk, say): then the change must not be made."""
        self._line(asdict(entry))

    def close(self, done: bool) -> None:
        """Close it; remove it where everything was put back."""
        self._file.close()
        if done:
            remove(self._path.parent)

    def _line(self, document: dict[str, Any]) -> None:
        self._file.write(json.dumps(document).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def read_journal(folder: Path) -> Found | None:
    """Return the journal of `folder`; None where there is none. Raises ValueError where it is no journal of ours."""
    try:
        lines = (folder / JOURNAL).read_bytes().split(b"\n")
    except FileNotFoundError:
        return None
    complete = lines[:-1]  # what follows the last line end was cut off
    if not complete:
        return Found("", "", ())
    try:
        head, *rest = (json.loads(line) for line in complete)
        if head["schema"] != SCHEMA:
            raise ValueError(f"its schema is {head['schema']!r}")
        return Found(str(head["boot"]), str(head["machine"]), tuple(_entry(entry) for entry in rest))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{folder / JOURNAL} cannot be read ({error})") from error


def _entry(document: Any) -> Entry:
    """Read an entry. Its name is shown on a terminal, so that nothing that steers one may be in it."""
    entry = Entry(**document)
    if not all(isinstance(value, str) and value.isprintable() for value in asdict(entry).values()):
        raise ValueError("an entry is no text")
    return entry


def remove(folder: Path) -> None:
    """Remove the journal: nothing is left to put back."""
    (folder / JOURNAL).unlink(missing_ok=True)
    _sync_folder(folder)


def boot_of(root: Path) -> str:
    """What tells one start of the system from the next; a restart puts every one of these settings back by itself."""
    return text(root / "proc/sys/kernel/random/boot_id")


def machine_of(root: Path) -> str:
    """A digest of the machine's own id: a state folder may be shared between machines."""
    identifier = text(root / "etc/machine-id")
    return sha256_hex(identifier.encode()) if identifier else ""


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
