"""Whether an accuracy keeps enough of its reference. Pure.

`target` is the share of the fp32 reference that must be kept (MLPerf's 99 %). On few samples one flipped answer can cross
it, so a shortfall within two standard errors of the reference's own estimate, 2 sqrt(p (1 - p) / n), is undecided.
"""

from __future__ import annotations

from math import sqrt

from harness.records import Gate


def judge_gate(value: float, reference: float | None, target: float | None, samples: int) -> Gate | None:
    """Return passed, failed or undecided; None where the workload has no target."""
    if target is None:
        return None
    if reference is None or samples < 1:
        return "undecided"
    least = target * reference
    if value >= least:
        return "passed"
    error = sqrt(reference * (1 - reference) / samples)
    return "failed" if value < least - 2 * error else "undecided"
