"""Who measured what on which machine: the source, the device and its compute units, the environment, the suite."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from harness.canonical import digest_of


@dataclass(frozen=True)
class Source:
    """Where a run's numbers come from: measured by this product, or imported from somebody's published results."""

    kind: Literal["measured", "imported"]
    name: str  # "weighbridge", or e.g. "MLPerf Inference v3.0, closed, NVIDIA"
    version: str | None = None
    licence: str | None = None
    attribution: str | None = None
    url: str | None = None
    location: str | None = None  # path inside the source's tree


@dataclass(frozen=True)
class ComputeUnit:
    """The part of a device that does the work; `hardware_model` is what can be bought, e.g. "NVIDIA T4"."""

    name: str  # "cpu", "gpu0", "npu0", "ane"
    kind: Literal["cpu", "gpu", "npu", "ane", "other"]
    hardware_model: str
    vendor: str | None = None
    count: int = 1  # sockets or boards that work as this one unit
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Device:
    """One physical machine. Its name is given by a person, its UUID made once; neither is guessed from a hash."""

    name: str
    uuid: str
    hardware_model: str  # the whole machine, as it can be bought
    compute_units: tuple[ComputeUnit, ...] = ()
    form: str | None = None  # "server", "edge", "board", "laptop", "virtual machine"
    vendor: str | None = None


@dataclass(frozen=True)
class Environment:
    """Machine and configuration make the digest; conditions pass and are stored beside it. Values are JSON."""

    machine: dict[str, Any]
    configuration: dict[str, Any]
    conditions: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of machine and configuration."""
        return digest_of({"machine": self.machine, "configuration": self.configuration})


@dataclass(frozen=True)
class SuiteRef:
    name: str
    version: str
    digest: str
