"""Seeded inputs for a session that a benchmark drives itself, in one process."""

from __future__ import annotations

import numpy as np

from backends.base import Session
from harness.artifacts import ModelFile
from harness.scenarios.window import Inputs
from harness.tasks import create
from harness.tasks.base import Sample
from harness.worker.tensors import TensorMap


def random_pool(model: ModelFile, session: Session, count: int) -> list[Inputs]:
    """Return `count` different inputs of the model's shapes, in the session's order, layout and type."""
    ports = [{"role": port.role, "dtype": port.dtype, "shape": port.shape} for port in model.inputs]
    task = create("random_inputs", {"ports": ports})
    to_file = TensorMap(model.inputs, session.inputs).to_file
    drawn = (task.preprocess(task.decode(Sample(str(seed), (), None, {"seed": seed}))) for seed in range(count))
    return [tuple(np.ascontiguousarray(array) for array in to_file([arrays])) for arrays in drawn]
