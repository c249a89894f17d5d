"""A fake /sys with frequency control, and real processes that prepare it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

POLICY = "sys/devices/system/cpu/cpufreq/policy0"
FILES = {
    f"{POLICY}/scaling_governor": "powersave",
    f"{POLICY}/scaling_available_governors": "performance powersave",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "proc/sys/kernel/nmi_watchdog": "1",
}
QUIET = {**FILES, f"{POLICY}/scaling_governor": "performance", "proc/sys/kernel/nmi_watchdog": "0"}
# The product's own command, on another root than "/".
WEIGH_ON = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup, which ignores it
from pathlib import Path
from harness.preparation import repairing
repairing.ROOT = Path(sys.argv.pop(1))
import weigh
weigh.main()
"""
Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    root = tmp_path / "machine"
    for name, word in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(word + "\n")
    return root


def settings_of(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text().strip() for name in FILES}


def wait_until(what: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.fixture
def weigh_on() -> Iterator[Started]:
    """Start `weigh` as a user would, in a session of its own, on the machine below a root."""
    running: list[subprocess.Popen[str]] = []

    def start(root: Path, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WEIGH_ON, str(root), *arguments]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=dict(os.environ),
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()
