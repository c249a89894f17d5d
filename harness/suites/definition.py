"""What a suite says, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.records import SuiteRef

if TYPE_CHECKING:
    from harness.workloads.definition import Workload

AVAILABLE = "available"  # threads: as many as processors are available to this process
RUNTIME_DEFAULT = "default"  # threads: what the runtime chooses by itself; precision: the vendor's choice

Threads = int | str
Targets = Mapping[str, tuple[str, ...]]  # backend -> targets


# Least and most of what a suite file, or the command line instead of it, may say.
LIMITS: Mapping[str, tuple[float, float]] = {
    "duration_s": (0.01, 86_400),
    "warmup_s": (0.0, 3_600),
    "trials": (1, 1000),
    "batch": (1, 65_536),
    "threads": (1, 4096),
}


@dataclass(frozen=True)
class Group:
    """One [[measure]] table: every combination of its workloads, targets, precisions, batches and threads is a case."""

    scenario: str
    workloads: tuple[str, ...]
    targets: Targets
    precisions: tuple[str, ...] = ("fp32",)
    artifact_precision: str = "fp32"
    batches: tuple[int, ...] = (1,)
    threads: tuple[Threads, ...] = (AVAILABLE,)
    slots: int | None = None  # offline: requests in flight; None: what the runtime would choose
    duration_s: float = 5.0
    warmup_s: float = 1.0
    min_queries: int = 100
    max_queries: int = 1_000_000
    limit_s: float = 60.0
    trials: int = 1


@dataclass(frozen=True)
class Suite:
    """A suite as read; `digest` is over its canonical content, so that spaces and comments do not matter."""

    name: str
    version: str
    title: str
    digest: str
    groups: tuple[Group, ...]
    accuracy: tuple[str, ...] = ()  # workloads whose accuracy is measured, once per backend, target and precision
    accuracy_timeout_s: float = 600.0
    placement: bool = False  # one more trial per single-stream case, with the runtime's profiler on
    energy_s: float = (
        10.0  # window of an energy trial, where the machine has a meter; ten seconds are the least to rely on
    )
    energy_idle_s: float = 30.0  # idle before the energy trials, to be subtracted
    timeout_s: float = 120.0  # of a timing trial, beyond its window
    seed: int = 1  # of the order of cases
    workloads: Mapping[str, Workload] = field(default_factory=dict)  # the file's own

    @property
    def reference(self) -> SuiteRef:
        return SuiteRef(self.name, self.version, self.digest)
