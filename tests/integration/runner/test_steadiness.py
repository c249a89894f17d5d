"""Real workers that start slowly or never settle, by a stand-in that waits inside the session's own call."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.artifacts import ModelFile
from harness.records import Artifact, Measurement, Source
from harness.runner.cases import PlannedCase, PlannedTrial, case_of
from harness.runner.measurements import assemble
from harness.runner.plan import Intent
from harness.runner.trial_process import run_worker
from harness.suites import Group
from harness.worker.job import Job
from harness.workloads.definition import Workload

# The worker's own archive, in which a call moves the clock on by `pace` seconds, a little more or less. The clock is not the
# machine's: a busy machine must not decide. harness.scenarios.window calls gc.freeze just before the window begins.
STAND_IN = """
import gc, random, sys, time
sys.path.insert(0, {archive!r})
from backends.onnxruntime.session import OnnxRuntimeSession
chance, now_ns, begin_ns = random.Random(1), 0, None
freeze, infer = gc.freeze, OnnxRuntimeSession.infer
def frozen():
    global begin_ns
    begin_ns = now_ns
    freeze()
def paced(self, slot, inputs):
    global now_ns
    since_s = 0.0 if begin_ns is None else (now_ns - begin_ns) / 1e9
    now_ns += int(1e9 * ({pace}) * chance.gauss(1, 0.02))
    return infer(self, slot, inputs)
gc.freeze, OnnxRuntimeSession.infer, time.perf_counter_ns = frozen, paced, lambda: now_ns
from harness.worker.main import main
sys.exit(main(sys.argv[1:]))
"""
SLOW_START = "0.004 if since_s < 1.0 else 0.002"  # half as fast for the first second
NEVER_SETTLED = "0.001 + 0.002 * since_s"
STEADY = "0.002"


def measured(archive: Path, job: Job, tmp_path: Path, pace: str) -> Measurement:
    """Two trials of the tiny network at that pace, summarised as a run would."""
    worker = tmp_path / "worker.py"
    worker.write_text(STAND_IN.format(archive=str(archive), pace=pace))
    window = {"duration_s": 3.0, "warmup_s": 0.02, "min_queries": 10, "limit_s": 6}
    jobs = [
        replace(job, trial_id=f"0000000{n}-0000-0000-0000-000000000001", scenario_parameters=window) for n in (1, 2)
    ]
    group = Group("single_stream", ("tiny",), {"onnxruntime": ("cpu",)}, trials=2)
    intent = Intent(
        Workload("tiny", "Tiny", "tiny", "random_inputs", "tiny"),
        "onnxruntime", "cpu", "single_stream", "fp32", "fp32", 1, 1, None, 0, group,
    )  # fmt: skip
    assert job.model is not None
    artifact = Artifact("onnx", "fp32", "a" * 64, 10, "tiny.onnx")
    model = ModelFile(artifact, Path(job.model.path), job.model.inputs, job.model.outputs)
    trials = tuple(PlannedTrial(f"k{n}", one) for n, one in enumerate(jobs))
    case = PlannedCase(intent, case_of(intent, model, None), "m", artifact, trials)
    ran = [(trial, run_worker(worker, Path(sys.executable), trial.job, tmp_path / "work")) for trial in trials]
    return assemble(case, ran, None, 2, Source("measured", "weighbridge", "0")).measurement


def test_a_slow_start_is_found_flagged_and_left_out(archive: Path, timing_job: Job, tmp_path: Path) -> None:
    measurement = measured(archive, timing_job, tmp_path, SLOW_START)
    assert measurement.status == "ok", measurement.reason
    assert "slow_start" in {flag.code for flag in measurement.flags}
    for trial in measurement.trials:
        # By hand: 250 queries in the first second, a thousand in the two that follow.
        assert trial.discarded_unsteady is not None and 240 <= trial.discarded_unsteady <= 320
    latency = measurement.latency_ms
    assert latency is not None and latency.p50.value is not None and latency.p99.value is not None
    assert latency.p50.value == pytest.approx(2.0, rel=0.01)
    assert latency.p99.value == pytest.approx(2.0 * (1 + 0.02 * 2.326), rel=0.01)  # the normal law's 99th percentile
    samples = sum(blob.count for t in measurement.trials for blob in t.samples if blob.what == "latency_ns")
    assert latency.count == samples - sum(t.discarded_unsteady or 0 for t in measurement.trials)


def test_what_gets_slower_and_slower_has_no_steady_state(archive: Path, timing_job: Job, tmp_path: Path) -> None:
    measurement = measured(archive, timing_job, tmp_path, NEVER_SETTLED)
    assert "not_steady" in {flag.code for flag in measurement.flags}
    assert all("no steady state" in (trial.unsteady_reason or "") for trial in measurement.trials)


def test_an_even_pace_loses_next_to_nothing(archive: Path, timing_job: Job, tmp_path: Path) -> None:
    measurement = measured(archive, timing_job, tmp_path, STEADY)
    assert {flag.code for flag in measurement.flags} & {"slow_start", "not_steady"} == set()
    assert measurement.latency_ms is not None
    assert measurement.latency_ms.p50.value == pytest.approx(2.0, rel=0.01)
    assert measurement.sampling is not None and measurement.sampling.stopped == "fixed"
