"""The job file, which is all that a worker sees, and its counterpart the trial file. Both sides of the wall import this."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from backends.base import LoadOptions
from harness.artifacts import Port
from harness.tasks.base import Sample

JOB_SCHEMA = "weighbridge/job/1"
TRIAL_SCHEMA = "weighbridge/trial/1"
TRIAL_FILE = "trial.json"
SPAWNED_VARIABLE = "WEIGHBRIDGE_SPAWNED_NS"  # monotonic nanoseconds, taken by the parent just before the start


@dataclass(frozen=True)
class JobModel:
    """The file to load, and how its tensors are called by the task."""

    path: str
    format: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@dataclass(frozen=True)
class FidelityInputs:
    """What runs through the session so that its raw outputs can be held against the reference's. No labels are needed."""

    task: str
    task_parameters: Mapping[str, Any]
    samples: tuple[Sample, ...]


@dataclass(frozen=True)
class Job:
    """One trial to run. A probe job has `targets` and no model."""

    trial_id: str
    kind: str
    backend: str
    out_dir: str
    timeout_s: float  # the worker ends itself a little later, so that it never outlives a parent that was killed
    target: str = ""
    targets: tuple[str, ...] = ()
    device_index: int = 0
    model: JobModel | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # fields of LoadOptions
    task: str = ""
    task_parameters: Mapping[str, Any] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    scenario: str = ""
    scenario_parameters: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 1
    fidelity: FidelityInputs | None = None  # of a fidelity trial, and of an accuracy trial that does both

    def load_options(self) -> LoadOptions:
        """Return the options as the backend takes them."""
        given = dict(self.options)
        given["input_shapes"] = {name: tuple(shape) for name, shape in dict(given.get("input_shapes") or {}).items()}
        for name in ("cache_dir", "profile_dir"):
            if given.get(name):
                given[name] = Path(given[name])
        return LoadOptions(**given)


def write_job(job: Job, path: Path) -> None:
    """Write the job file. Labels stay behind: a worker that does not know them cannot use them."""
    document = asdict(job)
    document["schema"] = JOB_SCHEMA
    for sample in [*document["samples"], *(document["fidelity"] or {}).get("samples", ())]:
        sample.pop("label")
    document["task"] = {"name": document.pop("task"), "parameters": document.pop("task_parameters")}
    document["scenario"] = {"name": document.pop("scenario"), "parameters": document.pop("scenario_parameters")}
    path.write_text(json.dumps(document, allow_nan=False), encoding="utf-8")


def read_job(path: Path) -> Job:
    """Read a job file. Raises ValueError, KeyError or TypeError for anything that `write_job` did not write."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.pop("schema", None) != JOB_SCHEMA:
        raise ValueError(f"the job is not of schema {JOB_SCHEMA}")
    task, scenario, model = document.pop("task"), document.pop("scenario"), document.pop("model")
    fidelity = document.pop("fidelity")
    return Job(
        task=task["name"],
        task_parameters=task["parameters"],
        scenario=scenario["name"],
        scenario_parameters=scenario["parameters"],
        model=None
        if model is None
        else JobModel(
            path=model["path"],
            format=model["format"],
            inputs=tuple(_port(port) for port in model["inputs"]),
            outputs=tuple(_port(port) for port in model["outputs"]),
        ),
        samples=tuple(Sample.from_json(sample) for sample in document.pop("samples")),
        targets=tuple(document.pop("targets")),
        fidelity=None
        if fidelity is None
        else FidelityInputs(
            task=fidelity["task"],
            task_parameters=fidelity["task_parameters"],
            samples=tuple(Sample.from_json(sample) for sample in fidelity["samples"]),
        ),
        **document,
    )


def write_result(out_dir: Path, document: Mapping[str, Any]) -> None:
    """Write the trial file at once or not at all (os.replace works on every system)."""
    part = out_dir / f"{TRIAL_FILE}.part"
    text = json.dumps({"schema": TRIAL_SCHEMA, **document}, allow_nan=False)
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, out_dir / TRIAL_FILE)


def _port(document: Mapping[str, Any]) -> Port:
    return Port(**{**document, "shape": tuple(document["shape"])})
