"""Seeded random inputs for a bare model file: no decoding, no labels, no accuracy.

Parameters: `ports`, the model's inputs as dictionaries of the fields of `harness.artifacts.Port`, and optionally `ranges`,
per role the [low, high) of its values. Floating-point inputs are uniform in 0..1, integers 0 or 1 (safe as indices into any
embedding), booleans true, so that a mask hides nothing. A sample's data may hold `seed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.errors import UsageError
from harness.tasks.base import Array, Sample
from harness.tasks.parameters import check_names


class RandomInputs:
    """See the module. Predictions hold each output's mean and whether all of it is finite."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        check_names("random_inputs", parameters, ("ports", "ranges"))
        ports = parameters.get("ports")
        if not isinstance(ports, (list, tuple)) or not ports:
            raise UsageError("The task random_inputs needs the parameter ports: the model's inputs.")
        self.carry: Mapping[str, str] = {}
        self.ports = [(str(port["role"]), np.dtype(port["dtype"]), tuple(port["shape"])) for port in ports]
        self.ranges: Mapping[str, Any] = parameters.get("ranges") or {}

    def decode(self, sample: Sample) -> np.random.RandomState:
        """Return the generator of the sample's seed. RandomState's streams are frozen by numpy's policy."""
        return np.random.RandomState(int(sample.data.get("seed", 0)))

    def preprocess(self, decoded: np.random.RandomState) -> dict[str, Array]:
        """Return one array per port, in their order; a dimension of 0 (any size) becomes 1."""
        arrays: dict[str, Array] = {}
        for role, dtype, shape in self.ports:
            sizes = tuple(size or 1 for size in shape)
            low, high = self.ranges.get(role, (0, 2) if dtype.kind in "iu" else (0.0, 1.0))
            if dtype.kind == "b":
                arrays[role] = np.ones(sizes, dtype=dtype)
            elif dtype.kind in "iu":
                arrays[role] = decoded.randint(int(low), int(high), size=sizes).astype(dtype)
            elif dtype.kind == "f":
                arrays[role] = (low + (high - low) * decoded.random_sample(sizes)).astype(dtype)
            else:
                raise UsageError(f"The input {role} has the type {dtype}; random inputs are numbers only.")
        return arrays

    def postprocess(self, outputs: Mapping[str, Array]) -> list[Any]:
        """Return one summary for the whole batch per sample: outputs of unknown meaning are not interpreted."""
        batch = max((array.shape[0] for array in outputs.values() if array.ndim), default=1)
        summary = {role: _summary(array) for role, array in outputs.items()}
        return [summary] * max(1, batch)


def _summary(array: Array) -> dict[str, Any]:
    values = np.asarray(array)
    finite = bool(np.isfinite(values).all()) if values.dtype.kind == "f" else True
    mean = float(values.mean(dtype=np.float64)) if finite and values.size and values.dtype.kind in "fiub" else None
    return {"mean": mean, "finite": finite}
