"""The spool keeps finished runs until they are acknowledged, whatever happens to the process that wrote them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from agents.device.spool import Spool
from harness.documents import Bundle
from harness.errors import RecordError, StoreError


def bundle(run_id: str, note: str = "", blobs: tuple[bytes, ...] = (b"samples",)) -> Bundle:
    record = json.dumps({"run_id": run_id, "note": note}).encode()
    return Bundle(record, {hashlib.sha256(data).hexdigest(): data for data in blobs})


@pytest.fixture
def run_id() -> str:
    return str(uuid.uuid4())


def test_what_was_added_comes_back_byte_for_byte(tmp_path: Path, run_id: str) -> None:
    sent = bundle(run_id, blobs=(b"one", b"two" * 1000))
    receipt = Spool(tmp_path / "spool").add(sent)
    spool = Spool(tmp_path / "spool")
    assert (receipt.run_id, receipt.new) == (run_id, True)
    assert receipt.sha256 == hashlib.sha256(sent.record).hexdigest()
    assert spool.pending() == [run_id]
    assert spool.load(run_id) == sent


def test_an_entry_passes_sha256sum(tmp_path: Path, run_id: str) -> None:
    Spool(tmp_path).add(bundle(run_id, blobs=(b"one", b"two")))
    found = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / run_id, capture_output=True, text=True
    )
    assert found.returncode == 0
    assert found.stdout.count("OK") == 3


def test_the_same_bundle_twice_is_one_entry(tmp_path: Path, run_id: str) -> None:
    spool = Spool(tmp_path)
    spool.add(bundle(run_id))
    assert spool.add(bundle(run_id)).new is False
    assert spool.pending() == [run_id]


def test_another_content_under_the_same_id_is_refused_and_the_first_stays(tmp_path: Path, run_id: str) -> None:
    spool = Spool(tmp_path)
    spool.add(bundle(run_id, "first"))
    with pytest.raises(RecordError, match="another record"):
        spool.add(bundle(run_id, "second"))
    assert spool.load(run_id) == bundle(run_id, "first")


def test_a_removed_run_is_gone_and_removing_again_is_no_error(tmp_path: Path, run_id: str) -> None:
    spool = Spool(tmp_path)
    spool.add(bundle(run_id))
    spool.remove(run_id)
    spool.remove(run_id)
    assert spool.pending() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("victim", ["run.json", "blob", "SHA256SUMS"])
@pytest.mark.parametrize("harm", ["flip", "truncate", "delete"])
def test_a_damaged_entry_is_reported_and_set_aside(tmp_path: Path, run_id: str, victim: str, harm: str) -> None:
    spool = Spool(tmp_path)
    spool.add(bundle(run_id))
    file = next((tmp_path / run_id / "blobs").iterdir()) if victim == "blob" else tmp_path / run_id / victim
    data = file.read_bytes()
    if harm == "delete":
        file.unlink()
    else:
        file.write_bytes(data[:-3] if harm == "truncate" else bytes([data[0] ^ 1]) + data[1:])
    with pytest.raises(RecordError, match="damaged"):
        spool.load(run_id)
    assert spool.pending() == []
    (aside,) = spool.damaged()
    assert (tmp_path / "damaged" / aside / "blobs").is_dir()


@pytest.mark.parametrize("bad", ["../../etc/passwd", "", "x", "A" * 36, None, 7])
def test_a_run_id_that_is_no_uuid_never_becomes_a_folder(tmp_path: Path, bad: object) -> None:
    with pytest.raises(RecordError, match="run_id"):
        Spool(tmp_path / "spool").add(Bundle(json.dumps({"run_id": bad}).encode()))
    assert not (tmp_path / "spool").exists()


def test_a_blob_under_a_wrong_digest_is_refused(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(RecordError, match="SHA-256"):
        Spool(tmp_path).add(Bundle(bundle(run_id).record, {"0" * 64: b"other"}))
    assert Spool(tmp_path).pending() == []


def test_a_spool_that_cannot_be_written_says_so(tmp_path: Path, run_id: str) -> None:
    (tmp_path / "spool").write_text("a file stands where the folder should be")
    with pytest.raises(StoreError, match="could not be written"):
        Spool(tmp_path / "spool").add(bundle(run_id))


def test_abandoned_folders_are_finished_when_whole_and_set_aside_when_not(tmp_path: Path, run_id: str) -> None:
    spool = Spool(tmp_path)
    other = str(uuid.uuid4())
    for name in (run_id, other):
        spool.add(bundle(name))
        (tmp_path / name).rename(tmp_path / f".incoming-{name}")
    (tmp_path / f".incoming-{other}" / "SHA256SUMS").unlink()
    assert spool.pending() == []  # their writers may still live
    for name in (run_id, other):
        os.utime(tmp_path / f".incoming-{name}", (time.time() - 3600, time.time() - 3600))
    assert spool.pending() == [run_id]
    assert spool.load(run_id) == bundle(run_id)
    assert len(spool.damaged()) == 1


KILLED_WRITER = """
import json, os, sys, uuid
sys.path.insert(0, {root!r})
from pathlib import Path
from agents.device.spool import Spool
from harness.documents import Bundle
from harness.canonical import sha256_hex
# The point to die at: the Nth call of the operating system's fsync or rename.
left = int(sys.argv[2])
def dying(real):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
        return real(*args, **kwargs)
    return call
os.fsync, os.rename = dying(os.fsync), dying(os.rename)
blob = b"x" * 10000
run_id = "11111111-2222-4333-8444-555555555555"
Spool(Path(sys.argv[1])).add(Bundle(json.dumps({{"run_id": run_id}}).encode(), {{sha256_hex(blob): blob}}))
"""


def test_a_writer_killed_at_any_point_leaves_a_whole_entry_or_none(tmp_path: Path) -> None:
    code = KILLED_WRITER.format(root=str(Path(__file__).parents[2]))
    outcomes = []
    for point in range(12):
        folder = tmp_path / str(point)
        done = subprocess.run([sys.executable, "-c", code, str(folder), str(point)], capture_output=True)
        spool = Spool(folder)
        pending = spool.pending()
        for run_id in pending:
            assert len(spool.load(run_id).blobs) == 1
        assert done.returncode in (0, -9), done.stderr
        outcomes.append((done.returncode, len(pending)))
        if done.returncode == 0:
            break
    assert outcomes[0] == (-9, 0)
    assert outcomes[-1] == (0, 1)
