"""Runs the trials of a plan, round by round, each in a process of its own, and keeps each outcome at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from harness.conditions import watch
from harness.energy import metered
from harness.runner.cases import PlannedCase, PlannedTrial
from harness.runner.rounds import Rounds
from harness.runner.run_folder import RunFolder
from harness.runner.self_cost import self_cost_jobs
from harness.runner.target_figures import MEASURING_KINDS
from harness.runner.trial_process import Outcome, interpreter_for, run_worker
from harness.sensors import MeterStatus
from harness.sensors.metering import Metering


@dataclass(frozen=True)
class Progress:
    """How far a run is. `total` counts every case up to its next look, and grows where one is not sure enough there.

    `finished` is one line about a case of which the last measuring trial has just ended.
    """

    done: int
    total: int
    text: str
    finished: str | None = None


Listener = Callable[[Progress], None]


def run_trials(
    cases: Sequence[PlannedCase],
    seed: int,
    folder: RunFolder,
    archive: Path,
    runtimes: Mapping[str, Path],
    listen: Listener,
    meters: Sequence[MeterStatus] = (),
    energy_idle_s: float = 0.0,
    budget_s: float | None = None,
) -> bool:
    """Run every trial that the folder does not hold yet; False when Ctrl-C ended it early. Each is kept at once.

    Meters are read during the energy trials only, after a stretch of idle.
    """
    rounds = Rounds(cases, seed, budget_s, energy_idle_s)
    told: set[str] = set()
    try:
        with ExitStack() as stack:
            metering: Metering | None = None
            itself = False
            for case, trial in rounds:
                if not itself and (rounds.number > 1 or trial.job.kind not in MEASURING_KINDS):
                    itself = _measure_itself(folder, archive)  # after the first round, which comes first for people
                listen(Progress(rounds.done, rounds.expected, _describe(rounds, case, trial), None))
                outcome = folder.load(trial.key)
                if outcome is None:
                    if trial.job.kind == "energy" and metering is None:
                        metering = stack.enter_context(Metering(meters))
                        metering.rest(energy_idle_s)
                    interpreter = interpreter_for(case.intent.backend, runtimes)
                    outcome = _run(case, trial, archive, interpreter, folder, metering)
                    folder.save(trial.key, outcome)
                rounds.record(case, trial, outcome)
                if trial.job.kind in MEASURING_KINDS and not rounds.goes_on(case) and case.measurement_id not in told:
                    told.add(case.measurement_id)
                    line = _ended(rounds, case, outcome)
                    listen(Progress(rounds.done, rounds.expected, line, line))
            if not itself and rounds.done:
                _measure_itself(folder, archive)
    except KeyboardInterrupt:
        return False
    listen(Progress(rounds.done, rounds.done, "done"))
    return True


def _measure_itself(folder: RunFolder, archive: Path) -> bool:
    """Measure what the harness itself costs per query, once for the run; True."""
    for job in self_cost_jobs(folder.run_id):
        if folder.load(job.trial_id) is None:
            folder.save(job.trial_id, run_worker(archive, Path(sys.executable), job, folder.path / "work"))
    return True


def _run(
    case: PlannedCase,
    trial: PlannedTrial,
    archive: Path,
    interpreter: Path,
    folder: RunFolder,
    metering: Metering | None,
) -> Outcome:
    """Run one worker, with what else goes on watched meanwhile, and with the meters' readings for an energy trial."""
    unit, index = case.case.compute_unit, case.intent.device_index
    on_gpu = unit is not None and unit.startswith("gpu")
    with watch(index if on_gpu else None) as watching:
        outcome = run_worker(archive, interpreter, trial.job, folder.path / "work", watching.follow)
    document = outcome.document
    if document:
        window = document.get("window_start_ns"), document.get("window_end_ns")
        outcome = replace(outcome, document={**document, "conditions": watching.conditions(*window)})
    if trial.job.kind == "energy" and metering is not None and outcome.status == "ok":
        with_energy = metered(outcome.document, metering, unit, index, trial.job.batch)
        # Its times are no latency of the case: a meter was read meanwhile.
        outcome = replace(outcome, document=with_energy, files={})
    return outcome


def _describe(rounds: Rounds, case: PlannedCase, trial: PlannedTrial) -> str:
    if trial.job.kind not in MEASURING_KINDS:
        return describe(case, trial)
    return f"round {rounds.number}, {rounds.active} cases left: {describe(case, trial)}"


def _ended(rounds: Rounds, case: PlannedCase, outcome: Outcome) -> str:
    """Return one line about a case that gets no further trial."""
    intent = case.intent
    given = [f"{name}={value}" for name, value in intent.parameters.items() if value is not None]
    batch = [f"batch={intent.batch}"] if intent.batch > 1 else []
    which = " ".join([intent.scenario, intent.artifact_precision, *batch, *given])
    where = f"{intent.workload.name} on {intent.backend} {intent.target}, {which}"
    count = rounds.trials_of(case)
    if outcome.status != "ok":
        return f"{where}: {outcome.status}. {outcome.reason}"
    return f"{where}: {count} trial{'s' if count != 1 else ''}"


def describe(case: PlannedCase, trial: PlannedTrial) -> str:
    """Return one line about a trial, for people."""
    intent = case.intent
    what = intent.scenario if trial.job.kind in MEASURING_KINDS else trial.job.kind
    return f"{intent.workload.name} on {intent.backend} {intent.target}: {what}"
