"""How good the answers are: accuracy on labelled data with its gate, and fidelity to the fp32 output."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Gate = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True)
class Accuracy:
    """Quality on labelled data, 0 to 1. `value` is None with a reason (and how to get the data) when not measured."""

    metric: str
    value: float | None
    reason: str | None = None
    reference: float | None = None
    relative: float | None = None
    gate: Gate | None = None
    samples: int | None = None
    dataset: str | None = None
    predictions: str | None = None  # SHA-256 of the blob with one prediction per sample
    details: dict[str, float] = field(default_factory=dict)  # further metrics, e.g. top5
    note: str | None = None
    relative_low: float | None = None  # 95 % interval of `relative`, from the paired answers of the same samples
    relative_high: float | None = None
    disagreement: float | None = None  # share of samples whose answers are right here and wrong there, or the reverse
    samples_needed: int | None = None  # about as many would decide an undecided gate
    method: str | None = None  # of the interval and the gate
    target: float | None = None  # the share of the reference that the workload asks for


@dataclass(frozen=True)
class Fidelity:
    """How near the raw outputs are to those of the fp32 reference on the same inputs. Needs no labels."""

    reference: str  # what the outputs are held against, e.g. "onnxruntime cpu fp32, <sha256 of the file>"
    samples: int | None = None
    agreement: float | None = None  # share of samples with the same answer (largest output), where the task has one
    cosine: float | None = None  # the smallest over samples of the cosine of the angle between outputs
    worst_absolute: float | None = None  # largest difference of one output value
    worst_relative: float | None = None  # the same over the largest absolute output of the reference
    outputs: dict[str, dict[str, float]] = field(default_factory=dict)  # cosine, worst_... by output role
    reason: str | None = None  # why it is not measured
