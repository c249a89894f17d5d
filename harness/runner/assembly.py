"""Joins all finished trials of a run to its record and blobs."""

from __future__ import annotations

from collections.abc import Sequence

from harness.documents import Bundle, write_run
from harness.records import (
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
from harness.runner.cases import PlannedCase, pick_key
from harness.runner.measurements import assemble
from harness.runner.qualities import QUALITY_KINDS, qualities_of
from harness.runner.run_folder import RunFolder
from harness.runner.self_cost import self_cost_jobs, self_cost_of
from harness.runner.trial_process import Outcome


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
    qualities = qualities_of(cases, _outcomes(cases, folder, QUALITY_KINDS), suite.name)
    blobs: dict[str, bytes] = {}
    measurements: list[Measurement] = []
    for case in cases:
        if case.reference_only:
            continue
        # One case after the other: raw samples of a whole run may be more than a small board holds in memory.
        ran = [(trial, outcome) for trial in case.trials if (outcome := folder.load(trial.key)) is not None]
        quality = qualities.get(pick_key(case)) if case.status is None else None
        made = assemble(case, ran, quality, processors, source, interrupted=status == "interrupted")
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
