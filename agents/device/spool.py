"""The durable spool: finished runs wait here until a store has acknowledged them.

One folder per run, `<spool>/<run_id>/`, with `run.json` (the record's bytes as written), `blobs/<sha256>`, and
`SHA256SUMS`, which is written last and lists every file (`sha256sum -c SHA256SUMS` checks an entry by hand). An entry
is built in a hidden folder, flushed to the disk, and renamed into place: killed at any point, it is whole or not there.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from pathlib import Path

from harness.canonical import sha256_hex
from harness.documents import Bundle, Receipt
from harness.errors import RecordError, StoreError

RECORD = "run.json"
BLOBS = "blobs"
SUMS = "SHA256SUMS"
DAMAGED = "damaged"
_INCOMING = ".incoming-"
_REMOVED = ".removed-"
# An unfinished folder that nobody has touched for this long has lost its writer.
ABANDONED_AFTER_S = 600.0


def run_id_of(record: bytes) -> str:
    """Return the run_id of a record's bytes. Raises RecordError unless it is a UUID in its usual lower-case form.

    The identifier becomes a folder's name, so nothing else is let through.
    """
    try:
        document = json.loads(record)
        found = document["run_id"]
        if str(uuid.UUID(found)) != found:
            raise ValueError(found)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError("The run record has no valid run_id (a UUID in lower case).") from error
    return str(found)


class Spool:
    """Runs on this machine's disk that are still to be sent. Also a Sink: `store` is `add`."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    def add(self, bundle: Bundle) -> Receipt:
        """Keep `bundle` until `remove`. The same bundle twice is one entry; another content under its id is refused.

        Raises RecordError (wrong digest, other content) or StoreError (the disk refused); then nothing was added.
        """
        run_id = run_id_of(bundle.record)
        for digest, data in bundle.blobs.items():
            if sha256_hex(data) != digest:
                raise RecordError(f"A blob of run {run_id} does not have the SHA-256 {digest} under which it is filed.")
        try:
            return self._add(run_id, bundle)
        except OSError as error:
            raise StoreError(
                f"The run {run_id} could not be written to the spool {self.path}: {error.strerror or error}.",
                "Free some space there or set WEIGHBRIDGE_STATE to a folder that can be written.",
            ) from error

    def store(self, bundle: Bundle) -> Receipt:
        """Store in the spool; see `add`."""
        return self.add(bundle)

    def pending(self) -> list[str]:
        """Return the run ids that wait, oldest first. Folders whose writer was killed are recovered or set aside."""
        if not self.path.is_dir():
            return []
        self._recover()
        found = [(entry.stat().st_mtime_ns, entry.name) for entry in self.path.iterdir() if _is_entry(entry)]
        return [name for _, name in sorted(found)]

    def damaged(self) -> list[str]:
        """Return the names of entries that were set aside because a file was missing or changed."""
        folder = self.path / DAMAGED
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def load(self, run_id: str) -> Bundle:
        """Read one entry, every file checked against its digest.

        A damaged entry is moved to `damaged/` (nothing is deleted); RecordError says what is wrong and where it lies.
        """
        entry = self._entry(run_id)
        if not entry.is_dir():
            raise RecordError(f"The spool {self.path} has no run {run_id}.")
        try:
            return _read(entry)
        except OSError as error:
            raise StoreError(f"The spooled run {run_id} cannot be read: {error.strerror or error}.") from error
        except RecordError as error:
            place = self._set_aside(entry)
            what = f"The spooled run {run_id} is damaged: {error.what}"
            raise RecordError(what, f"It was moved to {place}.") from error

    def remove(self, run_id: str) -> None:
        """Forget an entry, after a store has acknowledged it. Removing what is not there is no error."""
        entry = self._entry(run_id)
        grave = self.path / f"{_REMOVED}{uuid.uuid4().hex}"
        try:
            # Renamed first: a kill in the middle of deleting never leaves half an entry that looks damaged.
            entry.rename(grave)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"The spooled run {run_id} cannot be removed: {error.strerror or error}.") from error
        shutil.rmtree(grave, ignore_errors=True)

    def _entry(self, run_id: str) -> Path:
        if not _is_uuid(run_id):
            raise RecordError(f"{run_id!r} is not a run id (a UUID in lower case).")
        return self.path / run_id

    def _add(self, run_id: str, bundle: Bundle) -> Receipt:
        entry = self.path / run_id
        if entry.is_dir():
            return self._already(run_id, bundle)
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        incoming = self.path / f"{_INCOMING}{uuid.uuid4().hex}"
        try:
            (incoming / BLOBS).mkdir(parents=True)
            _write(incoming / RECORD, bundle.record)
            lines = [f"{bundle.sha256}  {RECORD}"]
            for digest, data in sorted(bundle.blobs.items()):
                _write(incoming / BLOBS / digest, data)
                lines.append(f"{digest}  {BLOBS}/{digest}")
            _write(incoming / SUMS, ("\n".join(lines) + "\n").encode())
            _sync_folder(incoming / BLOBS)
            _sync_folder(incoming)
            try:
                incoming.rename(entry)
            except OSError:
                if not entry.is_dir():  # otherwise: another process added this run in the meantime
                    raise
                return self._already(run_id, bundle)
            _sync_folder(self.path)
            return Receipt(run_id, bundle.sha256, True)
        finally:
            if incoming.is_dir():
                shutil.rmtree(incoming, ignore_errors=True)

    def _already(self, run_id: str, bundle: Bundle) -> Receipt:
        held = self.load(run_id)
        if held.sha256 != bundle.sha256:
            raise RecordError(
                f"The spool already holds another record under the run id {run_id}.",
                "Send the first one with `weigh push`, then add this one under a run id of its own.",
            )
        return Receipt(run_id, bundle.sha256, False)

    def _recover(self) -> None:
        """Finish what a killed process left: whole folders become entries, half ones go to damaged/, graves go."""
        now = time.time()
        for entry in list(self.path.iterdir()):
            if entry.name.startswith(_REMOVED):
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name.startswith(_INCOMING):
                try:
                    if now - entry.stat().st_mtime < ABANDONED_AFTER_S:
                        continue
                    bundle = _read(entry)
                    if (self.path / run_id_of(bundle.record)).exists():
                        shutil.rmtree(entry, ignore_errors=True)
                    else:
                        entry.rename(self.path / run_id_of(bundle.record))
                except RecordError:
                    self._set_aside(entry)
                except OSError:
                    continue  # its writer lives after all, or another process recovers it

    def _set_aside(self, entry: Path) -> Path:
        folder = self.path / DAMAGED
        folder.mkdir(exist_ok=True)
        place = folder / f"{entry.name.lstrip('.')}-{uuid.uuid4().hex[:8]}"
        entry.rename(place)
        return place


def _read(entry: Path) -> Bundle:
    """Read and check a folder. Raises RecordError for anything missing, changed or too much."""
    try:
        lines = (entry / SUMS).read_text(encoding="ascii", errors="strict").splitlines()
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise RecordError(f"its list of checksums ({SUMS}) is missing or unreadable.") from error
    record: bytes | None = None
    blobs: dict[str, bytes] = {}
    for line in lines:
        digest, _, name = line.partition("  ")
        if name not in (RECORD, f"{BLOBS}/{digest}") or not _is_digest(digest):
            raise RecordError(f"its list of checksums has a line that does not belong there: {line[:100]!r}.")
        try:
            data = (entry / name).read_bytes()
        except FileNotFoundError as error:
            raise RecordError(f"{name} is missing.") from error
        if sha256_hex(data) != digest:
            raise RecordError(f"{name} has changed since it was written.")
        if name == RECORD:
            record = data
        else:
            blobs[digest] = data
    if record is None:
        raise RecordError(f"its list of checksums does not name {RECORD}.")
    if not entry.name.startswith(".") and run_id_of(record) != entry.name:
        raise RecordError(f"{RECORD} belongs to another run than its folder says.")
    return Bundle(record, blobs)


def _is_entry(entry: Path) -> bool:
    return _is_uuid(entry.name) and entry.is_dir()


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except (ValueError, AttributeError, TypeError):
        return False


def _is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Flush a folder's entries, where the system lets a folder be opened (not on Windows)."""
    flags = getattr(os, "O_DIRECTORY", None)
    if flags is None:
        return
    handle = os.open(path, os.O_RDONLY | flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
