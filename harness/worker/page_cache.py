"""The operating system's cache of a model's files: read through, or dropped, and then looked at page by page.

What is returned is the state as it was seen, not as it was asked for: "warm", "cold", or "not controlled: why". Cold means
that no page lies in this system's memory; a host below a virtual machine and the drive itself may still hold the data.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from backends.base import OptionUnsupported

READ_BYTES = 1 << 20
DROPS = 5  # a page that somebody touches just now stays
BETWEEN_DROPS_S = 0.02
UNASKED = "not controlled: the system may hold it in memory"


def files_of(model: Path) -> tuple[Path, ...]:
    """Return the files that belong to a model: all of its folder, or the file and those beside it with its weights.

    OpenVINO's model.xml has model.bin; ONNX keeps large weights in files whose names begin with the model's.
    """
    if model.is_dir():
        return tuple(sorted(path for path in model.rglob("*") if path.is_file()))
    beside = [
        path
        for path in model.parent.iterdir()
        if path.is_file()
        and path != model
        and path.name.startswith((f"{model.stem}.bin", f"{model.name}.", f"{model.name}_"))
    ]
    return (model, *sorted(beside))


def read_through(files: Sequence[Path]) -> str:
    """Read every byte, and return "warm" where all pages are then in memory, as far as the system tells."""
    buffer = bytearray(READ_BYTES)
    for path in files:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    share = resident_share(files)
    if share is None or share == 1.0:
        return "warm"  # all of it has just been read
    return f"not controlled: only {share:.0%} of the pages stayed in memory after they were read"


def drop(files: Sequence[Path]) -> str:
    """Ask the system to forget the files' pages, and return "cold" where none is left.

    Raises OptionUnsupported where the system has no such call.
    """
    if not hasattr(os, "posix_fadvise"):
        raise OptionUnsupported(
            f"A file's pages cannot be dropped on {sys.platform}, so a cold file cache cannot be made.",
            'Ask for file_cache = "warm".',
        )
    share: float | None = 1.0
    for _ in range(DROPS):
        for path in files:
            _forget(path)
        share = resident_share(files)
        if not share:
            break
        time.sleep(BETWEEN_DROPS_S)
    if share is None:
        return "not controlled: dropped, but this file system does not tell which pages are in memory"
    if share > 0.0:
        return f"not controlled: {share:.1%} of the pages stayed in memory, which another process may be using"
    return "cold"


def _forget(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)  # pages that are not yet on the drive stay where they are
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def resident_share(files: Iterable[Path]) -> float | None:
    """Return the share of the files' pages that are in memory; None where the system does not tell.

    A read that must not wait (preadv2 with RWF_NOWAIT) gives a page that is there, and EAGAIN for one that is not, which it
    does not fetch.
    """
    if not hasattr(os, "preadv") or not hasattr(os, "RWF_NOWAIT"):
        return None
    buffers = [bytearray(1)]
    seen = there = 0
    for path in files:
        handle = os.open(path, os.O_RDONLY)
        try:
            for offset in range(0, os.fstat(handle).st_size, mmap.PAGESIZE):
                seen += 1
                try:
                    there += os.preadv(handle, buffers, offset, os.RWF_NOWAIT)
                except BlockingIOError:
                    continue
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
                return None
            raise
        finally:
            os.close(handle)
    return there / seen if seen else None
