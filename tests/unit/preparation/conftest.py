"""A fake /sys and /proc/sys with two frequency policies, as intel_pstate shows them, and a state folder."""

from __future__ import annotations

from pathlib import Path

import pytest

POLICIES = "sys/devices/system/cpu/cpufreq"
FILES = {
    **{f"{POLICIES}/policy{n}/scaling_governor": "powersave" for n in (0, 1)},
    **{f"{POLICIES}/policy{n}/scaling_available_governors": "performance powersave" for n in (0, 1)},
    **{f"{POLICIES}/policy{n}/energy_performance_preference": "balance_performance" for n in (0, 1)},
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "proc/sys/kernel/nmi_watchdog": "1",
    "proc/sys/kernel/numa_balancing": "0",
    "proc/sys/kernel/sched_autogroup_enabled": "1",
    "proc/sys/kernel/random/boot_id": "boot-one",
    "etc/machine-id": "machine-one",
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    root = tmp_path / "machine"
    for name, word in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(word + "\n")
    return root


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def settings_of(root: Path) -> dict[str, str]:
    """Every file of the machine with its word."""
    return {name: (root / name).read_text().strip() for name in FILES}
