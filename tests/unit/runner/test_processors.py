"""Processors: the affinity mask, or a container's smaller quota."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.environment.cgroups import cpu_quota
from harness.runner.processors import available_processors


def tree(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return root


def test_without_a_quota_the_mask_counts(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None
    assert available_processors(tmp_path) == len(os.sched_getaffinity(0))
    assert cpu_quota(tree(tmp_path, "sys/fs/cgroup/cpu.max", "max 100000\n")) is None


@pytest.mark.parametrize(("text", "quota"), [("150000 100000\n", 1.5), ("50000 100000\n", 0.5)])
def test_a_quota_of_cgroup_v2(tmp_path: Path, text: str, quota: float) -> None:
    assert cpu_quota(tree(tmp_path, "sys/fs/cgroup/cpu.max", text)) == quota


def test_a_quota_of_cgroup_v1_and_its_no_limit(tmp_path: Path) -> None:
    tree(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    assert cpu_quota(tree(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")) is None
    assert cpu_quota(tree(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n")) == 2.0


def test_half_a_processor_still_runs_one_thread(tmp_path: Path) -> None:
    assert available_processors(tree(tmp_path, "sys/fs/cgroup/cpu.max", "50000 100000\n")) == 1
