"""Downloads that go on where they broke off, against a real HTTP server on loopback."""

from __future__ import annotations

import hashlib
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ModelError
from harness.models.download import download
from harness.models.progress import SilentProgress

CONTENT = random.Random(1).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def fetched(server: Any, part: Path, sha256: str = SHA256, size: int | None = len(CONTENT)) -> bytes:
    download(server.url, part, sha256, size, SilentProgress(), pause_s=0.0)
    return part.read_bytes()


def test_a_file_is_fetched_with_one_request(web_server: Any, tmp_path: Path) -> None:
    web_server.content = CONTENT
    assert fetched(web_server, tmp_path / "part") == CONTENT
    assert web_server.seen == [None]


def test_a_broken_connection_is_taken_up_where_it_broke(web_server: Any, tmp_path: Path) -> None:
    web_server.content, web_server.breaks = CONTENT, [100_000, 50_000]
    assert fetched(web_server, tmp_path / "part") == CONTENT
    assert web_server.seen[0] is None and len(web_server.seen) == 3
    assert web_server.seen[1] == "bytes=100000-" and web_server.seen[2] == "bytes=150000-"


def test_the_next_process_goes_on_with_what_lies_there(web_server: Any, tmp_path: Path) -> None:
    web_server.content = CONTENT
    (tmp_path / "part").write_bytes(CONTENT[:200_000])
    assert fetched(web_server, tmp_path / "part") == CONTENT
    assert web_server.seen == ["bytes=200000-"]


def test_without_a_pinned_size_a_body_is_still_bounded(
    web_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web_server.content = CONTENT
    monkeypatch.setattr("harness.models.download.MOST_BYTES", 100_000)
    with pytest.raises(ModelError, match="more than the 100000 bytes"):
        fetched(web_server, tmp_path / "part", size=None)
    assert (tmp_path / "part").stat().st_size <= 100_000


def test_a_server_without_ranges_is_read_from_the_start(web_server: Any, tmp_path: Path) -> None:
    web_server.content, web_server.ranges = CONTENT, False
    (tmp_path / "part").write_bytes(CONTENT[:200_000])
    assert fetched(web_server, tmp_path / "part") == CONTENT


def test_another_piece_than_asked_for_is_not_appended(web_server: Any, tmp_path: Path) -> None:
    web_server.content, web_server.shift = CONTENT, 7
    (tmp_path / "part").write_bytes(CONTENT[:200_000])
    assert fetched(web_server, tmp_path / "part") == CONTENT


def test_a_half_of_an_older_version_is_thrown_away(web_server: Any, tmp_path: Path) -> None:
    web_server.content = CONTENT
    (tmp_path / "part").write_bytes(b"x" * 200_000)
    assert fetched(web_server, tmp_path / "part") == CONTENT
    assert web_server.seen == ["bytes=200000-", None]


def test_a_complete_file_that_waited_for_its_check_is_not_asked_for_again(web_server: Any, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(CONTENT)
    assert fetched(web_server, tmp_path / "part") == CONTENT
    assert web_server.seen == []


def test_the_wrong_content_names_file_source_and_both_hashes(web_server: Any, tmp_path: Path) -> None:
    web_server.content = bytes(len(CONTENT))
    with pytest.raises(ModelError) as error:
        fetched(web_server, tmp_path / "part")
    for part in ("model.onnx", web_server.url, SHA256, hashlib.sha256(bytes(len(CONTENT))).hexdigest(), "not used"):
        assert part in str(error.value)
    assert not (tmp_path / "part").exists()


def test_more_bytes_than_pinned_are_not_swallowed(web_server: Any, tmp_path: Path) -> None:
    web_server.content = CONTENT + bytes(10_000_000)
    with pytest.raises(ModelError, match="more than the 300000 bytes"):
        fetched(web_server, tmp_path / "part")


def test_a_refusal_of_the_server_is_said(web_server: Any, tmp_path: Path) -> None:
    web_server.status = 404
    with pytest.raises(ModelError, match="answers 404"):
        fetched(web_server, tmp_path / "part")
    assert len(web_server.seen) == 1


def test_no_server_gives_one_sentence_with_a_way_out(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ModelError, match=r"cannot be fetched: .*Connect this machine to a network"):
        download(f"http://127.0.0.1:{port}/model.onnx", tmp_path / "part", SHA256, None, SilentProgress(), pause_s=0.0)


def test_a_server_that_hangs_up_at_once_each_time_is_given_up(web_server: Any, tmp_path: Path) -> None:
    web_server.content, web_server.breaks = CONTENT, [0] * 20
    with pytest.raises(ModelError, match="cannot be fetched"):
        fetched(web_server, tmp_path / "part")
    assert len(web_server.seen) == 4
