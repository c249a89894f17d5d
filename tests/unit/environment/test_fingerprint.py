"""The environment is read from the system, never guessed; its digest ignores what passes and sees the rest."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.environment import board_name, collect, cpu_name, hypervisor
from harness.environment.reading import System
from harness.records import Environment

from .conftest import PI, PI_OUTPUTS, SERIALS, SERVER, Tree


def _pi(root: Path, outputs: dict[tuple[str, ...], str] | None = None) -> System:
    return System.recorded(root, outputs=PI_OUTPUTS if outputs is None else outputs)


def _everything(found: Environment) -> str:
    return json.dumps([found.machine, found.configuration, found.conditions])


def test_a_boards_name_comes_from_its_device_tree(tree: Tree) -> None:
    assert board_name(tree(PI)) == cpu_name(tree(PI)) == "Raspberry Pi 5 Model B Rev 1.0"


def test_a_servers_name_comes_from_dmi(tree: Tree) -> None:
    assert board_name(tree(SERVER)) == "Dell Inc. PowerEdge R750"


def test_a_virtual_machine_is_recognised_by_its_cpu_flag(tree: Tree) -> None:
    assert hypervisor(tree({"proc/cpuinfo": "flags\t\t: fpu vme hypervisor lm\n"})) == "unknown"
    assert hypervisor(tree({"proc/cpuinfo": "flags\t\t: fpu vme lm\n"})) is None


def test_a_server_with_two_sockets(tree: Tree) -> None:
    machine = collect(tree(SERVER)).machine
    processor = machine["processor"]
    assert machine["cpu"] == "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz"
    assert [processor[key] for key in ("vendor", "family", "model", "stepping", "microcode")] == [
        "GenuineIntel",
        "6",
        "106",
        "6",
        "0xd0003b9",
    ]
    assert processor["instruction_sets"] == ["avx", "avx2", "avx512_vnni", "avx512f", "fma", "sse4_1"]
    assert processor["caches"] == [{"level": 3, "type": "Unified", "size": "61440K", "shared_by": [2], "count": 2}]
    assert [processor[key] for key in ("sockets", "cores", "threads", "threads_per_core")] == [2, 2, 4, 2.0]
    assert processor["numa_nodes"] == ["0-1", "2-3"]
    assert machine["memory"]["gib"] == 126.0
    assert machine["firmware"] == {"bios_version": "1.10.2", "bios_date": "03/07/2023"}
    assert machine["thermal"] == {"sensor_limits_c": {"coretemp": ["crit 100"]}}


def test_a_servers_configuration(tree: Tree) -> None:
    found = collect(tree(SERVER))
    configuration = found.configuration
    assert configuration["os"] == "Ubuntu 22.04.3 LTS"
    assert configuration["kernel"]["release"] == "5.15.0-91-generic"
    assert configuration["kernel"]["built_with"] == {"hz": "250", "preempt_voluntary": "y", "no_hz_idle": "y"}
    assert configuration["mitigations"]["spectre_v2"] == "Mitigation: Enhanced / Automatic IBRS"
    assert configuration["memory"]["transparent_huge_pages"] == "madvise"
    assert configuration["memory"]["swap_gib"] == 8.0
    assert configuration["power"]["policies"] == [
        {
            "driver": "intel_pstate",
            "governor": "powersave",
            "energy_performance_preference": "balance_performance",
            "hardware_mhz": [800, 3400],
            "processors": 4,
        }
    ]
    assert configuration["power"]["turbo"] == "on"
    assert configuration["drivers"]["nvidia"] == "550.54.15"
    assert found.conditions["resource_limits"] == {"locked memory": "65536"}


def test_a_raspberry_pi(tree: Tree) -> None:
    found = collect(system=_pi(tree(PI)))
    assert found.machine["processor"]["cores_by_design"] == {"Cortex-A76 r4p1": 4}
    assert found.machine["processor"]["instruction_sets"] == ["asimd", "asimddp", "asimdhp", "atomics", "fphp"]
    assert found.machine["memory"]["gib"] == 8.0
    assert found.machine["firmware"]["raspberry_pi_eeprom"] == "2bb2ae640058a2f3aa8dcbdc2da33302e509668d"
    assert found.machine["firmware"]["raspberry_pi_eeprom_date"] == 1726581033
    assert found.machine["firmware"]["raspberry_pi_revision"] == "d04170"
    assert found.machine["thermal"]["trips_c"] == {"cpu-thermal": ["critical 110"]}
    assert found.configuration["image"]["raspberry_pi_image"] == "Raspberry Pi reference 2024-11-19"
    assert found.configuration["power"]["raspberry_pi"] == {
        "settings": {"arm_boost": "1", "arm_freq": "2400", "force_turbo": "0"},
        "supply_milliamperes": 5000,
    }


def test_what_the_system_does_not_tell_is_absent(tmp_path: Path) -> None:
    found = collect(tmp_path)
    assert "board" not in found.machine and "hypervisor" not in found.machine
    assert "memory" not in found.machine
    assert "power" not in found.configuration
    assert found.conditions == {}
    assert None not in json.loads(_everything(found), object_hook=lambda d: list(d.values()))


@pytest.mark.parametrize("recorded", [SERVER, PI], ids=["server", "pi"])
def test_no_serial_number_address_name_or_secret_is_kept(tree: Tree, recorded: dict[str, Any]) -> None:
    variables = {"OMP_NUM_THREADS": "4", "ORT_API_KEY": "hunter2", "LD_PRELOAD": "/home/alice/lib.so", "USER": "alice"}
    system = System.recorded(tree(recorded), outputs=PI_OUTPUTS, variables=variables)
    kept = _everything(collect(system=system))
    for secret in (*SERIALS, "db-host-7", "hunter2", "abc123", "10.0.0.7", "alice"):
        assert secret not in kept
    assert '"OMP_NUM_THREADS": "4"' in kept


def test_boot_options_that_matter_keep_their_value_and_others_only_their_name(tree: Tree) -> None:
    options = collect(tree(SERVER)).configuration["kernel"]["options"]
    assert options["isolcpus"] == "2-3"
    assert options["mitigations"] == "off"
    assert options["root"] == options["wg.key"] == options["ip"] == "(not kept)"
    assert "--token" not in options and "quiet" not in options


def test_a_board_named_by_its_uuid_is_not_kept() -> None:
    from harness.environment.interpreters import variables

    named = {"CUDA_VISIBLE_DEVICES": "GPU-8b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", "OMP_PROC_BIND": "true"}
    assert variables(System(variables=named)) == {"CUDA_VISIBLE_DEVICES": "(not kept)", "OMP_PROC_BIND": "true"}


def test_memory_modules_are_a_condition_because_only_root_may_read_them(tree: Tree) -> None:
    found = collect(tree(SERVER))
    assert found.conditions["memory_modules"] == {"16 GiB DDR4 at 2933 MT/s": 1}
    without = collect(tree({name: text for name, text in SERVER.items() if "dmi/entries" not in name}))
    assert without.digest == found.digest


def test_the_digest_ignores_passing_conditions_and_sees_the_rest() -> None:
    cool = Environment({"cpu": "x"}, {"kernel": "6.1"}, {"load_1min": 0.0})
    assert cool.digest == replace(cool, conditions={"load_1min": 9.0}).digest
    assert cool.digest != replace(cool, configuration={"kernel": "6.2"}).digest


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("proc/cpuinfo", str(SERVER["proc/cpuinfo"]).replace("cpu MHz\t\t: 800", "cpu MHz\t\t: 3391")),
        ("proc/cpuinfo", str(SERVER["proc/cpuinfo"]).replace("bogomips\t: 4600", "bogomips\t: 4601")),
        ("proc/meminfo", str(SERVER["proc/meminfo"]).replace("131785820", "131785104").replace("99000000", "1000")),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3391000"),
        ("sys/class/thermal/thermal_zone0/temp", "93000"),
        ("sys/class/thermal/thermal_zone0/trip_point_0_temp", "90000"),
        ("proc/loadavg", "12.5 9.0 5.0 9/700 4243"),
        ("proc/uptime", "90000.10 300000.00"),
        ("proc/stat", "cpu  900 0 100 700 0 0 0 900 0 0\n"),
    ],
)
def test_what_changes_by_itself_leaves_the_digest(tree: Tree, name: str, content: str) -> None:
    assert collect(tree({**SERVER, name: content})).digest == collect(tree(SERVER)).digest


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("proc/cpuinfo", str(SERVER["proc/cpuinfo"]).replace("0xd0003b9", "0xd0003d1")),
        ("sys/class/dmi/id/bios_version", "1.12.1"),
        ("proc/sys/kernel/osrelease", "6.5.0-14-generic"),
        ("proc/cmdline", "isolcpus=1-3 mitigations=off"),
        ("sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "performance"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never"),
        ("sys/firmware/acpi/platform_profile", "low-power"),
        ("proc/driver/nvidia/version", str(SERVER["proc/driver/nvidia/version"]).replace("550.54.15", "555.42.02")),
        ("proc/self/status", "Cpus_allowed_list:\t0-1\n"),
        ("sys/devices/system/cpu/vulnerabilities/spectre_v2", "Vulnerable"),
    ],
)
def test_what_was_set_or_built_otherwise_makes_another_digest(tree: Tree, name: str, content: str) -> None:
    assert collect(tree({**SERVER, name: content})).digest != collect(tree(SERVER)).digest


def test_a_frequency_held_down_by_heat_is_not_taken_for_a_setting(tree: Tree) -> None:
    policy = "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"
    cooling = {
        "sys/class/thermal/cooling_device0/type": "cpufreq-cpu0",
        "sys/class/thermal/cooling_device0/cur_state": "3",
    }
    hot = collect(tree({**PI, policy: "1500000", **cooling}))
    assert hot.digest == collect(tree(PI)).digest
    (limited,) = collect(tree({**PI, policy: "1500000"})).configuration["power"]["policies"]
    assert limited["limited_to_mhz"] == 1500


def test_this_machine_is_read_the_same_twice_and_after_load() -> None:
    first = collect()
    assert collect().digest == first.digest
    spin = [sys.executable, "-c", "import time; end = time.time() + 0.6\nwhile time.time() < end: pass"]
    busy = [subprocess.Popen(spin) for _ in range(3)]
    time.sleep(0.2)
    during = collect()
    for process in busy:
        process.wait()
    assert during.digest == collect().digest == first.digest
    assert first.machine["processor"]["threads"] >= 1
    assert first.configuration["software"]["default"]["packages"]["numpy"]["version"]


def test_a_damaged_kernel_configuration_is_not_told(tmp_path: Path) -> None:
    """A gzip header before what is no deflate stream."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/config.gz").write_bytes(bytes.fromhex("1f8b0800000000000003") + b"\xff" * 64)
    assert "built_with" not in collect(tmp_path).configuration.get("kernel", {})
