"""What was asked for, of which model file, and what really ran."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from harness.canonical import digest_of


@dataclass(frozen=True)
class Case:
    """What was asked for. What really happened, and the suite's version, are not part of it: a series lives over months."""

    workload: str
    dataset: str | None  # name@digest, None for random inputs
    source_weights: str | None  # SHA-256 of the published weights; of the file itself for a bare model
    artifact_precision: str
    requested_precision: str  # "fp32", "bf16", ... or "default": the vendor's own choice
    backend: str
    target: str
    compute_unit: str | None
    scenario: str
    scenario_parameters: dict[str, Any] = field(default_factory=dict)
    batch: int = 1
    streams: int | None = None
    threads: int | None = None  # None: the runtime's own default was asked for
    input_size: str | None = None  # "1x3x224x224"
    boundary: str = "host_to_host"

    @property
    def key(self) -> str:
        """SHA-256 of the canonical JSON with explicit nulls."""
        return digest_of(asdict(self))


@dataclass(frozen=True)
class Artifact:
    """One model file, known by its SHA-256, with its lineage."""

    format: str  # onnx, openvino, tflite, coreml
    precision: str
    sha256: str
    bytes: int
    name: str  # file name, for people
    source: str | None = None  # e.g. "pypi:basic-pitch==0.4.0!basic_pitch/.../nmp.onnx"
    source_sha256: str | None = None
    recipe: str | None = None
    recipe_sha256: str | None = None
    tools: dict[str, str] = field(default_factory=dict)
    licence: str | None = None
    calibration: str | None = None  # name@digest of the data that set the scales of a quantised file


@dataclass(frozen=True)
class Placement:
    """Share of nodes and of time per processor or execution provider, each 0 to 1."""

    nodes: dict[str, float] = field(default_factory=dict)
    time: dict[str, float] | None = None
    method: str | None = None


@dataclass(frozen=True)
class Effective:
    """What really ran, as the runtime itself says after the session was made."""

    target: str | None
    compute_unit: str | None = None
    precision: str | None = None
    threads: int | None = None
    streams: int | None = None
    runtime: str | None = None
    runtime_version: str | None = None
    devices: tuple[str, ...] = ()
    placement: Placement | None = None
    details: dict[str, Any] = field(default_factory=dict)  # math modes, delegates, providers
