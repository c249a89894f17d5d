"""How near raw outputs are to those of the fp32 reference on the same inputs, whether or not there are labels. Pure.

Per sample and output: the cosine of the angle between the two (1: the same direction), the largest difference of one
value, and that difference as a share of the largest absolute value of the reference's output over all samples. A
figure over several samples or outputs is the worst of them.

How near is near enough depends on how many bits the arithmetic has. Measured on this product's networks, fp32 of two
runtimes differs by 6e-7 to 7e-5 of the largest output, because sums are taken in another order; files in fp16 by up to
3e-3. The limits leave a decade above that: what goes beyond is not rounding. With the 8 bits of bf16 some networks move
single values by a third of the largest and keep their answers, so bf16 and quantised files are held to the angle alone:
bf16 kept cosines of 0.995 and more where accuracy held (0.976 where it fell by 1.4 %), int8 files 0.92 and more. Whether
a difference does harm is for the accuracy gate to say, where there are labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.judgement import flags
from harness.records import Fidelity, Flag

Outputs = Mapping[str, npt.NDArray[np.floating]]  # of one sample, by role


@dataclass(frozen=True)
class Limit:
    """What is near enough. None: not asked."""

    relative: float | None
    cosine: float


# By precision, the coarsest last. bf16 has 8 bits, tf32 and fp16 have 11, fp32 has 24.
LIMITS: Mapping[str, Limit] = {
    "fp32": Limit(1e-3, 0.9999),
    "tf32": Limit(1e-2, 0.999),
    "fp16": Limit(1e-2, 0.999),
    "bf16": Limit(None, 0.98),
    "int8": Limit(None, 0.85),
    "int4": Limit(None, 0.75),
}
MIXED = Limit(None, 0.85)  # several kinds of arithmetic in one network, of which the coarsest is not known


def compare_outputs(
    here: Sequence[Outputs], there: Sequence[Outputs], reference: str, answer: str | None = None
) -> Fidelity:
    """Return the fidelity of `here` to `there`, sample by sample; `answer` is the output whose largest value is the answer.

    Where an output holds no finite numbers or has another shape, there are no figures but a reason.
    """
    problem = _problem(here, there)
    if problem is not None:
        return Fidelity(reference, samples=len(here), reason=problem)
    by_role = {}
    for role in there[0]:
        mine = [np.asarray(sample[role], dtype=np.float64).ravel() for sample in here]
        its = [np.asarray(sample[role], dtype=np.float64).ravel() for sample in there]
        worst = max(float(np.abs(a - b).max(initial=0.0)) for a, b in zip(mine, its, strict=True))
        scale = max(float(np.abs(b).max(initial=0.0)) for b in its)
        by_role[role] = {
            "cosine": min(cosine(a, b) for a, b in zip(mine, its, strict=True)),
            "worst_absolute": worst,
            "worst_relative": worst / scale if scale > 0.0 else (0.0 if worst == 0.0 else 1.0),
        }
    agreement = None
    if answer is not None and answer in there[0]:
        same = [int(np.argmax(a[answer])) == int(np.argmax(b[answer])) for a, b in zip(here, there, strict=True)]
        agreement = sum(same) / len(same)
    return Fidelity(
        reference,
        samples=len(here),
        agreement=agreement,
        cosine=min(figures["cosine"] for figures in by_role.values()),
        worst_absolute=max(figures["worst_absolute"] for figures in by_role.values()),
        worst_relative=max(figures["worst_relative"] for figures in by_role.values()),
        outputs=by_role,
    )


def cosine(here: npt.NDArray[np.float64], there: npt.NDArray[np.float64]) -> float:
    """Return the cosine of the angle between two vectors: 1 where both are zero, 0 where one is."""
    # Scaled first: squares of large values must not overflow, and those of small ones not vanish.
    lengths = []
    scaled = []
    for vector in (here, there):
        largest = float(np.abs(vector).max(initial=0.0))
        scaled.append(vector / largest if largest > 0.0 else vector)
        lengths.append(float(np.sqrt((scaled[-1] ** 2).sum())))
    if 0.0 in lengths:
        return 1.0 if lengths == [0.0, 0.0] else 0.0
    return min(1.0, max(-1.0, float((scaled[0] * scaled[1]).sum()) / (lengths[0] * lengths[1])))


def limit_of(artifact_precision: str | None, effective_precision: str | None) -> tuple[str, Limit]:
    """Return the name and the limit of the coarser of the file's precision and the arithmetic's; unknown counts as fp32."""
    known = list(LIMITS)
    names = [(name or "fp32").partition("-")[0] for name in (artifact_precision, effective_precision)]
    if "mixed" in names and not {"int8", "int4"} & set(names):
        return "mixed precision", MIXED
    coarsest = max((name for name in names if name in known), key=known.index, default="fp32")
    return coarsest, LIMITS[coarsest]


def fidelity_flags(
    fidelity: Fidelity | None, artifact_precision: str | None, effective_precision: str | None
) -> tuple[Flag, ...]:
    """Return the flag of outputs that lie farther from the reference's than the precision explains, or are no numbers."""
    if fidelity is None:
        return ()
    if fidelity.cosine is None or fidelity.worst_relative is None:
        broken = fidelity.reason is not None and fidelity.samples is not None
        return (Flag(flags.LOW_FIDELITY, fidelity.reason or ""),) if broken else ()
    name, limit = limit_of(artifact_precision, effective_precision)
    if limit.relative is not None and fidelity.worst_relative > limit.relative:
        what = f"An output differs from the fp32 reference's by {fidelity.worst_relative:.1e} of the largest"
        return (Flag(flags.LOW_FIDELITY, f"{what}; {name} explains {limit.relative:.0e}."),)
    if fidelity.cosine < limit.cosine:
        what = f"The smallest cosine to the fp32 reference's outputs is {fidelity.cosine:.4f}"
        return (Flag(flags.LOW_FIDELITY, f"{what}; for {name} at least {limit.cosine:g} is expected."),)
    return ()


def _problem(here: Sequence[Outputs], there: Sequence[Outputs]) -> str | None:
    if not here or len(here) != len(there):
        return f"There are {len(here)} outputs, and {len(there)} of the reference."
    for number, (mine, its) in enumerate(zip(here, there, strict=True)):
        for role, expected in its.items():
            if role not in mine:
                return f"The output {role!r}, which the reference has, is missing."
            found = mine[role]
            if not np.isfinite(expected).all():
                return f"The reference's own output {role!r} holds values that are not finite."
            if not np.isfinite(found).all():
                count = int(np.count_nonzero(~np.isfinite(found)))
                return f"The output {role!r} of input {number + 1} holds {count} values that are not finite."
            if found.size != expected.size:
                return f"The output {role!r} has the shape {found.shape}, the reference's {expected.shape}."
    return None
