"""Cases 9 and 12: environments are told apart; two machines are never one device, one machine is never many."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

import pytest

from agents.device.identity import this_device
from harness.conditions.throttling import PiThrottling
from harness.conditions.window import conditions_of
from harness.environment import collect
from harness.errors import UsageError
from harness.judgement.disturbance import flags_of
from harness.judgement.environment_difference import explain

SERVER = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Test CPU 9000\nmicrocode\t: 0x1\n\n",
    "proc/sys/kernel/osrelease": "6.1.0\n",
    "etc/machine-id": "aaaa1111\n",
}

SERIAL = "proc/device-tree/serial-number"
BOARD = "sys/class/dmi/id/product_uuid"


def _machine(root: Path, more: Mapping[str, str] = MappingProxyType({})) -> Path:
    for name, text in {**SERVER, **more}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two data folders; each stands for the disk of a machine."""
    return tmp_path / "first-data", tmp_path / "second-data"


def _use(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_DATA", str(folder))


def test_two_equal_machines_are_two_devices(
    tmp_path: Path, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same hardware, same software, so one environment digest; and still two devices."""
    first, second = (_machine(tmp_path / name, {"etc/machine-id": f"{name}\n"}) for name in ("one", "two"))
    assert collect(first).digest == collect(second).digest
    _use(monkeypatch, folders[0])
    mine = this_device(first)
    _use(monkeypatch, folders[1])
    assert this_device(second).uuid != mine.uuid


def test_one_machine_stays_one_device_when_its_environment_changes(tmp_path: Path) -> None:
    root = _machine(tmp_path / "one")
    before, device = collect(root), this_device(root)
    (root / "proc/sys/kernel/osrelease").write_text("6.12.0\n")
    (root / "proc/cpuinfo").write_text(SERVER["proc/cpuinfo"].replace("0x1", "0x2"))
    after = collect(root)
    assert after.digest != before.digest
    assert this_device(root).uuid == device.uuid
    assert [found.words for found in explain(asdict(after), asdict(before))] == [
        "microcode: 0x2 here, 0x1 there",
        "kernel's release: 6.12.0 here, 6.1.0 there",
    ]


def test_a_copied_disk_in_another_board_is_refused_though_the_systems_id_came_along(tmp_path: Path) -> None:
    """A cloned SD card brings /etc/machine-id with it; the board's serial number does not come along."""
    this_device(_machine(tmp_path / "one", {SERIAL: "10000000aaaaaaaa\0"}))
    second = _machine(tmp_path / "two", {SERIAL: "10000000bbbbbbbb\0"})
    with pytest.raises(UsageError, match="another machine") as caught:
        this_device(second)
    assert "clone" in caught.value.fix


def test_a_new_system_on_the_same_mainboard_is_the_same_device(tmp_path: Path) -> None:
    root = _machine(tmp_path / "one", {BOARD: "8b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"})
    device = this_device(root)
    (root / "etc/machine-id").write_text("made anew by the installer\n")
    assert this_device(root).uuid == device.uuid


def test_what_only_root_is_told_binds_from_then_on(tmp_path: Path, own_folders: Path) -> None:
    root = _machine(tmp_path / "one")
    device = this_device(root)  # as a user: the system's id only
    _machine(root, {BOARD: "8b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0\n"})
    assert this_device(root).uuid == device.uuid  # as root
    kept = (own_folders / "data/device.json").read_text()
    assert "8b1c2d3e" not in kept and "aaaa1111" not in kept
    _machine(root, {BOARD: "11111111-4f50-6172-8394-a5b6c7d8e9f0\n"})  # the disk in another machine, read by root
    with pytest.raises(UsageError, match="another machine"):
        this_device(root)


def test_an_identity_of_the_first_version_still_holds(tmp_path: Path, own_folders: Path) -> None:
    """It kept the digest of a board's serial number where others had that of the system's id."""
    from harness.canonical import sha256_hex

    root = _machine(tmp_path / "pi", {SERIAL: "10000000aaaaaaaa\0"})
    known = "8279e1e3-31db-4831-bfe2-039bf3f0bffd"
    (own_folders / "data").mkdir()
    kept = {"uuid": known, "machine": sha256_hex(b"10000000aaaaaaaa")}
    (own_folders / "data/device.json").write_text(json.dumps(kept))
    assert this_device(root).uuid == known


@pytest.mark.parametrize(
    "value", ["00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "None"]
)
def test_what_firmware_says_where_nobody_set_it_binds_nothing(tmp_path: Path, value: str) -> None:
    from agents.device.machine_ids import hardware_ids

    assert hardware_ids(_machine(tmp_path, {BOARD: value})) == {}


def test_a_weak_supply_leaves_its_evidence_in_the_flags(tmp_path: Path) -> None:
    """Case 9: under-voltage during the run is said in the measurement, not found out by its slowness."""
    from harness.conditions.looks import Look

    bits = tmp_path / "sys/devices/platform/soc/soc:firmware/get_throttled"
    bits.parent.mkdir(parents=True)
    bits.write_text("0")
    source = PiThrottling(tmp_path)
    looks = []
    for second, word in enumerate(("0", "50005", "50000")):
        bits.write_text(word)
        looks.append(Look(second * 1_000_000_000, {}, {}, frozenset(source.look(1, slowly=True).signs)))
    (flag,) = flags_of([conditions_of(looks, (0, 2_000_000_000), 4, None, {})])
    assert flag.code == "throttled"
    assert "supply voltage was too low" in flag.message
