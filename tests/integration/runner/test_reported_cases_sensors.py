"""Row 8 of the cases that people reported: polling nvidia-smi from beside the timed loop made spikes in the latency.

Here sensors are read by libraries, in the parent, at a low rate, and the timed process holds one thread of Python. What
reading them costs is compared with unread passes in benchmarks/watching.py, because that needs a quiet machine.
"""

from __future__ import annotations

import ast
import zipfile
from collections.abc import Iterator
from pathlib import Path

import harness
from harness.conditions.watching import INTERVAL_S as WATCHED_EVERY_S
from harness.runner.trial_process import run_worker
from harness.sensors.sampler import INTERVAL_S as METERED_EVERY_S
from harness.worker.job import Job

from .conftest import BrokenPython

WATCHING = ("sensors", "conditions")
STARTERS = {"subprocess", "multiprocessing", "pty", "asyncio"}
# A Raspberry Pi whose kernel shows no throttling bits has only the firmware's tool, asked by the parent once a second.
PI_FALLBACK = {"throttling.py", "watching.py"}
CALLS = {"system", "popen", "spawnv", "spawnl", "execv", "execl", "fork", "posix_spawn"}

# In the worker, before its own code: each call of the session writes down who else is there.
LOOK = """
import onnxruntime as ort
real = ort.InferenceSession.run_with_iobinding
def looking(self, *arguments, **named):
    with open({path!r}, "a") as file:
        file.write(",".join(sorted(thread.name for thread in threading.enumerate())) + chr(10))
    return real(self, *arguments, **named)
ort.InferenceSession.run_with_iobinding = looking
"""


def sources() -> Iterator[Path]:
    root = Path(next(iter(harness.__path__)))
    for room in WATCHING:
        yield from sorted((root / room).rglob("*.py"))


def test_row_8_sensors_start_no_process() -> None:
    found = list(sources())
    assert len(found) > 10
    for path in found:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not {alias.name.split(".")[0] for alias in node.names} & STARTERS, path
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in STARTERS, path
                if "run_command" in {alias.name for alias in node.names}:
                    assert path.name in PI_FALLBACK, path
            elif isinstance(node, ast.Attribute):
                assert node.attr not in CALLS, f"{path}: {node.attr}"


def test_row_8_the_worker_holds_no_sensor(archive: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
    assert "harness/worker/timing.py" in names
    assert not [name for name in names if name.startswith(tuple(f"harness/{room}/" for room in WATCHING))]


def test_row_8_sensors_are_read_at_most_five_times_a_second() -> None:
    assert METERED_EVERY_S >= 0.2
    assert WATCHED_EVERY_S >= 0.2


def test_row_8_the_timed_process_has_one_thread_of_python(
    archive: Path, timing_job: Job, broken_python: BrokenPython, tmp_path: Path
) -> None:
    seen = tmp_path / "threads"
    outcome = run_worker(archive, broken_python(LOOK.format(path=str(seen))), timing_job, tmp_path / "work")
    assert outcome.status == "ok", outcome
    looks = seen.read_text().splitlines()
    assert len(looks) > 10
    assert set(looks) == {"MainThread"}
