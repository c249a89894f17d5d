"""Energy trials beside a constructed RAPL counter, on real onnxruntime."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.artifacts import ModelFile
from harness.energy import energy_of
from harness.records import Artifact
from harness.runner.cases import PlannedCase, PlannedTrial, case_of
from harness.runner.plan import Intent
from harness.runner.run_folder import RunFolder
from harness.runner.runner import run_trials
from harness.sensors import available_meters
from harness.suites import Group
from harness.worker.job import Job
from harness.workloads.definition import Workload

WATTS = 5.0
RUN = "3c53b7b0-3fb1-43a4-8fa8-a599b9ce2bf9"


@pytest.fixture
def rapl(tmp_path: Path) -> Iterator[Path]:
    """A tree whose counter grows by five joules each second."""
    domain = tmp_path / "root/sys/class/powercap/intel-rapl:0"
    domain.mkdir(parents=True)
    (domain / "name").write_text("package-0\n")
    (domain / "max_energy_range_uj").write_text("262143328850\n")
    (domain / "energy_uj").write_text("0\n")
    counter = os.open(domain / "energy_uj", os.O_WRONLY)
    start, stop = time.monotonic(), threading.Event()

    def grow() -> None:
        while not stop.wait(0.005):
            text = f"{int((time.monotonic() - start) * WATTS * 1e6):012d}\n"
            os.pwrite(counter, text.encode(), 0)  # in place, as the kernel's file changes under an open reader

    thread = threading.Thread(target=grow)
    thread.start()
    yield tmp_path / "root"
    stop.set()
    thread.join()
    os.close(counter)


def test_the_energy_of_one_inference_is_the_window_s_over_its_inferences(
    archive: Path, timing_job: Job, tmp_path: Path, rapl: Path
) -> None:
    assert timing_job.model is not None
    limits = {"duration_s": 2, "warmup_s": 0.1, "min_queries": 10, "loaded_idle_s": 1.0}
    job = replace(timing_job, kind="energy", scenario_parameters=limits)
    group = Group("single_stream", ("w",), {"onnxruntime": ("cpu",)})
    workload = Workload("w", "W", "w", "random_inputs", "w")
    intent = Intent(workload, "onnxruntime", "cpu", "single_stream", "fp32", "fp32", 1, 1, None, 0, group)
    artifact = Artifact("onnx", "fp32", "a" * 64, 1, "tiny.onnx")
    model = ModelFile(artifact, Path(timing_job.model.path), timing_job.model.inputs, timing_job.model.outputs)
    case = PlannedCase(intent, case_of(intent, model, None), RUN, artifact, (PlannedTrial("energy-0", job),))
    folder = RunFolder.create(tmp_path / "runs", RUN, {})
    meters = available_meters(rapl)
    assert run_trials([case], 1, folder, archive, {}, lambda progress: None, meters, energy_idle_s=0.5)

    outcome = folder.load("energy-0")
    assert outcome is not None
    assert outcome.status == "ok", outcome.reason
    assert outcome.files == {}  # times taken while a meter was read are no latency
    energy, flags = energy_of(json.loads(json.dumps(outcome.document)))
    queries = outcome.document["queries"]
    seconds = (outcome.document["window_end_ns"] - outcome.document["window_start_ns"]) / 1e9
    assert energy.mean_w == pytest.approx(WATTS, rel=0.1)
    assert energy.per_inference_j == pytest.approx(WATTS * seconds / queries, rel=0.1)
    assert energy.idle_w == pytest.approx(WATTS, rel=0.15)
    assert energy.loaded_idle_w == pytest.approx(WATTS, rel=0.15)  # waiting with the model loaded
    waited_start, waited_end = outcome.document["loaded_idle_ns"]
    assert 1.0 <= (waited_end - waited_start) / 1e9 < 3
    assert waited_end <= outcome.document["window_start_ns"]
    assert (energy.source, energy.scope, energy.method) == ("rapl:package-0", "cpu_package", "counter_diff")
    assert "energy_window_short" in {flag.code for flag in flags}
