"""Members out of wheels, sdists and tar files, and folders as one file. Archives are untrusted.

No path outside the chosen folder, no links, no devices, no more bytes or members than the limits, whatever the archive's
headers claim: what is counted is what really comes out.
"""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO

from harness.errors import ModelError

MAX_BYTES = 4 << 30  # of one member or one folder, when the catalogue pins no size
MAX_MEMBERS = 100_000
_BLOCK = 1 << 20
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)  # the zip format's zero: no clock in a digest


@dataclass(frozen=True)
class _Member:
    name: str
    is_file: bool


class _Archive:
    """What zip and tar have in common."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        self._tar: tarfile.TarFile | None = None
        self._infos: dict[str, zipfile.ZipInfo | tarfile.TarInfo] = {}

    def open(self) -> None:
        if zipfile.is_zipfile(self.path):
            self._zip = zipfile.ZipFile(self.path)
            found: list[tuple[str, zipfile.ZipInfo | tarfile.TarInfo]] = [(i.filename, i) for i in self._zip.infolist()]
        else:
            self._tar = tarfile.open(self.path)  # noqa: SIM115 - closed by close()
            found = []
            for member in self._tar:
                found.append((member.name, member))
                if len(found) > MAX_MEMBERS:
                    break
        if len(found) > MAX_MEMBERS:
            raise ModelError(f"The archive {self.path.name} is refused: it has more than {MAX_MEMBERS} members.")
        for name, info in found:
            if name in self._infos:
                raise ModelError(f"The archive {self.path.name} is refused: it holds {name!r} twice.")
            self._infos[name] = info

    def close(self) -> None:
        for archive in (self._zip, self._tar):
            if archive is not None:
                archive.close()

    def members(self) -> list[_Member]:
        return [_Member(name, _is_file(info)) for name, info in self._infos.items()]

    def stream(self, name: str) -> IO[bytes]:
        info = self._infos.get(name)
        if info is None:
            raise ModelError(f"The archive {self.path.name} does not hold {name!r}.")
        if not _is_file(info):
            raise ModelError(f"The archive {self.path.name} is refused: {name!r} is a link, a folder or a device.")
        if isinstance(info, zipfile.ZipInfo):
            assert self._zip is not None
            return self._zip.open(info)
        assert self._tar is not None
        found = self._tar.extractfile(info)
        assert found is not None  # only of what is no file
        return found


def extract_member(archive: Path, member: str, destination: Path, limit: int = MAX_BYTES) -> None:
    """Write one member of a zip or tar file to `destination`. The member's name is only looked up, never used as a path.

    Raises ModelError when the archive cannot be read, lacks the member, or gives more than `limit` bytes.
    """
    with _opened(archive) as opened, opened.stream(member) as source, destination.open("wb") as sink:
        _copy(source, sink, archive, member, limit)


def extract_folder(archive: Path, prefix: str, destination: Path, limit: int = MAX_BYTES) -> None:
    """Write all files whose name begins with `prefix` (empty, or ending with a slash) below `destination`.

    Raises ModelError for a name that leaves the folder, a link, and too many bytes; then nothing useful is left there.
    """
    count = 0
    with _opened(archive) as opened:
        for member in opened.members():
            if not member.name.startswith(prefix) or member.name.endswith("/") or member.name == prefix.rstrip("/"):
                continue
            target = safe_join(destination, member.name[len(prefix) :], archive.name)
            with opened.stream(member.name) as source:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as sink:
                    limit -= _copy(source, sink, archive, member.name, limit)
            count += 1
    if not count:
        raise ModelError(f"The archive {archive.name} holds nothing below {prefix!r}.")


def safe_join(folder: Path, name: str, archive: str) -> Path:
    """Return the path of an archive's member below `folder`. Raises ModelError when it would lie elsewhere."""
    parts = PurePosixPath(name).parts
    wrong = not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name or ":" in name
    if wrong:
        raise ModelError(f"The archive {archive} is refused: its member {name!r} would lie outside the folder.")
    return folder.joinpath(*parts)


def pack_folder(folder: Path) -> bytes:
    """Return a folder as a zip file whose bytes depend on names and contents only: sorted, stored, no dates, no modes."""
    sink = BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as packed:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _ZIP_DATE)
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            info.create_system = 3  # the same on every system
            packed.writestr(info, path.read_bytes())
    return sink.getvalue()


def folder_matches(folder: Path, packed: Path) -> bool:
    """Say whether a folder holds exactly the files of a zip file, byte for byte."""
    try:
        with zipfile.ZipFile(packed) as archive:
            names = {i.filename for i in archive.infolist() if not i.is_dir()}
            found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
            return names == found and all(archive.read(n) == (folder / n).read_bytes() for n in names)
    except (OSError, zipfile.BadZipFile, zlib.error):
        return False


def _is_file(info: zipfile.ZipInfo | tarfile.TarInfo) -> bool:
    if isinstance(info, tarfile.TarInfo):
        return info.isreg()
    kind = stat.S_IFMT(info.external_attr >> 16)
    return not info.is_dir() and kind in (0, stat.S_IFREG)


def _copy(source: IO[bytes], sink: IO[bytes], archive: Path, member: str, limit: int) -> int:
    done = 0
    while block := source.read(_BLOCK):
        done += len(block)
        if done > limit:
            raise ModelError(f"The archive {archive.name} is refused: {member!r} gives more than {limit} bytes.")
        sink.write(block)
    return done


@contextmanager
def _opened(path: Path) -> Iterator[_Archive]:
    archive = _Archive(path)
    try:
        archive.open()
        yield archive
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"The archive {path.name} cannot be read: {error}.", "Fetch it again.") from error
    except ValueError as error:
        raise ModelError(f"The archive {path.name} cannot be read: {error}.", "Fetch it again.") from error
    finally:
        archive.close()


def remove_tree(path: Path) -> None:
    """Remove a folder, silently when it is not there."""
    shutil.rmtree(path, ignore_errors=True)
