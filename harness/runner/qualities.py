"""How good the answers of each artifact, runtime, target and precision are, beside the fp32 reference of their workload.

The reference is fp32 of onnxruntime on the CPU in the same run: it runs the source graph as it is. Where the run's own cases
lack it, `harness.runner.references` adds its trials, so that a gate is judged whichever backend was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.judgement import flags
from harness.judgement.accuracy_gate import gate_flags
from harness.records import Accuracy, Fidelity, Flag
from harness.runner.accuracy import Judged, accuracy_of, with_reference
from harness.runner.cases import PlannedCase, pick_key
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
    found: dict[str, Quality] = {}
    for key, case in owners.items():
        reference = references.get(case.intent.workload.name)
        found[key] = _quality(case, judged[key], judged[reference] if reference is not None else None)
    return found


def _quality(case: PlannedCase, judged: Judged | None, reference: Judged | None) -> Quality:
    if judged is None:
        return Quality()
    missing = case.reference_reason or "this run has no fp32 reference of onnxruntime on the CPU."
    done = with_reference(judged, reference, case.intent.workload.quality_target, missing, case.calibration_overlap)
    found = list(gate_flags(done.accuracy, done.sentence))
    if case.calibration_overlap is not None:
        found.append(Flag(flags.OVERLAPPING_CALIBRATION, case.calibration_overlap))
    return Quality(done.accuracy, flags=tuple(found))


def _has_trial(case: PlannedCase) -> bool:
    return any(trial.job.kind in QUALITY_KINDS for trial in case.trials)


def _outcome(case: PlannedCase, outcomes: Mapping[str, Outcome | None], kind: str) -> Outcome | None:
    return next((outcomes.get(trial.key) for trial in case.trials if trial.job.kind == kind), None)
