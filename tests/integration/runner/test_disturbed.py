"""Real workers on real onnxruntime, disturbed on purpose: their measurements carry the right flag, with its numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.conditions import watch
from harness.environment.cgroups import groups_of
from harness.judgement.disturbance import flags_of
from harness.runner.trial_process import Outcome, run_worker
from harness.worker.job import Job

SPIN = [sys.executable, "-c", "while True: pass"]
Weigh = Callable[..., "subprocess.CompletedProcess[str]"]


@contextmanager
def hogs(count: int) -> Iterator[None]:
    processes = [subprocess.Popen(SPIN) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture
def half_a_processor() -> Iterator[Path]:
    """A real control group with a quota of half a processor, of whichever version this machine has.

    It has the greatest weight, so that on a busy machine too it gets its half and runs into its quota.
    """
    groups = groups_of(Path("/"), "cpu")
    folder = groups.folders[-1] / f"weighbridge-test-{os.getpid()}" if groups else None
    try:
        assert groups is not None and folder is not None
        if groups.version == 2:
            with suppress(OSError):
                (folder.parent / "cgroup.subtree_control").write_text("+cpu")
        folder.mkdir()
        if groups.version == 2:
            (folder / "cpu.max").write_text("50000 100000")
            (folder / "cpu.weight").write_text("10000")
        else:
            (folder / "cpu.cfs_period_us").write_text("100000")
            (folder / "cpu.cfs_quota_us").write_text("50000")
            (folder / "cpu.shares").write_text("262144")
    except (AssertionError, OSError) as error:
        if folder is not None and folder.is_dir():
            folder.rmdir()
        pytest.skip(f"no control group can be made here ({error}); recorded ones are read in tests/unit/conditions")
    yield folder
    deadline = time.monotonic() + 10
    while True:
        try:
            folder.rmdir()
            return
        except OSError:  # a process of it is still ending
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _watched(archive: Path, job: Job, folder: Path, moved_to: Path | None = None) -> tuple[Outcome, dict[str, Any]]:
    with watch() as watching:

        def started(pid: int) -> None:
            if moved_to is not None:
                (moved_to / "cgroup.procs").write_text(str(pid))
            watching.follow(pid)

        outcome = run_worker(archive, Path(sys.executable), job, folder, started)
    assert outcome.status == "ok", outcome
    document = outcome.document
    return outcome, watching.conditions(document["window_start_ns"], document["window_end_ns"])


@pytest.fixture
def second_long(timing_job: Job) -> Job:
    return replace(
        timing_job,
        scenario_parameters={"duration_s": 1.0, "warmup_s": 0.1, "min_queries": 10, "max_queries": 10_000_000},
    )


def test_the_window_is_the_workers_own(archive: Path, second_long: Job, tmp_path: Path) -> None:
    outcome, found = _watched(archive, second_long, tmp_path)
    window_s = (outcome.document["window_end_ns"] - outcome.document["window_start_ns"]) / 1e9
    assert found["scope"] == "window"
    assert found["seconds"] == pytest.approx(window_s, abs=0.002)
    assert found["resolution_s"] < window_s
    # One thread that never waits: what it got is what it had of one processor, never more.
    assert 0 < found["worker_load"] * found["processors"] <= 1.1
    assert found["harness_load"] < 0.1
    assert found["swap"]["major_faults"] < 10
    assert abs(found["clock"]["largest_step_s"]) < 0.01
    assert len(found["series"]["at_s"]) >= 4


def test_a_hog_beside_the_worker_is_other_load(archive: Path, second_long: Job, tmp_path: Path) -> None:
    with hogs(1):
        _, found = _watched(archive, second_long, tmp_path)
    assert found["other_load"] * found["processors"] > 0.4  # with two processors it gets one of its own
    (message,) = [flag.message for flag in flags_of([found]) if flag.code == "other_load"]
    assert "of " in message and "1 of 1 trials" in message


def test_a_worker_with_half_a_processor_was_throttled(
    archive: Path, second_long: Job, tmp_path: Path, half_a_processor: Path
) -> None:
    _, found = _watched(archive, second_long, tmp_path, moved_to=half_a_processor)
    assert found["cgroup"]["throttled"] >= 3
    assert found["cgroup"]["throttled_s"] > 0.1
    assert found["worker_load"] * found["processors"] < 0.75
    assert "cgroup_throttled" in {flag.code for flag in flags_of([found])}


def test_nothing_that_watches_runs_in_the_worker(archive: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
    assert any(name.startswith("harness/worker/") for name in names)
    assert not [
        name for name in names if name.startswith(("harness/conditions", "harness/environment", "harness/sensors"))
    ]


def test_trouble_with_watching_costs_no_measurement(
    archive: Path, timing_job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: object, pid: int, slowly: bool) -> None:
        raise RuntimeError("an odd kernel")

    monkeypatch.setattr("harness.conditions.paging.Paging.look", broken)
    outcome, found = _watched(archive, timing_job, tmp_path)
    assert outcome.status == "ok"
    assert found["unavailable"]["paging"] == "cannot be read (an odd kernel)"
    assert "other_load" in found


def _flags(record: Path) -> dict[str, str]:
    (measurement,) = [
        m for m in json.loads(record.read_text())["measurements"] if m["case"]["scenario"] == "single_stream"
    ]
    assert measurement["status"] == "ok", measurement["reason"]
    assert measurement["trials"][0]["conditions"]["scope"] == "window"
    return {flag["code"]: flag["message"] for flag in measurement["flags"]}


ARGUMENTS = ("--backend", "onnxruntime", "--target", "cpu", "--duration", "1", "--trials", "1", "--no-store")


@pytest.mark.slow
def test_a_run_with_a_hog_beside_it_carries_other_load(weigh: Weigh, tiny_onnx: Path, tmp_path: Path) -> None:
    with hogs(1):
        done = weigh("run", str(tiny_onnx), *ARGUMENTS, "--json", str(tmp_path / "run.json"))
    assert done.returncode == 0, done.stderr
    assert "processors" in _flags(tmp_path / "run.json")["other_load"]


@pytest.mark.slow
def test_a_run_inside_half_a_processor_carries_cgroup_throttled(
    tiny_onnx: Path, tmp_path: Path, half_a_processor: Path
) -> None:
    record = tmp_path / "run.json"
    enter = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); os.execv(sys.executable, sys.argv[2:])"
    command = [sys.executable, "-m", "weigh", "run", str(tiny_onnx), *ARGUMENTS, "--json", str(record)]
    start = [sys.executable, "-c", enter, str(half_a_processor / "cgroup.procs"), *command]
    done = subprocess.run(start, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert "quota stopped it" in _flags(record)["cgroup_throttled"]
    environment = json.loads(record.read_text())["environment"]
    assert environment["configuration"]["limits"]["cgroup_processors"] == 0.5
