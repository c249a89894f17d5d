"""Packs the worker: an allow-listed zipapp of our own modules, so that nothing of the parent's environment leaks in.

It holds each module as source and as bytecode of this interpreter; another interpreter's zipimport passes over the
bytecode and compiles the source. The file is named by what is in it, so that it is written once per version.
"""

from __future__ import annotations

import hashlib
import importlib.util
import marshal
import os
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import IO

from harness.errors import WeighbridgeError

ALLOWED = (
    "backends",
    "harness/__init__.py",
    "harness/artifacts.py",
    "harness/canonical.py",
    "harness/errors.py",
    "harness/records",
    "harness/scenarios",
    "harness/tasks",
    "harness/worker",
)
EXCLUDED = ("harness/worker/pack.py",)
MAIN = b"import sys\n\nfrom harness.worker.main import main\n\nsys.exit(main(sys.argv[1:]))\n"
EPOCH = (1980, 1, 1, 0, 0, 0)


def worker_archive(cache: Path) -> Path:
    """Return the packed worker in the cache, writing it first where it is not there.

    Raises WeighbridgeError where the cache cannot be written.
    """
    modules = _modules()
    digest = hashlib.sha256(importlib.util.MAGIC_NUMBER + sys.implementation.cache_tag.encode())
    for name, source in modules.items():
        digest.update(f"{name}\0{len(source)}\0".encode() + source)
    path = cache / "workers" / f"worker-{digest.hexdigest()[:32]}.pyz"
    if path.is_file():
        return path
    part: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=".worker-")
        with os.fdopen(handle, "wb") as file:
            _write(file, modules)
        os.replace(part, path)
    except OSError as error:
        if part is not None:
            Path(part).unlink(missing_ok=True)  # on a full disk, half a worker at each try would not help
        raise WeighbridgeError(
            f"The worker cannot be written into the cache {path.parent}: {error.strerror or error}.",
            "Make that folder writable, or set WEIGHBRIDGE_CACHE to another one.",
        ) from error
    return path


def _modules() -> dict[str, bytes]:
    root = Path(__file__).resolve().parents[2]
    found: dict[str, bytes] = {"__main__.py": MAIN}
    for name in ALLOWED:
        place = root / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            relative = path.relative_to(root).as_posix()
            if path.suffix == ".py" and relative not in EXCLUDED:
                found[relative] = path.read_bytes()
    return found


def _write(file: IO[bytes], modules: dict[str, bytes]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, source in sorted(modules.items()):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), source)
            if name != "__main__.py":  # runpy wants the source of the main module
                archive.writestr(zipfile.ZipInfo(f"{name}c", EPOCH), _bytecode(name, source))


def _bytecode(name: str, source: bytes) -> bytes:
    """Return a .pyc that is tied to nothing (PEP 552, unchecked hash), as zipimport takes it."""
    code = compile(source, name, "exec", dont_inherit=True)
    return (
        importlib.util.MAGIC_NUMBER
        + (1).to_bytes(4, "little")
        + importlib.util.source_hash(source)
        + marshal.dumps(code)
    )
