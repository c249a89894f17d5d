"""Control groups of both versions at every level, containers, power sources and modes."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.environment.cgroups import Throttling, cpu_quota, groups_of, memory_limit_bytes, process_limit, throttling
from harness.environment.limits import container, limits
from harness.environment.power import power, source
from harness.environment.reading import System

from .conftest import Tree

V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNT = "35 30 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"


def test_the_smallest_quota_of_all_levels_counts(tree: Tree) -> None:
    base = "sys/fs/cgroup"
    root = tree(
        {
            "proc/self/mountinfo": V2_MOUNT,
            "proc/self/cgroup": "0::/user.slice/bench.scope\n",
            f"{base}/cgroup.controllers": "cpu memory pids",
            f"{base}/user.slice/cgroup.controllers": "cpu memory pids",
            f"{base}/user.slice/cpu.max": "150000 100000",
            f"{base}/user.slice/bench.scope/cgroup.controllers": "cpu memory pids",
            f"{base}/user.slice/bench.scope/cpu.max": "max 100000",
            f"{base}/user.slice/bench.scope/memory.max": "2147483648",
            f"{base}/user.slice/memory.max": "max",
            f"{base}/user.slice/bench.scope/pids.max": "512",
        }
    )
    assert cpu_quota(root) == 1.5
    assert memory_limit_bytes(root) == 2147483648
    assert process_limit(root) == 512
    assert limits(System.recorded(root))["cgroup_memory_mib"] == 2048


def test_version_1_has_its_own_files(tree: Tree) -> None:
    base = "sys/fs/cgroup/cpu,cpuacct"
    root = tree(
        {
            "proc/self/mountinfo": V1_MOUNT,
            "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n0::/\n",
            f"{base}/docker/abc/cpu.cfs_quota_us": "50000",
            f"{base}/docker/abc/cpu.cfs_period_us": "100000",
            f"{base}/cpu.cfs_quota_us": "-1",
            f"{base}/cpu.cfs_period_us": "100000",
            f"{base}/docker/abc/cpu.stat": "nr_periods 40\nnr_throttled 30\nthrottled_time 1500000000\n",
            f"{base}/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
        }
    )
    groups = groups_of(root, "cpu")
    assert groups is not None
    assert groups.version == 1
    assert cpu_quota(root) == 0.5
    assert throttling(groups) == Throttling(40, 30, 1.5)
    assert container(System.recorded(root)) == "docker"


def test_inside_a_container_the_group_lies_at_the_mount(tree: Tree) -> None:
    root = tree(
        {
            "proc/self/mountinfo": "99 90 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu",
            "sys/fs/cgroup/cpu.max": "200000 100000",
            "sys/fs/cgroup/cpu.stat": "usage_usec 5\nnr_periods 8\nnr_throttled 2\nthrottled_usec 250000\n",
            ".dockerenv": "",
        }
    )
    groups = groups_of(root, "cpu")
    assert groups is not None
    assert cpu_quota(root) == 2.0
    assert throttling(groups) == Throttling(8, 2, 0.25)


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert groups_of(tmp_path, "cpu") is None
    assert cpu_quota(tmp_path) is memory_limit_bytes(tmp_path) is process_limit(tmp_path) is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({".dockerenv": ""}, "docker"),
        ({"run/.containerenv": ""}, "podman"),
        ({"proc/self/cgroup": "0::/kubepods/besteffort/pod1\n"}, "kubernetes"),
        ({"proc/sys/kernel/osrelease": "5.15.146.1-microsoft-standard-WSL2\n"}, "wsl"),
        ({"run/systemd/container": "systemd-nspawn\n"}, "systemd-nspawn"),
        ({"proc/self/cgroup": "0::/user.slice\n"}, None),
    ],
)
def test_a_container_is_recognised_by_its_marks(tree: Tree, files: dict[str, str], expected: str | None) -> None:
    assert container(System.recorded(tree(files))) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"AC/type": "Mains", "AC/online": "1", "BAT0/type": "Battery"}, "mains"),
        ({"AC/type": "Mains", "AC/online": "0", "BAT0/type": "Battery"}, "battery"),
        ({"AC/type": "Mains", "AC/online": "1"}, None),
        ({"hid-mouse/type": "Battery", "hid-mouse/scope": "Device", "AC/type": "Mains", "AC/online": "0"}, None),
    ],
)
def test_where_the_power_comes_from(tree: Tree, files: dict[str, str], expected: str | None) -> None:
    root = tree({"proc/uptime": "1 1", **{f"sys/class/power_supply/{name}": text for name, text in files.items()}})
    assert source(System.recorded(root)) == expected


def test_a_jetsons_power_mode(tree: Tree) -> None:
    files = {"var/lib/nvpmodel/status": "pmode:0002\n", "etc/nvpmodel.conf": "< POWER_MODEL ID=2 NAME=MODE_15W >\n"}
    assert power(System.recorded(tree(files)))["jetson_mode"] == "2 MODE_15W"


def test_amd_boost_and_idle_states(tree: Tree) -> None:
    states = "sys/devices/system/cpu/cpu0/cpuidle"
    root = tree(
        {
            "sys/devices/system/cpu/cpufreq/boost": "0",
            f"{states}/state0/name": "POLL",
            f"{states}/state0/disable": "0",
            f"{states}/state1/name": "C2",
            f"{states}/state1/disable": "1",
        }
    )
    found = power(System.recorded(root))
    assert found["turbo"] == "off"
    assert found["idle_states"] == ["POLL"]
