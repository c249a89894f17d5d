"""Every scenario on every real runtime of this machine, and the figures that come of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.runner.scenario_figures import figures
from harness.runner.steadiness import samples_of
from harness.runner.trial_process import Outcome, run_worker
from harness.worker import page_cache
from harness.worker.job import Job

HERE = Path(sys.executable)
# One of them daily, all of them before a commit.
RUNTIMES = ("onnxruntime", *(pytest.param(name, marks=pytest.mark.slow) for name in ("openvino", "tflite")))
Play = Callable[..., Outcome]


@pytest.fixture(params=RUNTIMES)
def job(request: pytest.FixtureRequest, timing_job: Job, tiny_onnx: Path, tmp_path: Path) -> Job:
    """The tiny network on one of the runtimes, batch 1."""
    return on_runtime(request.param, timing_job, tiny_onnx, tmp_path)


def on_runtime(name: str, timing_job: Job, tiny_onnx: Path, folder: Path) -> Job:
    assert timing_job.model is not None
    job = replace(timing_job, backend=name)
    if name == "tflite":
        from harness.models.tflite_writer import convert

        made = convert(tiny_onnx.read_bytes())
        path = folder / "tiny.tflite"
        path.write_bytes(made.data)
        ports = [
            tuple(replace(port, role=role) for port in some) for some, role in ((made.inputs, "x"), (made.outputs, "y"))
        ]
        job = replace(
            job, model=replace(timing_job.model, path=str(path), format="tflite", inputs=ports[0], outputs=ports[1])
        )
        job = replace(job, options={**job.options, "input_shapes": {port.tensor: [1, 16] for port in ports[0]}})
    return job


@pytest.fixture
def play(archive: Path, tmp_path: Path) -> Play:
    """Run a job as a scenario with these parameters: `play(job, "server", duration_s=1)`."""

    def run(job: Job, scenario: str, kind: str = "timing", **parameters: Any) -> Outcome:
        asked = {"duration_s": 0.3, "warmup_s": 0.05, "min_queries": 5, **parameters}
        outcome = run_worker(
            archive, HERE, replace(job, kind=kind, scenario=scenario, scenario_parameters=asked), tmp_path / "work"
        )
        assert outcome.status == "ok", outcome
        return outcome

    return run


@pytest.mark.parametrize("slots", [1, 2])
def test_a_server_trial_becomes_a_curve_of_preferred_rates(job: Job, play: Play, slots: int) -> None:
    outcome = play(job, "server", slots=slots, duration_s=1.0, limit_ms=10_000.0, percentile=99)
    told = [json.loads(line) for line in outcome.files["stretches"].splitlines()]
    latency, wait = samples_of(outcome, "server_latency_ns"), samples_of(outcome, "server_wait_ns")
    assert sum(one["answered"] for one in told) == len(latency) == len(wait) == outcome.document["queries"]
    assert (wait >= 0).all()
    assert (latency > wait).all()
    capacity = outcome.document["throughput_per_s"]
    assert all(0.29 * capacity <= one["offered_per_s"] <= 1.11 * capacity for one in told)
    made = figures("server", {"limit_ms": 10_000.0, "percentile": 99}, [outcome])
    assert made.rate_curve is not None
    assert made.rate_curve.limit_ms == 10_000.0
    assert [point.offered_per_s for point in made.rate_curve.points] == sorted({one["offered_per_s"] for one in told})
    assert made.throughput_per_s == made.rate_curve.highest_met_per_s
    assert made.latency_ms is not None
    assert outcome.document["slots"] == slots


def test_multi_stream_counts_samples_and_times_queries(job: Job, play: Play) -> None:
    for slots in (1, 3):
        outcome = play(job, "multi_stream", samples_per_query=4, slots=slots)
        window_s = (outcome.document["window_end_ns"] - outcome.document["window_start_ns"]) / 1e9
        latency = samples_of(outcome, "latency_ns")
        assert outcome.document["queries"] == 4 * len(latency)
        assert outcome.document["throughput_per_s"] == pytest.approx(4 * len(latency) / window_s)
        assert latency.sum() / 1e9 <= window_s
        assert outcome.document["slots"] == slots


def test_a_query_that_batches_do_not_fill_is_unsupported(archive: Path, timing_job: Job, tmp_path: Path) -> None:
    asked = replace(timing_job, scenario="multi_stream", batch=3, scenario_parameters={"samples_per_query": 8})
    asked = replace(asked, options={**asked.options, "input_shapes": {"x": [3, 16]}})
    outcome = run_worker(archive, HERE, asked, tmp_path)
    assert (outcome.status, (outcome.reason or "")[:53]) == (
        "unsupported", "A query of 8 samples cannot be made of batches of 3. ",
    )  # fmt: skip


def test_a_duty_cycle_keeps_its_period_and_compares_with_none(job: Job, play: Play) -> None:
    outcome = play(job, "duty_cycle", period_s=0.05, duration_s=0.4, min_queries=1)
    window_s = (outcome.document["window_end_ns"] - outcome.document["window_start_ns"]) / 1e9
    count = len(samples_of(outcome, "latency_ns"))
    assert count == 8
    assert window_s >= 8 * 0.05  # each request waits for its own period
    assert outcome.document["throughput_per_s"] is None
    made = figures("duty_cycle", {"period_s": 0.05}, [outcome, outcome])
    assert made.throughput_per_s is None
    assert made.throughput is not None and "sets the pace" in (made.throughput.reason or "")
    assert made.thermal is not None
    penalty = made.thermal["idle_penalty"]
    ratio = np.median(samples_of(outcome, "latency_ns")) / np.median(samples_of(outcome, "back_to_back_ns"))
    assert penalty["value"] == pytest.approx(ratio)
    assert (penalty["low"], penalty["high"], penalty["trials"]) == (pytest.approx(ratio), pytest.approx(ratio), 2)


def test_a_sustained_load_is_cut_into_slices(job: Job, play: Play) -> None:
    outcome = play(job, "sustained", duration_s=0.6, limit_s=0.1, max_queries=2000)
    made = figures("sustained", {"duration_s": 0.6}, [outcome])
    assert made.over_time is not None
    assert len(made.over_time.slices) == 60
    every = outcome.document["scenario"]["every"]
    assert sum(one.count for one in made.over_time.slices) == pytest.approx(outcome.document["queries"], abs=2 * every)
    assert made.over_time.verdict is not None
    window_s = (outcome.document["window_end_ns"] - outcome.document["window_start_ns"]) / 1e9
    assert window_s >= 0.6


def test_a_cold_start_has_its_parts_and_the_state_of_its_caches(job: Job, play: Play) -> None:
    outcomes = [play(job, "cold_start", kind="cold", file_cache="warm", compile_cache="off") for _ in range(2)]
    made = figures("cold_start", {"file_cache": "warm", "compile_cache": "off"}, outcomes)
    start = made.cold_start_ms
    assert start is not None
    assert (start.caches["file"], start.caches["compile"]) == ("warm", "off")
    assert start.caches["libraries"].startswith("not controlled")
    for part in (start.process, start.import_, start.load, start.first_inference):
        assert part is not None and part > 0
    told = [outcome.document["cold_start_ms"]["load"] for outcome in outcomes]
    assert (start.intervals["load"]["low"], start.intervals["load"]["high"]) == (min(told), max(told))
    known = [value for value in outcomes[0].document["cold_start_ms"].values() if value is not None]
    assert min(start.intervals["first_answer"].values(), key=lambda v: isinstance(v, str)) is not None
    assert start.intervals["first_answer"]["low"] <= sum(known) <= start.intervals["first_answer"]["high"]
    assert len(samples_of(outcomes[0], "following_ns")) > 0
    assert (made.latency_ms, made.throughput_per_s) == (None, None)


def test_openvino_starts_from_an_empty_and_from_a_filled_compile_cache(
    timing_job: Job, tiny_onnx: Path, tmp_path: Path, play: Play
) -> None:
    job = on_runtime("openvino", timing_job, tiny_onnx, tmp_path)
    for state, loaded_from_cache in (("cold", False), ("warm", True)):
        outcome = play(job, "cold_start", kind="cold", file_cache="warm", compile_cache=state)
        assert outcome.document["caches"]["compile"] == state
        assert outcome.document["report"]["details"]["loaded_from_cache"] is loaded_from_cache


@pytest.mark.parametrize("name", ["onnxruntime", "tflite"])
def test_a_runtime_without_a_compile_cache_says_so(
    archive: Path, timing_job: Job, tiny_onnx: Path, tmp_path: Path, name: str
) -> None:
    asked = {"file_cache": "warm", "compile_cache": "warm"}
    job = replace(on_runtime(name, timing_job, tiny_onnx, tmp_path), kind="cold", scenario_parameters=asked)
    outcome = run_worker(archive, HERE, job, tmp_path / "work")
    assert outcome.status == "unsupported"
    assert (outcome.reason or "").startswith(f"{name} keeps no compile cache on cpu")


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    """A file of 40 pages that nobody else reads, on a file system that tells about its pages."""
    path = tmp_path / "model.bin"
    path.write_bytes(os.urandom(40 * 4096))
    if page_cache.resident_share([path]) is None:
        pytest.skip("this file system does not tell which pages are in memory")
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has both calls")
def test_pages_are_dropped_and_read_and_both_are_seen(own_file: Path) -> None:
    assert page_cache.read_through([own_file]) == "warm"
    assert page_cache.resident_share([own_file]) == 1.0
    assert page_cache.drop([own_file]) == "cold"
    assert page_cache.resident_share([own_file]) == 0.0
    with own_file.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no reading ahead
        file.read(4096)
    assert page_cache.resident_share([own_file]) == pytest.approx(1 / 40)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has both calls")
def test_a_mapped_file_that_stays_in_memory_is_not_called_cold(own_file: Path) -> None:
    import mmap

    with own_file.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        touched = sum(mapped[place] for place in range(0, len(mapped), 4096))
        assert touched >= 0
        assert page_cache.drop([own_file]).startswith("not controlled: 100.0% of the pages stayed in memory")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has both calls")
def test_a_model_starts_from_the_drive(
    archive: Path, timing_job: Job, tiny_onnx: Path, tmp_path: Path, own_file: Path
) -> None:
    assert timing_job.model is not None
    path = tmp_path / "own.onnx"
    path.write_bytes(tiny_onnx.read_bytes())
    job = replace(timing_job, kind="cold", model=replace(timing_job.model, path=str(path)))
    outcome = run_worker(archive, HERE, replace(job, scenario_parameters={"file_cache": "cold"}), tmp_path / "work")
    assert outcome.status == "ok", outcome
    assert outcome.document["caches"]["file"] == "cold"
    # It was read by the runtime since, from the drive.
    assert page_cache.resident_share([path]) == 1.0


def test_weights_beside_a_model_are_its_files_too(tmp_path: Path) -> None:
    for name in ("model.xml", "model.bin", "other.bin", "net.onnx", "net.onnx.data", "net.onnx_data"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "m.mlpackage" / "Data").mkdir(parents=True)
    (tmp_path / "m.mlpackage" / "Data" / "weight.bin").write_bytes(b"x")
    found = {
        name: [path.name for path in page_cache.files_of(tmp_path / name)]
        for name in ("model.xml", "net.onnx", "m.mlpackage")
    }
    assert found == {
        "model.xml": ["model.xml", "model.bin"],
        "net.onnx": ["net.onnx", "net.onnx.data", "net.onnx_data"],
        "m.mlpackage": ["weight.bin"],
    }
