"""The watch itself: it follows a real process from this one, and closes what it opened."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

from harness.conditions.watching import Watch

from .test_sources import FakeNvml

SLEEP = [sys.executable, "-c", "import time; time.sleep(0.4)"]
SPIN = [sys.executable, "-c", "import time; end = time.process_time() + 0.4\nwhile time.process_time() < end: pass"]


def _follow(watching: Watch, command: list[str]) -> dict[str, Any]:
    with watching:
        process = subprocess.Popen(command)
        watching.follow(process.pid)
        assert "watch" in {thread.name for thread in threading.enumerate()}  # here, not in the process that is watched
        process.wait()
    assert "watch" not in {thread.name for thread in threading.enumerate()}
    return watching.conditions()


def test_the_workers_own_time_is_known_after_it_has_ended() -> None:
    """Its last look comes from what the kernel charged to us for it: /proc/PID is gone by then."""
    watching = Watch(interval_s=60)  # no look between start and end
    found = _follow(watching, SPIN)
    assert found["scope"] == "worker"
    used_s = found["worker_load"] * found["seconds"] * found["processors"]
    assert 0.4 <= used_s < 0.8


def test_a_sleeping_worker_uses_nothing() -> None:
    found = _follow(Watch(interval_s=0.1), SLEEP)
    assert found["worker_load"] < 0.2
    assert found["looks"] >= 3


def test_a_gpu_is_asked_in_this_process_and_closed() -> None:
    library = FakeNvml()
    found = _follow(Watch(gpu_index=0, interval_s=0.1, load_nvml=lambda: library), SLEEP)
    assert found["signs"] == ["gpu_hardware_thermal_slowdown", "gpu_power_cap"]
    assert found["gpu_clock_mhz"]["median"] == 1410.0
    assert library.started == 0


def test_a_gpu_that_cannot_be_asked_is_a_reason() -> None:
    def missing() -> Any:
        raise ImportError("pynvml")

    found = _follow(Watch(gpu_index=0, interval_s=0.1, load_nvml=missing), SLEEP)
    assert "nvidia-ml-py" in found["unavailable"]["gpu"]


def test_a_process_that_is_gone_costs_nothing_but_its_numbers() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with Watch(interval_s=0.05) as watching:
        watching.follow(process.pid)
        time.sleep(0.15)
    assert watching.conditions()["looks"] >= 3


def test_a_watch_that_followed_nothing_says_so() -> None:
    with Watch() as watching:
        pass
    assert "ended before" in watching.conditions()["unavailable"]["all"]
