"""A device has a name given by a person and a UUID made once; a clone is refused."""

from __future__ import annotations

import errno
import json
import uuid
from pathlib import Path

import pytest

from agents.device.identity import this_device
from harness.errors import UsageError, WeighbridgeError


def _machine(root: Path, machine_id: str) -> Path:
    (root / "etc").mkdir(parents=True, exist_ok=True)
    (root / "etc/machine-id").write_text(machine_id + "\n")
    return root


def test_the_uuid_is_made_once(tmp_path: Path) -> None:
    root = _machine(tmp_path, "aa11")
    assert uuid.UUID(this_device(root).uuid)
    assert this_device(root).uuid == this_device(root).uuid


def test_the_machine_id_itself_is_not_kept(tmp_path: Path, own_folders: Path) -> None:
    this_device(_machine(tmp_path, "secret-machine-id"))
    assert "secret-machine-id" not in (own_folders / "data/device.json").read_text()


def test_a_data_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("WEIGHBRIDGE_DATA", str(tmp_path / "file" / "data"))
    with pytest.raises(WeighbridgeError, match=r"device\.json cannot be") as caught:
        this_device(_machine(tmp_path, "aa11"))
    assert "WEIGHBRIDGE_DATA" in caught.value.fix


def test_a_disk_that_is_full_leaves_no_half_identity(
    tmp_path: Path, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str, encoding: str) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(WeighbridgeError, match=r"cannot be written to .*: No space left on device") as caught:
        this_device()
    assert "WEIGHBRIDGE_DATA" in caught.value.fix
    assert list((own_folders / "data").iterdir()) == []


def test_a_clone_is_refused(tmp_path: Path) -> None:
    this_device(_machine(tmp_path / "first", "aa11"))
    with pytest.raises(UsageError, match="another machine"):
        this_device(_machine(tmp_path / "second", "bb22"))


@pytest.mark.parametrize(
    "document", [{"uuid": "nonsense"}, {"uuid": 5}, {}, [], {"uuid": "8279E1E3-31DB-4831-BFE2-039BF3F0BFFD"}]
)
def test_a_damaged_identity_is_said_not_replaced(tmp_path: Path, own_folders: Path, document: object) -> None:
    root = _machine(tmp_path, "aa11")
    this_device(root)
    (own_folders / "data/device.json").write_text(json.dumps(document))
    with pytest.raises(UsageError, match="damaged"):
        this_device(root)


def test_the_name_can_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_DEVICE", "lab-pi5-01")
    assert this_device(tmp_path).name == "lab-pi5-01"


@pytest.mark.parametrize("name", ["../etc", "a b", "<script>", "-x", "x" * 64])
def test_a_name_that_could_be_a_path_or_markup_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_DEVICE", name)
    with pytest.raises(UsageError, match="not usable"):
        this_device(tmp_path)
