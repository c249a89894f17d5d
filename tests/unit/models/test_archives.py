"""Archives are untrusted: what they hold may not reach outside the folder, and may not be endless."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from harness.errors import ModelError
from harness.models.archives import extract_folder, extract_member, folder_matches, pack_folder


def zipped(path: Path, members: dict[str, bytes], modes: dict[str, int] | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (modes or {}).get(name, stat.S_IFREG | 0o644) << 16
            archive.writestr(info, data)
    return path


def tarred(path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def tar_info(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def test_a_member_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.whl", {"pkg/model.onnx": b"weights", "pkg/other": b""})
    extract_member(archive, "pkg/model.onnx", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"weights"


def test_a_tar_file_is_read_as_well(tmp_path: Path) -> None:
    archive = tarred(tmp_path / "a.tar.gz", [(tar_info("d/tweets.txt"), b"text")])
    extract_member(archive, "d/tweets.txt", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"text"


def test_a_member_that_is_not_there_is_named(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.whl", {"here": b""})
    with pytest.raises(ModelError, match=r"a\.whl does not hold 'gone'"):
        extract_member(archive, "gone", tmp_path / "out")


@pytest.mark.parametrize(
    "name",
    ["f/../../evil", "f//../evil/../../evil", "f/..", "f/C:evil", "f/sub\\..\\..\\evil"],
)
def test_no_name_leaves_the_folder(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "deep" / "inside"
    inside.mkdir(parents=True)
    archive = zipped(tmp_path / "a.zip", {name: b"evil"})
    with pytest.raises(ModelError, match="outside the folder"):
        extract_folder(archive, "f/", inside)
    assert not list(tmp_path.rglob("*evil*"))


def test_an_absolute_name_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "evil"
    archive = zipped(tmp_path / "a.zip", {str(target): b"evil"})
    with pytest.raises(ModelError, match="outside the folder"):
        extract_folder(archive, "", tmp_path / "inside")
    assert not target.exists()


def test_a_symbolic_link_in_a_zip_file_is_refused(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"f/link": b"/etc/passwd"}, {"f/link": stat.S_IFLNK | 0o777})
    with pytest.raises(ModelError, match="is a link"):
        extract_folder(archive, "f/", tmp_path / "inside")
    with pytest.raises(ModelError, match="is a link"):
        extract_member(archive, "f/link", tmp_path / "out")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_file_are_refused(tmp_path: Path, kind: bytes) -> None:
    archive = tarred(tmp_path / "a.tar.gz", [(tar_info("f/x", kind, "/etc/passwd"), b"")])
    with pytest.raises(ModelError, match="is a link"):
        extract_folder(archive, "f/", tmp_path / "inside")
    assert not (tmp_path / "inside" / "x").exists()


def test_a_file_cannot_be_written_through_a_link_made_before(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    members = [(tar_info("f/d", tarfile.SYMTYPE, str(outside)), b""), (tar_info("f/d/evil"), b"evil")]
    with pytest.raises(ModelError):
        extract_folder(tarred(tmp_path / "a.tar.gz", members), "f/", tmp_path / "inside")
    assert not list(outside.iterdir())


def test_a_bomb_stops_at_the_limit(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "bomb.zip", {"f/zeros": bytes(50_000_000)})
    assert archive.stat().st_size < 100_000
    with pytest.raises(ModelError, match="more than 1000000 bytes"):
        extract_member(archive, "f/zeros", tmp_path / "out", limit=1_000_000)
    assert (tmp_path / "out").stat().st_size <= 1_000_000


def test_the_limit_counts_all_files_of_a_folder(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {f"f/{n}": bytes(600) for n in range(2)})
    with pytest.raises(ModelError, match="more than"):
        extract_folder(archive, "f/", tmp_path / "inside", limit=1000)


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("f/x", b"one")
        archive.writestr("f/x", b"two")
    with pytest.raises(ModelError, match="twice"):
        extract_member(path, "f/x", tmp_path / "out")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 not really", b"\x1f\x8b\x08\x00 nor this", b"text"])
def test_what_is_no_archive_is_said_in_one_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.whl"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"a\.whl (cannot be read|does not hold)"):
        extract_member(path, "x", tmp_path / "out")


def test_a_flipped_byte_in_a_zip_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("f/x", b"0123456789" * 100)
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelError, match="cannot be read"):
        extract_member(path, "f/x", tmp_path / "out")


def test_a_packed_folder_depends_on_names_and_contents_only(tmp_path: Path) -> None:
    packed = []
    for place, order in (("one", ["a", "b/c"]), ("two", ["b/c", "a"])):
        for name in order:
            path = tmp_path / place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(name.encode())
        packed.append(pack_folder(tmp_path / place))
    (tmp_path / "two" / "a").chmod(0o700)
    assert packed[0] == packed[1] == pack_folder(tmp_path / "two")
    (tmp_path / "two" / "a").write_bytes(b"A")
    assert packed[0] != pack_folder(tmp_path / "two")


def test_a_folder_is_compared_with_its_zip_file(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x").write_bytes(b"abc")
    packed = tmp_path / "packed.zip"
    packed.write_bytes(pack_folder(folder))
    assert folder_matches(folder, packed)
    (folder / "x").write_bytes(b"abd")
    assert not folder_matches(folder, packed)
    (folder / "x").write_bytes(b"abc")
    (folder / "more").write_bytes(b"")
    assert not folder_matches(folder, packed)


def test_a_damaged_stream_is_said_in_one_sentence(tmp_path: Path) -> None:
    """Other bytes where the compressed ones began: zlib itself complains before any checksum is compared."""
    path = zipped(tmp_path / "a.zip", {"weights": bytes(100_000)})
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.infolist()[0].header_offset + 30 + len("weights")
    data[start : start + 8] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"a\.zip cannot be read"):
        extract_folder(path, "", tmp_path / "out")
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / "weights").write_bytes(bytes(100_000))
    assert not folder_matches(tmp_path / "out", path)
