"""From what is asked for to what can be started: model files, data, the case's key, and one job per trial."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from backends.base import TargetStatus
from harness.artifacts import ModelFile, Port
from harness.canonical import digest_of
from harness.datasets import Dataset, LatencyPool, latency_samples, open_dataset
from harness.energy import meter_of
from harness.errors import ModelError
from harness.models.progress import Progress
from harness.models.store import ModelStore
from harness.records import Artifact, Case
from harness.runner.plan import CPU_TARGETS, Intent
from harness.sensors import MeterStatus
from harness.suites.definition import Suite
from harness.tasks.base import Sample
from harness.worker.job import Job, JobModel
from harness.workloads.definition import Workload
from harness.workloads.preparation import fit_ports, random_parameters, task_parameters

GPU_TARGETS = ("cuda", "tensorrt", "directml", "migraphx", "gpu", "cpu_and_gpu")
NPU_TARGETS = ("npu", "qnn")


class Configured(Protocol):
    """The part of the user's configuration that is needed here."""

    @property
    def datasets(self) -> Mapping[str, Path]: ...


@dataclass(frozen=True)
class PlannedTrial:
    """One worker to start. `key` names it in the run's folder, over every attempt."""

    key: str
    job: Job


@dataclass(frozen=True)
class PlannedCase:
    """A case with everything that its trials and its record need; `status` is set where no trial will run."""

    intent: Intent
    case: Case
    measurement_id: str
    artifact: Artifact | None
    trials: tuple[PlannedTrial, ...] = ()
    status: str | None = None
    reason: str | None = None
    input_note: str | None = None
    accuracy_data: Dataset | None = None
    accuracy_reason: str | None = None  # why accuracy is not measured
    energy_reason: str | None = None  # why energy is not measured
    device_name: str | None = None


class CaseBuilder:
    """Gets models and data, each once, and turns intents into cases. Identifiers follow from the run's and the case's."""

    def __init__(
        self,
        run_id: str,
        suite: Suite,
        store: ModelStore,
        cache: Path,
        offline: bool,
        configuration: Configured,
        progress: Progress | None = None,
        meters: Sequence[MeterStatus] = (),
    ) -> None:
        self._run_id = run_id
        self._meters = meters
        self._suite = suite
        self._store = store
        self._cache = cache
        self._offline = offline
        self._configuration = configuration
        self._progress = progress
        self._models: dict[tuple[str, str, str, int], ModelFile | ModelError] = {}
        self._pools: dict[str, LatencyPool] = {}
        self._datasets: dict[str, Dataset | ModelError] = {}

    def prefetch(self, runnable: Sequence[tuple[Intent, Sequence[str]]]) -> None:
        """Fetch the model files of these intents (each with the formats its backend reads) in one go.

        What cannot be had is said case by case in `build`, so an error is no news here.
        """
        wanted = [
            (intent.workload.model, chosen, intent.artifact_precision)
            for intent, formats in runnable
            if isinstance(intent.workload.model, str) and (chosen := self._format(intent, formats))
        ]
        with suppress(ModelError):
            self._store.prefetch(dict.fromkeys(wanted))

    def build(self, intent: Intent, probe: TargetStatus | None, formats: Sequence[str]) -> PlannedCase:
        """Return the planned case; nothing is fetched for one that cannot run here."""
        if not intent.runs:
            return self._without_trials(intent, intent.status or "skipped", intent.reason or "")
        if probe is not None and not probe.works:
            reason = f"{probe.reason or 'It does not work here.'} {probe.fix or ''}".strip()
            return self._without_trials(intent, "unsupported", reason)
        chosen = self._format(intent, formats)
        if chosen is None:
            reads = ", ".join(formats)
            reason = (
                f"There is no {intent.artifact_precision} file of {intent.workload.name} that {intent.backend} reads"
            )
            return self._without_trials(intent, "unsupported", f"{reason} ({reads}).")
        model = self._model(intent.workload, chosen, intent.artifact_precision, intent.batch)
        if isinstance(model, ModelError):
            return self._without_trials(intent, "failed", str(model))
        try:
            return self._with_trials(intent, model, probe)
        except ModelError as error:  # a file that the task needs, such as a tokenizer
            return self._without_trials(intent, "failed", str(error))

    def _with_trials(self, intent: Intent, model: ModelFile, probe: TargetStatus | None) -> PlannedCase:
        pool = self._pool(intent.workload)
        case = case_of(intent, model, pool.dataset)
        data: Dataset | None = None
        accuracy_reason = intent.workload.accuracy_reason
        kind = "cold" if intent.scenario == "cold_start" else "timing"
        measuring = self._job(kind, intent, model, pool, intent.batch)
        jobs = [(kind, number, measuring) for number in range(intent.group.most_trials)]
        if intent.placement:
            jobs.append(("placement", 0, self._job("placement", intent, model, pool, 1)))
        energy_reason = self._energy_reason(intent, case)
        if energy_reason is None:
            jobs.append(("energy", 0, self._energy_job(intent, model, pool)))
        if intent.accuracy:
            opened = self._data(intent.workload)
            whole = self._model(intent.workload, model.artifact.format, intent.artifact_precision, 1)
            if isinstance(opened, Dataset) and isinstance(whole, ModelFile):
                data = opened
                jobs.append(("accuracy", 0, self._accuracy_job(intent, whole, data)))
            else:
                accuracy_reason = f"Not measured: {opened if isinstance(opened, ModelError) else whole}"
        # A run that is resumed takes no trial of a file that has changed since, by a newer recipe for example.
        files = digest_of([case.key, model.artifact.sha256])
        return PlannedCase(
            intent=intent,
            case=case,
            measurement_id=self._identifier(case.key),
            artifact=model.artifact,
            trials=tuple(self._trial(files, kind, number, job) for kind, number, job in jobs),
            input_note=pool.note if pool.random and intent.workload.latency_samples != "random" else None,
            accuracy_data=data,
            accuracy_reason=accuracy_reason,
            energy_reason=energy_reason,
            device_name=probe.device_name if probe is not None else None,
        )

    def _without_trials(self, intent: Intent, status: str, reason: str) -> PlannedCase:
        case = case_of(intent, None, None)
        return PlannedCase(intent, case, self._identifier(case.key), None, status=status, reason=reason)

    def _trial(self, files: str, kind: str, number: int, job: Job) -> PlannedTrial:
        key = f"{files[:32]}-{kind}-{number}"
        return PlannedTrial(key, Job(**{**job.__dict__, "trial_id": self._identifier(key)}))

    def _identifier(self, name: str) -> str:
        return str(uuid.uuid5(uuid.UUID(self._run_id), name))

    def _format(self, intent: Intent, formats: Sequence[str]) -> str | None:
        statuses = self._store.formats(intent.workload.model)
        there = {item.format for item in statuses if item.precision == intent.artifact_precision}
        return next((name for name in formats if name in there), None)

    def _model(self, workload: Workload, model_format: str, precision: str, batch: int) -> ModelFile | ModelError:
        key = (workload.name, model_format, precision, batch)
        if key not in self._models:
            try:
                self._models[key] = fit_ports(
                    workload, self._store.ensure(workload.model, model_format, precision, batch)
                )
            except ModelError as error:
                self._models[key] = error
        return self._models[key]

    def _pool(self, workload: Workload) -> LatencyPool:
        if workload.name not in self._pools:
            self._pools[workload.name] = latency_samples(
                workload,
                cache=self._cache,
                offline=self._offline,
                configuration=self._configuration,
                progress=self._progress,
            )
        return self._pools[workload.name]

    def _data(self, workload: Workload) -> Dataset | ModelError:
        if workload.name not in self._datasets:
            try:
                if workload.dataset is None:
                    raise ModelError(f"The workload {workload.name} has no labelled data.")
                self._datasets[workload.name] = open_dataset(
                    workload.dataset,
                    cache=self._cache,
                    offline=self._offline,
                    configuration=self._configuration,
                    progress=self._progress,
                )
            except ModelError as error:
                self._datasets[workload.name] = error
        return self._datasets[workload.name]

    def _energy_job(self, intent: Intent, model: ModelFile, pool: LatencyPool) -> Job:
        window_s = max(self._suite.energy_s, intent.group.duration_s)
        group = replace(intent.group, duration_s=window_s, limit_s=max(intent.group.limit_s, window_s))
        return self._job("energy", replace(intent, group=group), model, pool, intent.batch)

    def _energy_reason(self, intent: Intent, case: Case) -> str | None:
        """Return why the case gets no energy trial; None where it does."""
        if not intent.workload.energy:
            return "Not measured: this workload's data are not natural, so its power is not comparable."
        status = meter_of(case.compute_unit, intent.device_index, self._meters)
        if status.works:
            return None
        reason = f"{status.text} {status.fix or ''}".strip()
        return reason[:1].upper() + reason[1:]

    def _accuracy_job(self, intent: Intent, model: ModelFile, data: Dataset) -> Job:
        task, parameters = intent.workload.task, task_parameters(intent.workload, self._store)
        return self._filled(
            "accuracy", intent, model, data.samples, task, parameters, 1, self._suite.accuracy_timeout_s
        )

    def _job(self, kind: str, intent: Intent, model: ModelFile, pool: LatencyPool, batch: int) -> Job:
        task, parameters = intent.workload.task, task_parameters(intent.workload, self._store)
        if pool.random:
            task, parameters = "random_inputs", random_parameters(model)
        window = intent.group.warmup_s + max(intent.group.limit_s, intent.group.duration_s)
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
        limits = ("duration_s", "warmup_s", "min_queries", "max_queries", "limit_s")
        scenario: dict[str, Any] = {**{name: getattr(group, name) for name in limits}, **intent.parameters}
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
        if intent.scenario == "offline" and kind in ("timing", "energy") and intent.backend == "openvino":
            # OpenVINO's own choice of streams depends on this hint; without it, it prepares for latency.
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


def case_of(intent: Intent, model: ModelFile | None, dataset: str | None) -> Case:
    """Return what is asked for, as the record keeps it. Durations are no part: a series lives over many suites."""
    artifact = model.artifact if model is not None else None
    first = model.inputs[0] if model is not None and model.inputs else None
    shape = (
        [size or (intent.batch if position == 0 else 1) for position, size in enumerate(first.shape)] if first else []
    )
    return Case(
        workload=intent.workload.name,
        dataset=dataset,
        source_weights=(artifact.source_sha256 or artifact.sha256) if artifact is not None else None,
        artifact_precision=intent.artifact_precision,
        requested_precision=intent.precision,
        backend=intent.backend,
        target=intent.target,
        compute_unit=compute_unit_of(intent.target, intent.device_index),
        scenario=intent.scenario,
        scenario_parameters=dict(intent.parameters),
        batch=intent.batch,
        streams=intent.slots,
        threads=intent.threads,
        input_size="x".join(map(str, shape)) or None,
    )


def compute_unit_of(target: str, device_index: int) -> str | None:
    """Return the name of the unit that a target means, None where the runtime chooses."""
    if target in CPU_TARGETS:
        return "cpu"
    if target in GPU_TARGETS:
        return f"gpu{device_index}"
    if target in NPU_TARGETS:
        return f"npu{device_index}"
    return "ane" if target == "cpu_and_ne" else None


def pick_key(case: PlannedCase) -> str:
    """Return what cases share whose accuracy is one and the same."""
    intent = case.intent
    return digest_of([intent.workload.name, intent.backend, intent.target, intent.artifact_precision, intent.precision])
