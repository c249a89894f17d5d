"""The operating system's cache of a model's files: read through, or dropped, and then looked at page by page.

What is returned is the state as it was seen, not as it was asked for: "warm", "cold", or "not controlled: why". Cold means
that no page lies in this system's memory; a host below a virtual machine and the drive itself may still hold the data.
"""

from __future__ import annotations

import ctypes
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
MAP_FAILED = ctypes.c_void_p(-1).value


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

    mincore looks and touches nothing. (A read that must not wait, RWF_NOWAIT, would begin to read ahead, and so bring back
    what it looks for.) Linux answers it for files that we own or may write, and says "all" of others.
    """
    libc = _libc()
    if libc is None:
        return None
    seen = there = 0
    for path in files:
        found = _resident(libc, path)
        if found is None:
            return None
        there += found[0]
        seen += found[1]
    return there / seen if seen else None


def _libc() -> ctypes.CDLL | None:
    if os.name != "posix":
        return None
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
        )  # fmt: skip
        libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
        libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    except (OSError, AttributeError):
        return None
    return libc


def _resident(libc: ctypes.CDLL, path: Path) -> tuple[int, int] | None:
    """Return how many of a file's pages are in memory, and of how many; None where it cannot be mapped or asked."""
    handle = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(handle).st_size
        if size == 0:
            return 0, 0
        pages = -(-size // mmap.PAGESIZE)
        address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, handle, 0)
        if address is None or address == MAP_FAILED:
            return None
        try:
            states = ctypes.create_string_buffer(pages)
            if libc.mincore(address, size, states) != 0:
                return None
            return sum(state & 1 for state in states.raw), pages
        finally:
            libc.munmap(address, size)
    finally:
        os.close(handle)
