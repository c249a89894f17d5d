"""What a worker is given to do: one job for each kind of trial of a case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.artifacts import ModelFile, Port
from harness.datasets import Dataset, LatencyPool
from harness.judgement.figures import THROUGHPUT_SCENARIOS
from harness.models.store import ModelStore
from harness.runner.plan import Intent
from harness.suites.definition import Suite
from harness.tasks.base import Sample
from harness.worker.job import FidelityInputs, Job, JobModel
from harness.workloads.preparation import random_parameters, task_parameters

LIMITS = ("duration_s", "warmup_s", "min_queries", "max_queries", "limit_s")


class JobMaker:
    """Makes the jobs of one suite. Raises ModelError where a file that the task needs, such as a tokenizer, is missing."""

    def __init__(self, suite: Suite, store: ModelStore) -> None:
        self._suite = suite
        self._store = store

    def measuring(self, kind: str, intent: Intent, model: ModelFile, pool: LatencyPool) -> Job:
        """Return the job of a timing or cold trial."""
        return self._rotating(kind, intent, model, pool, intent.batch)

    def placement(self, intent: Intent, model: ModelFile, pool: LatencyPool) -> Job:
        """Return the job that looks where the nodes run, with the runtime's profiler on."""
        return self._rotating("placement", intent, model, pool, 1)

    def energy(self, intent: Intent, model: ModelFile, pool: LatencyPool) -> Job:
        """Return the job beside which the meters are read; its window is as long as they need.

        Before it the loaded model waits for as long, at most as long as the machine was idle before: that is another idle.
        """
        window_s = max(self._suite.energy_s, intent.group.duration_s)
        group = replace(intent.group, duration_s=window_s, limit_s=max(intent.group.limit_s, window_s))
        job = self._rotating("energy", replace(intent, group=group), model, pool, intent.batch)
        waited_s = min(self._suite.energy_s, self._suite.energy_idle_s)
        parameters = {**job.scenario_parameters, "loaded_idle_s": waited_s}
        return replace(job, scenario_parameters=parameters, timeout_s=job.timeout_s + waited_s)

    def accuracy(self, intent: Intent, model: ModelFile, data: Dataset, pool: LatencyPool) -> Job:
        """Return the job that predicts every labelled sample once, and then makes the fidelity pass in the same process."""
        task, parameters = intent.workload.task, task_parameters(intent.workload, self._store)
        job = self._filled("accuracy", intent, model, data.samples, task, parameters, 1, self._suite.accuracy_timeout_s)
        return replace(job, fidelity=self._fidelity_inputs(intent, model, pool))

    def fidelity(self, intent: Intent, model: ModelFile, pool: LatencyPool) -> Job:
        """Return the job that keeps the raw outputs of a fixed set of inputs; `model` is the file of batch 1."""
        inputs = self._fidelity_inputs(intent, model, pool)
        timeout = self._suite.timeout_s
        job = self._filled("fidelity", intent, model, (), inputs.task, inputs.task_parameters, 1, timeout)
        return replace(job, fidelity=inputs)

    def _fidelity_inputs(self, intent: Intent, model: ModelFile, pool: LatencyPool) -> FidelityInputs:
        if pool.random:
            return FidelityInputs("random_inputs", random_parameters(model), pool.samples)
        return FidelityInputs(intent.workload.task, task_parameters(intent.workload, self._store), pool.samples)

    def _rotating(self, kind: str, intent: Intent, model: ModelFile, pool: LatencyPool, batch: int) -> Job:
        task, parameters = intent.workload.task, task_parameters(intent.workload, self._store)
        if pool.random:
            task, parameters = "random_inputs", random_parameters(model)
        duration_s = float(intent.parameters.get("duration_s", intent.group.duration_s))
        window = intent.group.warmup_s + max(intent.group.limit_s, duration_s)
        timeout = self._suite.timeout_s + window
        return self._filled(kind, intent, model, pool.samples, task, parameters, batch, timeout)

    def _filled(
        self,
        kind: str,
        intent: Intent,
        model: ModelFile,
        samples: tuple[Sample, ...],
        task: str,
        parameters: Mapping[str, Any],
        batch: int,
        timeout_s: float,
    ) -> Job:
        group = intent.group
        scenario: dict[str, Any] = {**{name: getattr(group, name) for name in LIMITS}, **intent.parameters}
        if intent.slots is not None:
            scenario["slots"] = intent.slots
        options: dict[str, Any] = {
            "precision": intent.precision,
            "threads": intent.threads,
            "device_index": intent.device_index,
            "input_shapes": {port.tensor: file_shape(port, batch) for port in model.inputs},
        }
        if kind == "placement":
            options["profile_dir"] = "."  # the worker's private folder is its working directory
        # OpenVINO's own choice of streams depends on its hint; without one, it prepares for latency.
        if intent.scenario in THROUGHPUT_SCENARIOS and kind in ("timing", "energy") and intent.backend == "openvino":
            options["extra"] = {"PERFORMANCE_HINT": "THROUGHPUT"}
        return Job(
            trial_id="",
            kind=kind,
            backend=intent.backend,
            out_dir="",
            timeout_s=timeout_s,
            target=intent.target,
            device_index=intent.device_index,
            model=JobModel(str(model.path), model.artifact.format, model.inputs, model.outputs),
            options=options,
            task=task,
            task_parameters=parameters,
            samples=samples,
            scenario=intent.scenario,
            scenario_parameters=scenario,
            batch=batch,
        )


def file_shape(port: Port, batch: int) -> list[int]:
    """Return a port's shape in the file's own layout: a free first size is the batch, any other free size is 1."""
    shape = [size or (batch if position == 0 else 1) for position, size in enumerate(port.shape)]
    return [shape[0], *shape[2:], shape[1]] if port.layout == "nhwc" else shape
