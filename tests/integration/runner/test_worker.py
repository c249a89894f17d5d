"""One worker on real onnxruntime: what it measures, and what it says when something is wrong."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.runner.measurements import samples_of
from harness.runner.probing import probe_targets
from harness.runner.trial_process import run_worker
from harness.worker.job import Job

HERE = Path(sys.executable)


def test_single_stream_gives_raw_latencies_stages_and_cold_start(
    archive: Path, timing_job: Job, tmp_path: Path
) -> None:
    outcome = run_worker(archive, HERE, timing_job, tmp_path)
    assert outcome.status == "ok", outcome
    document = outcome.document
    latencies = samples_of(outcome, "latency_ns")
    assert len(latencies) == document["queries"] >= 10
    assert (latencies > 0).all()
    window_s = (document["window_end_ns"] - document["window_start_ns"]) / 1e9
    assert window_s >= 0.3
    # Queries follow one another, so they fill the window but for the loop's own work.
    assert latencies.sum() / 1e9 <= window_s
    assert document["throughput_per_s"] == pytest.approx(len(latencies) / window_s)
    assert document["discarded_warmup"] > 0
    assert document["pool"] == 5
    assert len(samples_of(outcome, "decode_ns")) == len(samples_of(outcome, "preprocess_ns")) == 5
    assert len(samples_of(outcome, "postprocess_ns")) >= 20
    cold = document["cold_start_ms"]
    assert all(cold[part] > 0 for part in ("process", "import", "load", "first_inference"))
    assert cold["process"] < 30_000
    assert document["report"]["target"] == "cpu"
    assert document["report"]["threads"] == 1
    # The process with numpy and onnxruntime, not the size of the parent that started it.
    assert 20e6 < document["peak_rss_bytes"] < 400e6
    assert list(tmp_path.iterdir()) == []


def test_offline_counts_samples_of_all_slots_over_the_whole_window(
    archive: Path, timing_job: Job, tmp_path: Path
) -> None:
    job = replace(
        timing_job,
        scenario="offline",
        batch=4,
        options={**timing_job.options, "input_shapes": {"x": [4, 16]}},
        scenario_parameters={**timing_job.scenario_parameters, "slots": 3},
    )
    outcome = run_worker(archive, HERE, job, tmp_path)
    assert outcome.status == "ok", outcome
    document = outcome.document
    queries = samples_of(outcome, "query_ns")
    window_s = (document["window_end_ns"] - document["window_start_ns"]) / 1e9
    assert document["slots"] == 3
    assert document["throughput_per_s"] == pytest.approx(4 * len(queries) / window_s)
    assert "latency_ns" not in outcome.files
    # Three are in flight at once: their times overlap, and sum to more than the window.
    assert queries.sum() / 1e9 > window_s


def test_max_queries_ends_a_window_and_limit_ends_a_slow_one(archive: Path, timing_job: Job, tmp_path: Path) -> None:
    few = replace(
        timing_job, scenario_parameters={"duration_s": 0.2, "warmup_s": 0, "min_queries": 1, "max_queries": 7}
    )
    assert len(samples_of(run_worker(archive, HERE, few, tmp_path), "latency_ns")) == 7
    slow = replace(
        timing_job,
        scenario_parameters={"duration_s": 0.1, "warmup_s": 0, "min_queries": 900_000, "limit_s": 0.3},
    )
    outcome = run_worker(archive, HERE, slow, tmp_path)
    assert len(samples_of(outcome, "latency_ns")) < 900_000
    window_s = (outcome.document["window_end_ns"] - outcome.document["window_start_ns"]) / 1e9
    assert 0.3 <= window_s < 3


def test_the_worker_sees_no_package_of_the_parent(
    archive: Path, timing_job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("numpy", "onnxruntime", "backends", "harness"):
        (tmp_path / "intruder" / name).mkdir(parents=True)
        (tmp_path / "intruder" / name / "__init__.py").write_text(
            "raise RuntimeError('a package of the parent leaked in')"
        )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "intruder"))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "intruder" / "numpy" / "__init__.py"))
    monkeypatch.chdir(tmp_path / "intruder")
    assert run_worker(archive, HERE, timing_job, tmp_path / "work").status == "ok"


def test_one_flipped_byte_in_the_model_is_a_reason(
    archive: Path, timing_job: Job, tiny_onnx: Path, tmp_path: Path
) -> None:
    assert timing_job.model is not None
    data = bytearray(tiny_onnx.read_bytes())
    data[1] ^= 0xFF
    damaged = tmp_path / "tiny.onnx"
    damaged.write_bytes(data)
    job = replace(timing_job, model=replace(timing_job.model, path=str(damaged)))
    outcome = run_worker(archive, HERE, job, tmp_path / "work")
    assert outcome.status == "failed"
    assert outcome.reason is not None
    assert outcome.reason.startswith("onnxruntime cannot load tiny.onnx")
    assert "Traceback" not in f"{outcome.reason}{outcome.last_words}"


def test_a_target_that_is_not_here_is_unsupported(archive: Path, timing_job: Job, tmp_path: Path) -> None:
    outcome = run_worker(archive, HERE, replace(timing_job, target="cuda"), tmp_path)
    assert outcome.status == "unsupported"
    assert outcome.reason is not None
    assert "CUDAExecutionProvider" in outcome.reason


def test_an_interpreter_without_the_runtime_or_no_interpreter_at_all(
    archive: Path, timing_job: Job, tmp_path: Path
) -> None:
    outcome = run_worker(archive, tmp_path / "no" / "python", timing_job, tmp_path / "work")
    assert outcome.status == "failed"
    assert outcome.reason == f"The interpreter {tmp_path}/no/python cannot be started: No such file or directory."


def test_a_probe_makes_real_sessions_in_the_interpreter_that_is_named(archive: Path, tmp_path: Path) -> None:
    found = probe_targets(archive, tmp_path, [("onnxruntime", "cpu"), ("onnxruntime", "cuda")], {})
    assert found["onnxruntime", "cpu"].works
    assert not found["onnxruntime", "cuda"].works
    assert "CUDAExecutionProvider" in (found["onnxruntime", "cuda"].reason or "")
    other = {"onnxruntime": tmp_path / "absent"}
    elsewhere = probe_targets(archive, tmp_path, [("onnxruntime", "cpu")], other)["onnxruntime", "cpu"]
    assert not elsewhere.works
    assert str(tmp_path / "absent") in (elsewhere.reason or "")


def test_accuracy_writes_one_prediction_per_sample(archive: Path, timing_job: Job, tmp_path: Path) -> None:
    outcome = run_worker(archive, HERE, replace(timing_job, kind="accuracy"), tmp_path)
    assert outcome.status == "ok", outcome
    lines = [json.loads(line) for line in outcome.files["predictions"].splitlines()]
    assert [line["id"] for line in lines] == ["0", "1", "2", "3", "4"]
    # The task random_inputs predicts each output's mean: y = x w, computed here with numpy.
    weights = np.random.RandomState(0).rand(16, 16).astype(np.float32)
    for seed, line in enumerate(lines):
        sample = np.random.RandomState(seed).random_sample((1, 16)).astype(np.float32)
        assert line["prediction"]["y"]["mean"] == pytest.approx(float((sample @ weights).mean()), rel=1e-5)


def test_labels_stay_with_the_parent(timing_job: Job, tmp_path: Path) -> None:
    from harness.worker.job import write_job

    secret = replace(timing_job, samples=tuple(replace(s, label="the answer") for s in timing_job.samples))
    write_job(secret, tmp_path / "job.json")
    assert "the answer" not in (tmp_path / "job.json").read_text()


def test_a_folder_that_cannot_be_made_is_a_reason(archive: Path, timing_job: Job, tmp_path: Path) -> None:
    (tmp_path / "work").write_text("a file")
    outcome = run_worker(archive, HERE, timing_job, tmp_path / "work")
    assert outcome.status == "failed"
    assert outcome.reason == f"The worker's folder cannot be made in {tmp_path}/work: File exists."
