"""The environment is read from the system, never guessed; its digest ignores what passes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.environment import board_name, collect, cpu_name, hypervisor
from harness.records import Environment


def _pi(root: Path) -> Path:
    (root / "proc/device-tree").mkdir(parents=True)
    (root / "proc/device-tree/model").write_bytes(b"Raspberry Pi 5 Model B Rev 1.0\0")
    (root / "proc/cpuinfo").write_text(
        "processor\t: 0\nBogoMIPS\t: 108.00\n\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n"
    )
    return root


def test_a_boards_name_comes_from_its_device_tree(tmp_path: Path) -> None:
    assert board_name(_pi(tmp_path)) == "Raspberry Pi 5 Model B Rev 1.0"
    assert cpu_name(tmp_path) == "Raspberry Pi 5 Model B Rev 1.0"


def test_a_servers_name_comes_from_dmi(tmp_path: Path) -> None:
    dmi = tmp_path / "sys/class/dmi/id"
    dmi.mkdir(parents=True)
    (dmi / "sys_vendor").write_text("Dell Inc.\n")
    (dmi / "product_name").write_text("PowerEdge R750\n")
    assert board_name(tmp_path) == "Dell Inc. PowerEdge R750"


def test_a_virtual_machine_is_recognised_by_its_cpu_flag(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("flags\t\t: fpu vme hypervisor lm\n")
    assert hypervisor(tmp_path) == "unknown"
    (tmp_path / "proc/cpuinfo").write_text("flags\t\t: fpu vme lm\n")
    assert hypervisor(tmp_path) is None


def test_what_the_system_does_not_tell_is_null(tmp_path: Path) -> None:
    found = collect(tmp_path)
    assert found.configuration["governor"] is None
    assert found.conditions["temperature_c"] is None
    assert found.machine["board"] is None


def test_the_digest_ignores_passing_conditions_and_sees_the_rest() -> None:
    cool = Environment({"cpu": "x"}, {"kernel": "6.1"}, {"load_1min": 0.0})
    assert cool.digest == replace(cool, conditions={"load_1min": 9.0}).digest
    assert cool.digest != replace(cool, configuration={"kernel": "6.2"}).digest


def test_this_machine_is_read() -> None:
    found = collect()
    assert found.machine["logical_cpus"] >= 1
    assert found.configuration["packages"]["numpy"]
