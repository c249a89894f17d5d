"""The raw outputs of a fidelity pass as one file: a line of JSON that says what follows, then the values,
little-endian.

Outputs are canonical (the task's roles and layout), so that files of every runtime and format can be held against each
other. Floating-point outputs keep their type (float16 becomes float32); whole numbers become float64. The parent reads
it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from backends.base import Array

OUTPUTS = "outputs"  # the file's name
SCHEMA = "weighbridge/outputs/1"
TYPES = ("<f4", "<f8")


@dataclass(frozen=True)
class SampleOutputs:
    """One sample's outputs by role. `inputs` is a SHA-256 of what was given, so that only like is held against like."""

    id: str
    inputs: str
    outputs: Mapping[str, Array]


def inputs_digest(inputs: Mapping[str, Array]) -> str:
    """Return the SHA-256 of canonical inputs, whichever numeric type a file wants them in."""
    digest = hashlib.sha256()
    for role in sorted(inputs):
        array = np.ascontiguousarray(inputs[role], dtype="<f8")
        digest.update(f"{role} {array.shape}\0".encode() + array.tobytes())
    return digest.hexdigest()


def write_outputs(path: Path, samples: Sequence[SampleOutputs]) -> None:
    """Write the file."""
    described: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for sample in samples:
        tensors = []
        for role, array in sample.outputs.items():
            kind = "<f4" if array.dtype in (np.dtype("float16"), np.dtype("float32")) else "<f8"
            parts.append(np.ascontiguousarray(array, dtype=kind).tobytes())
            tensors.append({"role": role, "dtype": kind, "shape": list(array.shape)})
        described.append({"id": sample.id, "inputs": sample.inputs, "outputs": tensors})
    with path.open("wb") as file:
        file.write(json.dumps({"schema": SCHEMA, "samples": described}).encode() + b"\n")
        file.writelines(parts)


def read_outputs(data: bytes) -> list[SampleOutputs]:
    """Read what `write_outputs` wrote. Raises ValueError, KeyError or TypeError for anything else."""
    line, _, values = data.partition(b"\n")
    document = json.loads(line)
    if document["schema"] != SCHEMA:
        raise ValueError(f"the outputs are not of schema {SCHEMA}")
    found = []
    position = 0
    for sample in document["samples"]:
        outputs = {}
        for tensor in sample["outputs"]:
            if tensor["dtype"] not in TYPES:
                raise ValueError(f"there are no outputs of type {tensor['dtype']!r}")
            shape = [int(size) for size in tensor["shape"]]
            if any(size < 0 for size in shape):
                raise ValueError("a size is negative")
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(values, dtype=tensor["dtype"], count=count, offset=position)
            position += array.nbytes
            outputs[str(tensor["role"])] = array.reshape(shape)
        found.append(SampleOutputs(str(sample["id"]), str(sample["inputs"]), outputs))
    if position != len(values):
        raise ValueError("the outputs are longer than they say")
    return found
