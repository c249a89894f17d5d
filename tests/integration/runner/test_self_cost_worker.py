"""The harness's own cost per query, by the real worker."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

from harness.judgement.self_cost import share_of
from harness.runner.self_cost import KIND, self_cost_jobs, self_cost_of
from harness.runner.trial_process import run_worker

RUN = str(uuid.UUID(int=7))


def test_a_worker_times_its_own_loop_around_a_session_that_does_nothing(archive: Path, tmp_path: Path) -> None:
    job = self_cost_jobs(RUN, 1)[0]
    outcome = run_worker(archive, Path(sys.executable), job, tmp_path)
    assert outcome.status == "ok", outcome
    document = outcome.document
    assert document["kind"] == KIND
    assert document["queries"] == 100_000
    # What is recorded lies inside what the loop takes, and a loop in Python takes less than 0.1 ms on any machine.
    assert 0 < document["recorded_us"] <= document["wall_us"] < 100
    window_us = (document["window_end_ns"] - document["window_start_ns"]) / 1e3
    assert abs(document["wall_us"] * document["queries"] - window_us) < 0.001 * window_us


def test_a_run_has_the_medians_over_fresh_processes(archive: Path, tmp_path: Path) -> None:
    cost = self_cost_of([run_worker(archive, Path(sys.executable), job, tmp_path) for job in self_cost_jobs(RUN, 2)])
    assert cost.reason is None
    assert (cost.trials, cost.queries) == (2, 200_000)
    assert cost.recorded_us is not None
    share = share_of(cost, 1.0)
    assert share is not None
    assert share.recorded == cost.recorded_us / 1000


def test_an_interpreter_that_is_not_there_leaves_a_reason(archive: Path, tmp_path: Path) -> None:
    cost = self_cost_of([run_worker(archive, tmp_path / "python", job, tmp_path) for job in self_cost_jobs(RUN, 1)])
    assert (cost.recorded_us, cost.wall_us, cost.trials) == (None, None, 0)
    assert "cannot be started" in (cost.reason or "")
    assert self_cost_of([]).reason == "Not measured: the run was interrupted before."
