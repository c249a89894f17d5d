"""A bundle as one file: the same bytes back, and nothing else gets in."""

from __future__ import annotations

import hashlib
import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.device.bundle_file import pack, unpack
from harness.documents import Bundle
from harness.errors import RecordError


def bundle(*blobs: bytes) -> Bundle:
    return Bundle(b'{"run_id": "x"}', {hashlib.sha256(data).hexdigest(): data for data in blobs})


@given(st.lists(st.binary(max_size=200), max_size=4))
def test_a_bundle_comes_back_byte_for_byte(blobs: list[bytes]) -> None:
    sent = bundle(*blobs)
    assert unpack(pack(sent)) == sent
    assert pack(sent) == pack(unpack(pack(sent)))


def archive(*entries: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, data in entries:
            file.writestr(name, data)
    return buffer.getvalue()


def listed(*entries: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """With a list of checksums that is right."""
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in entries)
    return archive(*entries, ("SHA256SUMS", sums.encode()), compression=compression)


def test_a_file_with_a_right_list_is_read() -> None:
    assert unpack(listed(("run.json", b"{}"))) == Bundle(b"{}", {})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a zip",
        archive(("other", b"x")),
        archive(("run.json", b"{}")),
        listed(("run.json", b"{}"), ("blobs/../../etc/passwd", b"x")),
        listed(("run.json", b"{}"), ("blobs/" + "0" * 64, b"x")),
        listed(("run.json", b"{}"), ("notes.txt", b"x")),
        listed(("other.json", b"{}")),
        listed(("run.json", bytes(10_000_000)), compression=zipfile.ZIP_DEFLATED),  # a bomb in the making
    ],
)
def test_what_pack_would_not_write_is_refused(data: bytes) -> None:
    with pytest.raises(RecordError):
        unpack(data)


def test_an_entry_that_comes_twice_is_refused() -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        data = listed(("run.json", b"{}"), ("run.json", b"[]"))
    with pytest.raises(RecordError, match="twice"):
        unpack(data)


@given(st.integers(min_value=0), st.integers(min_value=1, max_value=255))
def test_a_flipped_byte_never_passes_as_another_blob(position: int, flip: int) -> None:
    sent = bundle(b"samples" * 10)
    data = bytearray(pack(sent))
    data[position % len(data)] ^= flip
    try:
        found = unpack(bytes(data))
    except RecordError:
        return
    assert found == sent  # the byte was in a field that carries no content, such as a date
