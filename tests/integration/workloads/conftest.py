"""A workload's whole accuracy, on a real runtime, as a worker takes it: real files, decode to prediction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.base import Array, LoadOptions
from harness.datasets import open_dataset
from harness.folders import cache_dir
from harness.models.store import ModelStore
from harness.tasks.metrics import Evaluation, evaluate
from harness.worker.accuracy import PREDICTIONS, run_accuracy
from harness.worker.job import Job, JobModel
from harness.workloads.definition import load_workloads
from harness.workloads.preparation import fit_ports, task_parameters

FORMATS = {"onnxruntime": "onnx", "openvino": "onnx", "tflite": "tflite"}

Measure = Callable[..., Evaluation]


@pytest.fixture(scope="session")
def cache() -> Path:
    """The user's own cache: it is content-addressed, so tests only add to it what a run would fetch."""
    return cache_dir()


@pytest.fixture
def measure(cache: Path, tmp_path: Path) -> Measure:
    """Return a function (workload, backend, limit) -> Evaluation."""

    def run(name: str, backend: str, limit: int | None = None) -> Evaluation:
        workload, store = load_workloads()[name], ModelStore(cache)
        assert workload.dataset is not None
        dataset = open_dataset(workload.dataset, cache=cache)
        samples = dataset.samples[:limit]
        model = fit_ports(workload, store.ensure(workload.model, FORMATS[backend]))
        shapes = {port.tensor: tuple(size or 1 for size in port.shape) for port in model.inputs if 0 in port.shape}
        out = tmp_path / backend
        out.mkdir()
        job = Job(
            trial_id="t",
            kind="accuracy",
            backend=backend,
            out_dir=str(out),
            timeout_s=300,
            target="cpu",
            model=JobModel(str(model.path), model.artifact.format, model.inputs, model.outputs),
            options={"precision": "fp32", "threads": 2, "input_shapes": shapes},
            task=workload.task,
            task_parameters=task_parameters(workload, store),
            samples=samples,
        )
        run_accuracy(job)
        lines = [json.loads(line) for line in (out / PREDICTIONS).read_text(encoding="utf-8").splitlines()]
        found: Mapping[str, Any] = {line["id"]: line["prediction"] for line in lines}
        return evaluate(workload.task, found, samples)

    return run


def raw_outputs(cache: Path, name: str, backend: str, inputs: list[Mapping[str, Array]]) -> list[dict[str, Array]]:
    """Return the network's canonical outputs for canonical inputs, on the CPU at fp32."""
    import backends
    from harness.worker.tensors import TensorMap

    model = ModelStore(cache).ensure(load_workloads()[name].model, FORMATS[backend])
    shapes = {port.tensor: tuple(size or 1 for size in port.shape) for port in model.inputs if 0 in port.shape}
    options = LoadOptions(precision="fp32", threads=2, input_shapes=shapes)
    session = backends.create(backend).load(model.path, model.artifact.format, "cpu", options)
    try:
        session.prepare(1)
        into, out = TensorMap(model.inputs, session.inputs), TensorMap(model.outputs, session.outputs)
        return [
            {role: np.array(array) for role, array in out.to_canonical(session.infer(0, into.to_file([one]))).items()}
            for one in inputs
        ]
    finally:
        session.close()


@pytest.fixture
def outputs(cache: Path) -> Callable[..., list[dict[str, Array]]]:
    """Return a function (workload, backend, inputs) -> raw outputs."""
    return lambda name, backend, inputs: raw_outputs(cache, name, backend, inputs)
