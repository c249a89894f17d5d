"""A case with everything that its trials and its record need, and the case's own identity."""

from __future__ import annotations

from dataclasses import dataclass

from harness.artifacts import ModelFile
from harness.canonical import digest_of
from harness.datasets import Dataset
from harness.records import Artifact, Case
from harness.runner.plan import CPU_TARGETS, Intent
from harness.worker.job import Job

GPU_TARGETS = ("cuda", "tensorrt", "directml", "migraphx", "gpu", "cpu_and_gpu")
NPU_TARGETS = ("npu", "qnn")


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
    calibration_overlap: str | None = None  # which data set the file's scales and judge its accuracy too
    reference_only: bool = False  # its quality trials are what others are held against; it makes no measurement


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
