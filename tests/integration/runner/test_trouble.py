"""Runtimes that crash, hang, shout or eat all memory: a reason each, the last words, and nothing left behind."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from harness.runner.trial_process import run_worker
from harness.worker.job import Job

from .conftest import BrokenPython


@pytest.fixture
def long_job(timing_job: Job) -> Job:
    return replace(
        timing_job, scenario_parameters={"duration_s": 20, "warmup_s": 0.1, "min_queries": 10, "limit_s": 20}
    )


def survivors(folder: Path) -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(p.info["cmdline"] or [])]


def test_killed_in_the_middle(archive: Path, long_job: Job, broken_python: BrokenPython, tmp_path: Path) -> None:
    python = broken_python("later(1.0, os.kill, os.getpid(), 9)")
    outcome = run_worker(archive, python, long_job, tmp_path / "work")
    assert (outcome.status, outcome.reason) == ("failed", "The worker was killed by SIGKILL (out of memory?).")
    assert not outcome.files


def test_a_segmentation_fault_with_its_last_words(
    archive: Path, long_job: Job, broken_python: BrokenPython, tmp_path: Path
) -> None:
    python = broken_python("import ctypes\nos.write(2, b'driver: bad state\\n')\nlater(0.7, ctypes.string_at, 0)")
    outcome = run_worker(archive, python, long_job, tmp_path / "work")
    assert outcome.reason == "The worker crashed with a segmentation fault (SIGSEGV)."
    assert outcome.last_words is not None
    assert "driver: bad state" in outcome.last_words


def test_a_hang_ends_at_the_time_limit_with_its_whole_group(
    archive: Path, long_job: Job, broken_python: BrokenPython, tmp_path: Path
) -> None:
    python = broken_python(
        "import subprocess\n"
        f"subprocess.Popen(['sleep', '300'], cwd={str(tmp_path)!r})\n"
        "later(0.5, os.kill, os.getpid(), 19)"  # SIGSTOP: it neither ends nor answers
    )
    start = time.monotonic()
    outcome = run_worker(archive, python, replace(long_job, timeout_s=2), tmp_path / "work")
    assert time.monotonic() - start < 8
    assert outcome.reason == "The worker did not finish within 2 s and was stopped."
    assert survivors(tmp_path / "work") == []
    sleepers = [p for p in psutil.process_iter(["name", "cmdline"]) if p.info["cmdline"] == ["sleep", "300"]]
    assert not [p for p in sleepers if p.cwd() == str(tmp_path)]


def test_noise_on_standard_output_and_megabytes_of_errors_do_not_disturb(
    archive: Path, timing_job: Job, broken_python: BrokenPython, tmp_path: Path
) -> None:
    python = broken_python(
        "os.write(1, b'{\"status\": \"ok\"}\\n' * 100000)\nfor _ in range(50): os.write(2, b'\\x00\\xffnoise ' * 20000)"
    )
    outcome = run_worker(archive, python, timing_job, tmp_path / "work")
    assert outcome.status == "ok"
    assert outcome.document["queries"] > 10


def test_out_of_memory_is_a_sentence(
    archive: Path, timing_job: Job, broken_python: BrokenPython, tmp_path: Path
) -> None:
    python = broken_python("import resource\nresource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))")
    port = timing_job.task_parameters["ports"][0]
    hungry = replace(timing_job, task_parameters={"ports": [{**port, "shape": [20_000, 16_000]}]})
    outcome = run_worker(archive, python, hungry, tmp_path / "work")
    assert outcome.status == "failed"
    assert outcome.reason is not None
    assert "memory" in outcome.reason
    assert "Traceback" not in outcome.reason


def test_a_garbled_trial_file_is_refused(
    archive: Path, timing_job: Job, broken_python: BrokenPython, tmp_path: Path
) -> None:
    python = broken_python(
        "folder = os.path.dirname(arguments[-1])\n"
        "open(os.path.join(folder, 'trial.json'), 'w').write('{\"schema\": \"weighbridge/trial/1\", \"sta')\n"
        "os._exit(0)"
    )
    outcome = run_worker(archive, python, timing_job, tmp_path / "work")
    assert outcome.status == "failed"
    assert (outcome.reason or "").startswith("The worker's trial file is not valid:")


@pytest.mark.parametrize("name", ["../../secret", "link"])
def test_a_trial_file_cannot_make_the_parent_read_elsewhere(
    archive: Path, timing_job: Job, broken_python: BrokenPython, tmp_path: Path, name: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    python = broken_python(
        "folder = os.path.dirname(arguments[-1])\n"
        f"os.symlink({str(tmp_path / 'secret')!r}, os.path.join(folder, 'link'))\n"
        "import json as j\n"
        "text = j.dumps({'schema': 'weighbridge/trial/1', 'trial_id': '00000000-0000-0000-0000-000000000001',"
        f" 'status': 'ok', 'files': [{{'what': {name!r}, 'count': 1}}]}})\n"
        "open(os.path.join(folder, 'trial.json'), 'w').write(text)\n"
        "os._exit(0)"
    )
    outcome = run_worker(archive, python, timing_job, tmp_path / "work")
    assert outcome.status == "failed"
    assert outcome.files == {}


def test_a_crash_after_the_result_is_noted_and_the_result_kept(
    archive: Path, timing_job: Job, broken_python: BrokenPython, tmp_path: Path
) -> None:
    python = broken_python("import atexit\natexit.register(os.kill, os.getpid(), 11)")
    outcome = run_worker(archive, python, timing_job, tmp_path / "work")
    assert outcome.status == "ok"
    assert outcome.notes == ("After writing its trial: The worker crashed with a segmentation fault (SIGSEGV).",)
