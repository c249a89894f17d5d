"""A bundle as one file: a ZIP without compression, laid out like a spool's entry. The blobs are packed already.

Read as untrusted: only these names, sizes limited before anything is read, every blob checked against its name.
"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from agents.device.spool import BLOBS, RECORD, SUMS
from harness.canonical import sha256_hex
from harness.documents import MAX_RECORD_BYTES, Bundle
from harness.errors import RecordError

MAX_FILE_BYTES = 512 * 1024 * 1024
MAX_BLOBS = 100_000
_MOMENT = (1980, 1, 1, 0, 0, 0)  # the same bundle is the same file


def pack(bundle: Bundle) -> bytes:
    """Return the bundle as one file's bytes."""
    files = {RECORD: bundle.record, **{f"{BLOBS}/{digest}": data for digest, data in sorted(bundle.blobs.items())}}
    sums = "".join(f"{sha256_hex(data)}  {name}\n" for name, data in files.items())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {**files, SUMS: sums.encode()}.items():
            archive.writestr(zipfile.ZipInfo(name, _MOMENT), data)
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
    if len(entries) > MAX_BLOBS or len(set(names)) != len(names) or not {RECORD, SUMS} <= set(names):
        raise RecordError(f"The result file is not one: too many entries, one twice, or no {RECORD} and {SUMS}.")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise RecordError("The result file is not one: an entry is compressed.")
    # Stored entries cannot hold more than the file itself, so the sizes are bounded already.
    contents = {entry.filename: archive.read(entry) for entry in entries}
    sums = contents.pop(SUMS).decode("ascii", errors="replace")
    if sums != "".join(f"{sha256_hex(data)}  {name}\n" for name, data in contents.items()):
        raise RecordError(f"The result file is damaged: its contents are not those that {SUMS} lists.")
    record = contents.pop(RECORD)
    if len(record) > MAX_RECORD_BYTES:
        raise RecordError(f"The run record has {len(record)} bytes; at most {MAX_RECORD_BYTES} are accepted.")
    blobs = {}
    for name, data in contents.items():
        folder, _, digest = name.partition("/")
        if folder != BLOBS or sha256_hex(data) != digest:
            raise RecordError(f"The result file is damaged: {name[:100]!r} is not a blob under its SHA-256.")
        blobs[digest] = data
    return Bundle(record, blobs)


def write_durably(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: to `.part`, flushed to the disk, renamed."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
