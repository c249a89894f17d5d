"""How good the answers of each artifact, runtime, target and precision are, beside the fp32 reference of their workload.

The reference is fp32 of onnxruntime on the CPU in the same run: it runs the source graph as it is. Where the run's own cases
lack it, `harness.runner.references` adds its trials, so that a gate is judged whichever backend was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.judgement import flags
from harness.judgement.accuracy_gate import gate_flags
from harness.judgement.fidelity import fidelity_flags
from harness.records import Accuracy, Fidelity, Flag
from harness.runner.accuracy import Judged, accuracy_of, with_reference
from harness.runner.cases import PlannedCase, pick_key
from harness.runner.fidelity import fidelity_of, itself, without_reference
from harness.runner.references import is_reference
from harness.runner.trial_process import Outcome

QUALITY_KINDS = ("accuracy", "fidelity")


@dataclass(frozen=True)
class Quality:
    """What cases share that run the same file on the same runtime, target and precision."""

    accuracy: Accuracy | None = None
    fidelity: Fidelity | None = None
    flags: tuple[Flag, ...] = ()


def qualities_of(
    cases: Sequence[PlannedCase], outcomes: Mapping[str, Outcome | None], suite: str
) -> dict[str, Quality]:
    """Return the quality by `pick_key`. `outcomes` are those of the accuracy and fidelity trials, by the trial's key."""
    owners: dict[str, PlannedCase] = {}
    for case in sorted(cases, key=lambda case: not _has_trial(case)):  # those that have the trial come first
        if case.status is None:
            owners.setdefault(pick_key(case), case)
    judged = {key: accuracy_of(case, _outcome(case, outcomes, "accuracy"), suite) for key, case in owners.items()}
    references = {case.intent.workload.name: key for key, case in owners.items() if is_reference(case.intent)}
    absent = {case.intent.workload.name: case.reason for case in cases if case.reference_only and case.status}
    found: dict[str, Quality] = {}
    for key, case in owners.items():
        name = case.intent.workload.name
        beside = references.get(name)
        missing = absent.get(name) or "this run has no fp32 reference of onnxruntime on the CPU."
        accuracy = _accuracy(case, judged[key], judged[beside] if beside is not None else None, missing)
        fidelity = _fidelity(case, owners[beside] if beside is not None else None, outcomes, missing)
        found[key] = Quality(accuracy.accuracy, fidelity.fidelity, (*accuracy.flags, *fidelity.flags))
    return found


def _accuracy(case: PlannedCase, judged: Judged | None, reference: Judged | None, missing: str) -> Quality:
    if judged is None:
        return Quality()
    done = with_reference(judged, reference, case.intent.workload.quality_target, missing, case.calibration_overlap)
    found = list(gate_flags(done.accuracy, done.sentence))
    if case.calibration_overlap is not None:
        found.append(Flag(flags.OVERLAPPING_CALIBRATION, case.calibration_overlap))
    return Quality(done.accuracy, flags=tuple(found))


def _fidelity(
    case: PlannedCase, reference: PlannedCase | None, outcomes: Mapping[str, Outcome | None], missing: str
) -> Quality:
    if not _has_trial(case):
        return Quality()
    if reference is None:
        return Quality(fidelity=without_reference(missing))
    if is_reference(case.intent):
        return Quality(fidelity=itself(case))
    outcome = _quality_outcome(case, outcomes)
    fidelity = fidelity_of(case, outcome, reference, _quality_outcome(reference, outcomes))
    report = outcome.document.get("report") if outcome is not None else None
    precision = (report or {}).get("precision")
    return Quality(fidelity=fidelity, flags=fidelity_flags(fidelity, case.intent.artifact_precision, precision))


def _quality_outcome(case: PlannedCase, outcomes: Mapping[str, Outcome | None]) -> Outcome | None:
    """Return the outcome that holds the raw outputs: an accuracy trial makes the fidelity pass too."""
    return _outcome(case, outcomes, "fidelity") or _outcome(case, outcomes, "accuracy")


def _has_trial(case: PlannedCase) -> bool:
    return any(trial.job.kind in QUALITY_KINDS for trial in case.trials)


def _outcome(case: PlannedCase, outcomes: Mapping[str, Outcome | None], kind: str) -> Outcome | None:
    return next((outcomes.get(trial.key) for trial in case.trials if trial.job.kind == kind), None)
