"""A network whose output is no finite number is broken, however its ranking comes out: numpy sorts NaN to one end."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from backends.base import Array, InferenceFailed


class NotFinite(InferenceFailed):
    """An output holds NaN or infinity."""


def require_finite(outputs: Mapping[str, Array], sample: str) -> None:
    """Raise NotFinite that names the output and the sample, where a floating-point output holds NaN or infinity."""
    for role, array in outputs.items():
        if array.dtype.kind != "f":
            continue
        count = int(np.count_nonzero(~np.isfinite(array)))
        if count:
            raise NotFinite(
                f"The output {role!r} for the sample {sample} holds {count} values of {array.size} that are not finite.",
                "Compare with the fp32 file: the weights are damaged, or a lower precision overflows.",
            )
