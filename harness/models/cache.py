"""The content-addressed cache: a file lies under its own SHA-256, and is checked against it before it is used.

Layout below the root: `sha256/ab/cdef...SUFFIX` (files; an .mlpackage folder beside its .zip), `built/` (manifests of what
was built from what), `partial/` (downloads that can go on), `locks/`, `tmp/`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.errors import ModelError

BLOCK = 1 << 20
LEFT_BEHIND_S = 24 * 3600.0

_verified: dict[tuple[str, str], tuple[int, int]] = {}  # (path, sha256) -> (size, mtime_ns) when it was last right


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content. OSError as it comes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


class DamagedFileError(ModelError):
    """A cached file is not what its name says."""


class Cache:
    """The cache below one folder. Nothing is made until something is written."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path_of(self, sha256: str, suffix: str = "") -> Path:
        """Return where a file of this digest lies, whether or not it does."""
        return self.root / "sha256" / sha256[:2] / f"{sha256[2:]}{suffix}"

    def holds(self, sha256: str, size: int | None = None, suffix: str = "") -> bool:
        """Say whether the file seems to be there (its size is looked at, not its content)."""
        try:
            found = self.path_of(sha256, suffix).stat()
        except OSError:
            return False
        return size is None or found.st_size == size

    def find(self, sha256: str, size: int | None = None, suffix: str = "") -> Path | None:
        """Return the file if it is there and its content is right; None if it is not there.

        The whole content is hashed at the first use in a process, and again when size or time stamp changed since.
        Raises DamagedFileError when the content is not what the name says; the damaged file is removed first where
        that is possible.
        """
        path = self.path_of(sha256, suffix)
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise cache_error(self.root, error) from error
        key, stamp = (str(path), sha256), (found.st_size, found.st_mtime_ns)
        if _verified.get(key) == stamp:
            return path
        try:
            right = (size is None or found.st_size == size) and sha256_of(path) == sha256
        except OSError as error:
            raise cache_error(self.root, error) from error
        if right:
            _verified[key] = stamp
            return path
        try:
            path.unlink()
        except OSError as error:
            raise ModelError(
                f"The cached file {path} is damaged: its content does not have the SHA-256 {sha256}.",
                f"It cannot be removed ({error.strerror}); delete it, then try again.",
            ) from error
        raise DamagedFileError(
            f"The cached file {path} was damaged: its content did not have the SHA-256 {sha256}.",
            "It was removed; with a network it is fetched or built again.",
        )

    def add_bytes(self, data: bytes, suffix: str = "") -> tuple[str, Path]:
        """Store `data` atomically and return its digest and path. Raises ModelError when the cache cannot be written."""
        sha256 = hashlib.sha256(data).hexdigest()
        with self.working_folder() as folder:
            temporary = folder / "data"
            with self.writing():
                temporary.write_bytes(data)
            return sha256, self.add_file(temporary, sha256, suffix)

    def add_file(self, temporary: Path, sha256: str, suffix: str = "") -> Path:
        """Move a file, already known to have this digest, to its place."""
        path = self.path_of(sha256, suffix)
        with self.writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("rb+") as stream:
                os.fsync(stream.fileno())
            os.replace(temporary, path)
            found = path.stat()
        _verified[(str(path), sha256)] = (found.st_size, found.st_mtime_ns)
        return path

    @contextmanager
    def working_folder(self) -> Iterator[Path]:
        """Make a folder on the cache's own file system, gone afterwards."""
        with self.writing():
            parent = self.root / "tmp"
            parent.mkdir(parents=True, exist_ok=True)
            for left in parent.iterdir():  # by a process that was killed
                with suppress(FileNotFoundError):  # by one that lives, and is done with it by now
                    if time.time() - left.stat().st_mtime > LEFT_BEHIND_S:
                        shutil.rmtree(left, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(dir=parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock between processes, so that a file is fetched or built once. Waits as long as it takes."""
        from filelock import FileLock

        with self.writing():
            folder = self.root / "locks"
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / f"{name}.lock")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn an OSError inside into one sentence about the cache folder."""
        try:
            yield
        except OSError as error:
            raise cache_error(self.root, error) from error


def used_files() -> tuple[Path, ...]:
    """Return the cached files that this process has found or added since `forget_used_files`.

    `weigh fleet` asks for them, to bring a device just what its run needs.
    """
    return tuple(Path(path) for path, _ in _verified)


def forget_used_files() -> None:
    """Begin anew; every file is then hashed again at its next use."""
    _verified.clear()


def cache_error(root: Path, error: OSError) -> ModelError:
    """Return one sentence for a cache that cannot be used."""
    why = error.strerror or str(error)
    if error.errno == errno.ENOSPC:
        return ModelError(
            f"The cache folder {root} is on a full disk.",
            "Free some space, or set WEIGHBRIDGE_CACHE to another folder.",
        )
    return ModelError(
        f"The cache folder {root} cannot be used: {why}.", "Set WEIGHBRIDGE_CACHE to a folder that can be written."
    )
