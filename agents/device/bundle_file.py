"""A bundle as one file: a ZIP without compression, `run.json` and `blobs/<sha256>`. The blobs are packed already.

Read as untrusted: only these names, sizes limited before anything is read, every blob checked against its name.
"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from harness.canonical import sha256_hex
from harness.documents import MAX_RECORD_BYTES, Bundle
from harness.errors import RecordError

MAX_FILE_BYTES = 512 * 1024 * 1024
MAX_BLOBS = 100_000
_MOMENT = (1980, 1, 1, 0, 0, 0)  # the same bundle is the same file


def pack(bundle: Bundle) -> bytes:
    """Return the bundle as one file's bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("run.json", _MOMENT), bundle.record)
        for digest, data in sorted(bundle.blobs.items()):
            archive.writestr(zipfile.ZipInfo(f"blobs/{digest}", _MOMENT), data)
    return buffer.getvalue()


def unpack(data: bytes) -> Bundle:
    """Read a file's bytes. Raises RecordError for anything that `pack` would not have written."""
    if len(data) > MAX_FILE_BYTES:
        raise RecordError(f"The result file has {len(data)} bytes; at most {MAX_FILE_BYTES} are accepted.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read(archive, archive.infolist())
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as error:
        raise RecordError(f"The result file is damaged ({error}).") from error


def _read(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo]) -> Bundle:
    names = [entry.filename for entry in entries]
    if len(entries) > MAX_BLOBS or len(set(names)) != len(names) or "run.json" not in names:
        raise RecordError("The result file is not one: it has too many entries, one twice, or no run.json.")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise RecordError("The result file is not one: an entry is compressed.")
    # Stored entries cannot hold more than the file itself, so the sizes are bounded already.
    record = b""
    blobs: dict[str, bytes] = {}
    for entry in entries:
        content = archive.read(entry)
        folder, _, digest = entry.filename.partition("/")
        if entry.filename == "run.json":
            record = content
        elif folder != "blobs" or sha256_hex(content) != digest:
            raise RecordError(f"The result file is damaged: {entry.filename[:100]!r} is not a blob under its SHA-256.")
        else:
            blobs[digest] = content
    if len(record) > MAX_RECORD_BYTES:
        raise RecordError(f"The run record has {len(record)} bytes; at most {MAX_RECORD_BYTES} are accepted.")
    return Bundle(record, blobs)


def write_durably(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: to `.part`, flushed to the disk, renamed."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
