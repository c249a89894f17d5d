"""Joins all finished trials of a run to its record and blobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.documents import Bundle, write_run
from harness.records import (
    Accuracy,
    Device,
    Environment,
    Measurement,
    Preparation,
    Run,
    RunStatus,
    SelfCost,
    Source,
    SuiteRef,
)
from harness.runner.accuracy import accuracy_of, with_reference
from harness.runner.cases import PlannedCase, pick_key
from harness.runner.measurements import assemble
from harness.runner.run_folder import RunFolder
from harness.runner.self_cost import self_cost_jobs, self_cost_of
from harness.runner.trial_process import Outcome

REFERENCE_BACKEND = "onnxruntime"  # its fp32 on the CPU runs the source graph as it is
QUALITY_KINDS = ("accuracy", "fidelity")


def assemble_run(
    cases: Sequence[PlannedCase],
    folder: RunFolder,
    *,
    status: RunStatus,
    device: Device,
    environment: Environment,
    suite: SuiteRef,
    trigger: str,
    started_at: str,
    finished_at: str,
    version: str,
    processors: int,
    preparation: Preparation | None = None,
) -> tuple[Run, Bundle]:
    """Join all finished trials to the run record and its blobs."""
    source = Source(kind="measured", name="weighbridge", version=version)
    qualities = _accuracies(cases, _outcomes(cases, folder, QUALITY_KINDS), suite.name)
    blobs: dict[str, bytes] = {}
    measurements: list[Measurement] = []
    for case in cases:
        # One case after the other: raw samples of a whole run may be more than a small board holds in memory.
        ran = [(trial, outcome) for trial in case.trials if (outcome := folder.load(trial.key)) is not None]
        accuracy = qualities.get(pick_key(case)) if case.status is None else None
        made = assemble(case, ran, accuracy, processors, source, interrupted=status == "interrupted")
        blobs.update(made.blobs)
        measurements.append(made.measurement)
    run = Run(
        run_id=folder.run_id,
        status=status,
        device=device,
        environment=environment,
        suite=suite,
        trigger=trigger,
        started_at=started_at,
        finished_at=finished_at,
        source=source,
        measurements=tuple(measurements),
        agent_version=version,
        self_cost=_self_cost(folder),
        preparation=preparation,
    )
    return run, Bundle(write_run(run), blobs)


def _self_cost(folder: RunFolder) -> SelfCost:
    found = (folder.load(job.trial_id) for job in self_cost_jobs(folder.run_id))
    return self_cost_of([outcome for outcome in found if outcome is not None])


def _outcomes(cases: Sequence[PlannedCase], folder: RunFolder, kinds: Sequence[str]) -> dict[str, Outcome | None]:
    return {trial.key: folder.load(trial.key) for case in cases for trial in case.trials if trial.job.kind in kinds}


def _accuracies(
    cases: Sequence[PlannedCase], outcomes: Mapping[str, Outcome | None], suite: str
) -> dict[str, Accuracy]:
    """Return the accuracy of each (workload, backend, target, precision), beside the fp32 reference of its workload."""
    found: dict[str, Accuracy] = {}
    owners: dict[str, PlannedCase] = {}
    for case in sorted(cases, key=lambda case: not case.intent.accuracy):  # those that have the trial come first
        key = pick_key(case)
        if case.status is not None or key in found:
            continue
        outcome = next((outcomes[trial.key] for trial in case.trials if trial.job.kind == "accuracy"), None)
        accuracy = accuracy_of(case, outcome, suite)
        if accuracy is not None:
            found[key], owners[key] = accuracy, case
    references = {case.intent.workload.name: found[key].value for key, case in owners.items() if _is_reference(case)}
    return {
        key: with_reference(
            accuracy, references.get(owners[key].intent.workload.name), owners[key].intent.workload.quality_target
        )
        for key, accuracy in found.items()
    }


def _is_reference(case: PlannedCase) -> bool:
    intent = case.intent
    full = intent.artifact_precision == "fp32" and intent.precision == "fp32"
    return full and intent.backend == REFERENCE_BACKEND and intent.target == "cpu"
