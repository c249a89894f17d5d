"""From the raw outputs of two workers to a fidelity."""

from __future__ import annotations

from harness.judgement.fidelity import compare_outputs
from harness.records import Fidelity
from harness.runner.cases import PlannedCase
from harness.runner.trial_process import Outcome
from harness.worker.finite import NotFinite
from harness.worker.outputs import OUTPUTS, SampleOutputs, read_outputs

# The output whose largest value is the answer, by task.
ANSWERS = {"image_classification": "logits"}
WHICH = "onnxruntime cpu fp32"


def fidelity_of(planned: PlannedCase, outcome: Outcome | None, reference: PlannedCase, its: Outcome | None) -> Fidelity:
    """Return how near a case's outputs are to the reference's, or a fidelity without figures that says why."""
    sha256 = reference.artifact.sha256 if reference.artifact is not None else "unknown file"
    name = f"{WHICH}, {sha256}"
    try:
        expected = _outputs(its)
    except (ValueError, KeyError, TypeError) as error:
        return Fidelity(name, reason=f"Not measured: the reference's outputs are missing: {error}.")
    try:
        found = _outputs(outcome)
    except (ValueError, KeyError, TypeError) as error:
        broken = outcome is not None and outcome.document.get("error") == NotFinite.__name__
        return Fidelity(name, samples=1 if broken else None, reason=f"Not measured: {error}.")
    count = min(len(found), len(expected))  # a slow device ends its pass earlier
    for mine, one in zip(found[:count], expected[:count], strict=True):
        if (mine.id, mine.inputs) != (one.id, one.inputs):
            return Fidelity(name, reason=f"Not measured: the inputs {mine.id} and {one.id} are not the same.")
    return compare_outputs(
        [one.outputs for one in found[:count]],
        [one.outputs for one in expected[:count]],
        name,
        ANSWERS.get(planned.intent.workload.task),
    )


def without_reference(reason: str) -> Fidelity:
    """Return the fidelity of a case whose workload has no reference in this run."""
    return Fidelity(WHICH, reason=f"Not measured: {reason}")


def itself(planned: PlannedCase) -> Fidelity:
    """Return the fidelity of the reference."""
    sha256 = planned.artifact.sha256 if planned.artifact is not None else "unknown file"
    return Fidelity(f"{WHICH}, {sha256}", reason="This is the reference itself.")


def _outputs(outcome: Outcome | None) -> list[SampleOutputs]:
    if outcome is None:
        raise ValueError("the run was interrupted before")
    if outcome.status != "ok":
        raise ValueError((outcome.reason or "its trial failed").rstrip(". "))
    if OUTPUTS not in outcome.files:
        raise ValueError("its trial kept no outputs")
    return read_outputs(outcome.files[OUTPUTS])
