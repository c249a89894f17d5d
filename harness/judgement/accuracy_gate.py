"""Whether a system keeps enough of the fp32 reference's accuracy, and whether it may win a ranking. Pure.

The workload's quality target says which share of the reference must be kept (0.99 where it names none: MLPerf's "99 %
of fp32"). MLPerf asks whether the value on its own, official data reaches that share. Our sets are smaller, where one
answer more or less may decide, so the gate asks the 95 % interval of the share that is kept
(`harness.judgement.paired`):

- `passed`: even its low end reaches the target. Or: *nothing was lost*. Where no answer that the reference has right
  is wrong here, the share on these samples is whole, which is all that MLPerf's own gate asks, and no sample speaks
  against it. What these samples cannot show is bounded and said: 98 right answers without a loss still allow one in
  26. It takes at least 20.
- `failed`: even its high end falls short of the target; or an output is no finite number, whatever else it answers.
- `undecided`: the target lies inside the interval, or there is no reference. With it stands how many samples would
  decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.judgement import flags
from harness.judgement.paired import Paired
from harness.records import Accuracy, Fidelity, Flag, Gate

DEFAULT_TARGET = 0.99
LEAST_UNITS = 20  # nothing lost on fewer says little: the bound of 19 of 19 kept is 83 %


@dataclass(frozen=True)
class GateVerdict:
    """The gate's answer with its reason in one sentence, and about how many samples would decide or confirm it."""

    gate: Gate
    sentence: str
    samples_needed: int | None = None


def judge_gate(compared: Paired | None, target: float | None, reason: str | None = None) -> GateVerdict:
    """Judge a comparison with the reference; `reason` says why there is none."""
    asked = DEFAULT_TARGET if target is None else target
    if compared is None:
        return GateVerdict("undecided", f"Undecided: {reason or 'there is no fp32 reference in this run.'}")
    needed = compared.samples_needed(asked)
    share, low, high = _percent(compared.relative), _percent(compared.low), _percent(compared.high)
    about = f"About {needed} {compared.unit}" if needed is not None else None
    if compared.low >= asked:
        return GateVerdict("passed", f"Passed: it keeps {share} of the reference, at least {low}.")
    if compared.high < asked:
        sentence = f"Failed: it keeps {share} of the reference, at most {high}; {_percent(asked)} are asked for."
        return GateVerdict("failed", sentence)
    if compared.level and _evidence(compared) >= LEAST_UNITS:
        kept = (
            f"none of the reference's {compared.reference_right} right answers was lost"
            if compared.reference_right is not None
            else f"none of {compared.units} {compared.unit} tells it from the reference"
        )
        further = f" {about} without a loss would show {_percent(asked)}." if about else ""
        return GateVerdict("passed", f"Passed on these samples: {kept}. Beyond them {low} is sure.{further}", needed)
    further = f" {about} would decide." if about else ""
    sentence = (
        f"Undecided: it keeps {share} of the reference, {low} to {high}; {_percent(asked)} are asked for.{further}"
    )
    return GateVerdict("undecided", sentence, needed)


def gate_flags(accuracy: Accuracy | None, sentence: str | None) -> tuple[Flag, ...]:
    """Return the flag of a gate that is not passed; `sentence` is the verdict's."""
    gate = accuracy.gate if accuracy is not None else None
    if gate == "failed":
        return (Flag(flags.GATE_FAILED, sentence or flags.kind_of(flags.GATE_FAILED).meaning),)
    if gate == "undecided":
        return (Flag(flags.GATE_UNDECIDED, sentence or flags.kind_of(flags.GATE_UNDECIDED).meaning),)
    return ()


def may_win(accuracy: Accuracy | None, fidelity: Fidelity | None, codes: Sequence[str]) -> tuple[bool, str | None]:
    """Say whether a measurement may stand first in a ranking; with False the reason, with True what a winner must add.

    `codes` are its flags'. What failed its gate never wins. Nor does what was judged on the data that calibrated it,
    nor, where no labelled data judge it, what answers otherwise than the reference: nobody knows what its speed is
    worth.
    """
    gate = accuracy.gate if accuracy is not None else None
    if gate == "failed" or flags.GATE_FAILED in codes:
        return False, "It failed the accuracy gate."
    if flags.OVERLAPPING_CALIBRATION in codes:
        return False, "Its accuracy was judged on data that had calibrated it."
    if gate is None and flags.LOW_FIDELITY in codes:
        return False, "Its outputs differ from the reference's, and no labelled data say that this does no harm."
    if gate == "undecided":
        return True, "Its accuracy gate is undecided."
    if gate is None and (fidelity is None or fidelity.cosine is None):
        return True, "Neither accuracy nor fidelity was measured."
    return True, None


def _evidence(compared: Paired) -> int:
    return compared.units if compared.reference_right is None else compared.reference_right


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
