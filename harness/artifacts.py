"""What a model file is to the rest of the house: its ports, its lineage, where it lies. Pure data, no runtime.

A *port* ties a canonical tensor (as the workload's task names and lays it out: NCHW for pictures) to the tensor of one file,
which may have another name or layout. Tasks speak canonical; the worker translates outside the timed boundary.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.records import Artifact

Layout = Literal["as_is", "nhwc"]  # nhwc: the file wants NHWC where the canonical tensor is NCHW


@dataclass(frozen=True)
class Port:
    """One input or output. `shape` is canonical; 0 in it stands for the batch or another size chosen at load."""

    role: str  # canonical name, e.g. "image", "logits"
    tensor: str  # name in the file
    dtype: str  # numpy name, of the file's tensor
    shape: tuple[int, ...]
    layout: Layout = "as_is"


@dataclass(frozen=True)
class ModelFile:
    """An artifact on this machine's disk, ready to load."""

    artifact: Artifact
    path: Path  # a file, or the folder of an .mlpackage
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    batch: int | None = None  # the one batch that the file is made for; None: any
    calibrated_on: tuple[str, ...] = ()  # SHA-256 of the files or texts that set a quantised file's scales
