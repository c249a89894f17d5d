"""Runs the trials of a plan, round by round, in a seeded random order, and assembles the run record."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from harness.documents import Bundle, write_run
from harness.energy import metered
from harness.records import Accuracy, Device, Environment, Measurement, Run, RunStatus, Source, SuiteRef
from harness.runner.accuracy import accuracy_of, with_reference
from harness.runner.cases import PlannedCase, PlannedTrial, pick_key
from harness.runner.measurements import assemble
from harness.runner.run_folder import RunFolder
from harness.runner.trial_process import Outcome, interpreter_for, run_worker
from harness.sensors import MeterStatus
from harness.sensors.metering import Metering

REFERENCE_BACKEND = "onnxruntime"  # its fp32 on the CPU runs the source graph as it is


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    done: int
    total: int
    text: str


Listener = Callable[[Progress], None]


def ordered_trials(cases: Sequence[PlannedCase], seed: int) -> list[tuple[PlannedCase, PlannedTrial]]:
    """Return all trials: timing in rounds, each a new random order, then placement, accuracy and energy. The seed decides.

    Rounds spread slow changes of the machine over all cases; the order keeps one case from always following another.
    """
    ordered: list[tuple[PlannedCase, PlannedTrial]] = []
    rounds = max((_timing(case) for case in cases), default=0)
    for number in range(rounds):
        ordered += _shuffled(_nth(cases, "timing", number), f"{seed}-timing-{number}")
    for kind in ("placement", "accuracy", "energy"):
        ordered += _shuffled(_nth(cases, kind, 0), f"{seed}-{kind}")
    return ordered


def _timing(case: PlannedCase) -> int:
    return sum(1 for trial in case.trials if trial.job.kind == "timing")


def _nth(cases: Iterable[PlannedCase], kind: str, number: int) -> list[tuple[PlannedCase, PlannedTrial]]:
    found = []
    for case in cases:
        of_kind = [trial for trial in case.trials if trial.job.kind == kind]
        if number < len(of_kind):
            found.append((case, of_kind[number]))
    return found


def _shuffled(trials: list[tuple[PlannedCase, PlannedTrial]], seed: str) -> list[tuple[PlannedCase, PlannedTrial]]:
    random.Random(seed).shuffle(trials)  # noqa: S311  an order, not a secret
    return trials


def run_trials(
    cases: Sequence[PlannedCase],
    seed: int,
    folder: RunFolder,
    archive: Path,
    runtimes: Mapping[str, Path],
    listen: Listener,
    meters: Sequence[MeterStatus] = (),
    energy_idle_s: float = 0.0,
) -> bool:
    """Run every trial that the folder does not hold yet; False when Ctrl-C ended it early. Each is kept at once.

    Meters are read during the energy trials only, after a stretch of idle.
    """
    trials = ordered_trials(cases, seed)
    try:
        with ExitStack() as stack:
            metering: Metering | None = None
            for number, (case, trial) in enumerate(trials):
                listen(Progress(number, len(trials), describe(case, trial)))
                if folder.load(trial.key) is not None:
                    continue
                metered_trial = trial.job.kind == "energy"
                if metered_trial and metering is None:
                    metering = stack.enter_context(Metering(meters))
                    metering.rest(energy_idle_s)
                interpreter = interpreter_for(case.intent.backend, runtimes)
                outcome = run_worker(archive, interpreter, trial.job, folder.path / "work")
                if metered_trial and metering is not None and outcome.status == "ok":
                    unit, index = case.case.compute_unit, case.intent.device_index
                    document = metered(outcome.document, metering, unit, index, trial.job.batch)
                    # Its times are no latency of the case: a meter was read meanwhile.
                    outcome = replace(outcome, document=document, files={})
                folder.save(trial.key, outcome)
    except KeyboardInterrupt:
        return False
    listen(Progress(len(trials), len(trials), "done"))
    return True


def describe(case: PlannedCase, trial: PlannedTrial) -> str:
    """Return one line about a trial, for people."""
    intent = case.intent
    what = intent.scenario if trial.job.kind == "timing" else trial.job.kind
    return f"{intent.workload.name} on {intent.backend} {intent.target}: {what}"


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
) -> tuple[Run, Bundle]:
    """Join all finished trials to the run record and its blobs."""
    source = Source(kind="measured", name="weighbridge", version=version)
    outcomes = {trial.key: folder.load(trial.key) for case in cases for trial in case.trials}
    qualities = _accuracies(cases, outcomes, suite.name)
    blobs: dict[str, bytes] = {}
    measurements: list[Measurement] = []
    for case in cases:
        ran = [(trial, outcome) for trial in case.trials if (outcome := outcomes[trial.key]) is not None]
        accuracy = qualities.get(pick_key(case)) if case.status is None else None
        made = assemble(case, ran, accuracy, processors, source)
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
    )
    return run, Bundle(write_run(run), blobs)


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
