"""What a suite says, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.judgement.stopping import DEFAULT_HALF_WIDTH, DEFAULT_LOOKS
from harness.judgement.stopping import Plan as StoppingPlan
from harness.records import SuiteRef

if TYPE_CHECKING:
    from harness.workloads.definition import Workload

AVAILABLE = "available"  # threads: as many as processors are available to this process
RUNTIME_DEFAULT = "default"  # threads: what the runtime chooses by itself; precision: the vendor's choice

# Scenarios whose number of trials is fixed: each trial is long, or its figure is a curve.
FIXED_SCENARIOS = ("server", "sustained")

Threads = int | str
Targets = Mapping[str, tuple[str, ...]]  # backend -> targets


# Least and most of what a suite file, or the command line instead of it, may say.
LIMITS: Mapping[str, tuple[float, float]] = {
    "duration_s": (0.01, 86_400),
    "warmup_s": (0.0, 3_600),
    "trials": (1, 1000),
    "half_width": (0.001, 1.0),
    "budget_s": (1, 604_800),
    "batch": (1, 65_536),
    "threads": (1, 4096),
}


@dataclass(frozen=True)
class Group:
    """One [[measure]] table: every combination of its workloads, targets, precisions, batches, threads, slots is a case.

    Each case gets at least `trials` fresh processes. Where `max_trials` is more, the rule of `harness.judgement.stopping`
    looks after the counts in `looks` and ends a case whose interval is within `half_width` (a share) of its median.
    """

    scenario: str
    workloads: tuple[str, ...]
    targets: Targets
    precisions: tuple[str, ...] = ("fp32",)
    artifact_precisions: tuple[str, ...] = ("fp32",)
    batches: tuple[int, ...] = (1,)
    threads: tuple[Threads, ...] = (AVAILABLE,)
    slots: tuple[int | None, ...] = (None,)  # requests in flight; None: what the runtime would choose
    parameters: tuple[Mapping[str, Any], ...] = ({},)  # of the scenario, each combination once
    duration_s: float = 5.0
    warmup_s: float = 1.0
    min_queries: int = 100
    max_queries: int = 1_000_000
    limit_s: float = 60.0
    energy: bool = True  # one more trial, where the machine has a meter
    trials: int = 1
    max_trials: int | None = None  # None: as many as `trials`, a fixed number
    half_width: float = DEFAULT_HALF_WIDTH
    looks: tuple[int, ...] = ()  # empty: the usual ones between `trials` and `max_trials`

    @property
    def most_trials(self) -> int:
        return max(self.trials, self.max_trials or 0)

    @property
    def stopping(self) -> StoppingPlan:
        """When to look at a case of this group, and what to ask for there. A fixed number of trials is one look."""
        if self.looks:
            return StoppingPlan(self.looks, half_width=self.half_width)
        between = (count for count in DEFAULT_LOOKS if self.trials < count < self.most_trials)
        return StoppingPlan(tuple(sorted({self.trials, *between, self.most_trials})), half_width=self.half_width)

    @property
    def fixed(self) -> bool:
        """Whether the number of trials does not depend on what they show."""
        return self.most_trials == self.trials


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
    budget_s: float | None = None  # of the whole run; once it is spent, no case gets a further trial. None: no limit
    workloads: Mapping[str, Workload] = field(default_factory=dict)  # the file's own

    @property
    def reference(self) -> SuiteRef:
        return SuiteRef(self.name, self.version, self.digest)
