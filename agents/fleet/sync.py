"""Bring a device's cache what a run needs, compared by SHA-256 where it lies: what is there already is not sent again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from agents.fleet.transport import Connection

BATCH_BYTES = 32 * 1024 * 1024
BATCH_FILES = 200

Say = Callable[[str], None]


def send_files(connection: Connection, local: Path, names: tuple[str, ...], remote: str, say: Say) -> int:
    """Bring files below `local` to the same names below `remote`; returns how many were sent. Raises TransportError.

    Each appears whole or not at all, and only with the right SHA-256.
    """
    digests = {name: _sha256(local / name) for name in names}
    there = connection.digests([f"{remote}/{name}" for name in names])
    missing = [name for name in names if there[f"{remote}/{name}"] != digests[name]]
    for folder in sorted({str(PurePosixPath(remote, name).parent) for name in missing}):
        connection.make_folder(folder)
    sent = 0
    for batch in _batches({name: (local / name).stat().st_size for name in missing}):
        say(f"sending models and data: {sent} of {len(missing)} files")
        expected = {f"{remote}/{name}": digests[name] for name in batch}
        connection.upload_all([(local / name, f"{remote}/{name}") for name in batch], expected)
        sent += len(batch)
    return sent


def _batches(sizes: Mapping[str, int]) -> list[list[str]]:
    """Group files so that a broken link costs little and small files share one command."""
    batches: list[list[str]] = []
    weight = BATCH_BYTES
    for name, size in sizes.items():
        if weight + size > BATCH_BYTES or len(batches[-1]) >= BATCH_FILES:
            batches.append([])
            weight = 0
        batches[-1].append(name)
        weight += size
    return batches


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
