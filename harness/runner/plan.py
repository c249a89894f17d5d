"""From a suite and a selection to the list of cases, before anything is fetched or started. Pure.

What cannot run here stays in the list with its reason: a gap must be seen to be understood.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import backends
from harness.errors import UsageError
from harness.suites.definition import AVAILABLE, LIMITS, RUNTIME_DEFAULT, Group, Suite, Threads
from harness.suites.parameters import filled
from harness.workloads.definition import Workload

CPU_TARGETS = ("cpu", "cpu_only", "cpu_builtin", "cpu_reference")
# Seconds a trial takes beside its window: start, import, load, decoding the samples. Only for the plan's estimate.
TRIAL_OVERHEAD_S = 1.2
ACCURACY_S = 8.0
FIDELITY_S = 1.5
PLACEMENT_S = 3.0


@dataclass(frozen=True)
class Selection:
    """What the person asked for by name, and what they changed. Empty and None: as the suite says."""

    backends: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    batch: int | None = None
    threads: int | None = None
    duration_s: float | None = None
    warmup_s: float | None = None
    trials: int | None = None
    device_index: int = 0

    def adjust(self, group: Group) -> Group:
        """Return the group with the person's own durations, batch and so on."""
        changed = {
            name: value
            for name, value in (
                ("duration_s", self.duration_s),
                ("warmup_s", self.warmup_s),
                ("trials", self.trials),
                # A number asked for by name is that number, however narrow the interval is before or after.
                ("max_trials", self.trials),
                ("looks", None if self.trials is None else ()),
                ("batches", None if self.batch is None else (self.batch,)),
                ("threads", None if self.threads is None else (self.threads,)),
            )
            if value is not None
        }
        adjusted = replace(group, **changed)  # type: ignore[arg-type]
        if self.duration_s is not None and group.scenario == "sustained":  # the window's length is part of its cases
            swept = tuple({**parameters, "duration_s": float(self.duration_s)} for parameters in group.parameters)
            adjusted = replace(adjusted, parameters=swept)
        return replace(adjusted, limit_s=max(group.limit_s, 3 * adjusted.duration_s))


@dataclass(frozen=True)
class Intent:
    """One case to be: what is asked for. `status` and `reason` are set where it is known already that it cannot run."""

    workload: Workload
    backend: str
    target: str
    scenario: str
    precision: str
    artifact_precision: str
    batch: int
    threads: int | None
    slots: int | None
    device_index: int
    group: Group
    accuracy: bool = False
    fidelity: bool = False
    placement: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)  # Case.scenario_parameters
    status: str | None = None  # unsupported, skipped
    reason: str | None = None

    @property
    def runs(self) -> bool:
        return self.status is None

    @property
    def expected_s(self) -> float:
        """Seconds that its trials will take, roughly, if the least number of them is enough."""
        return self._seconds(self.group.trials)

    @property
    def longest_s(self) -> float:
        """Seconds that its trials will take, roughly, if it takes all of them."""
        return self._seconds(self.group.most_trials)

    def _seconds(self, trials: int) -> float:
        if not self.runs:
            return 0.0
        window = 0.0 if self.scenario == "cold_start" else self.group.warmup_s + self._window_s
        return (
            trials * (TRIAL_OVERHEAD_S + window)
            + ACCURACY_S * self.accuracy
            + FIDELITY_S * self.fidelity
            + PLACEMENT_S * self.placement
        )

    @property
    def _window_s(self) -> float:
        return float(self.parameters.get("duration_s", self.group.duration_s))


def expand(
    suite: Suite,
    workloads: Mapping[str, Workload],
    selection: Selection,
    known_targets: Mapping[str, tuple[str, ...]],
    processors: int,
) -> list[Intent]:
    """Return the suite's cases in its own order, each once. `known_targets` are every backend's own names.

    Raises UsageError where the selection names what does not exist, or leaves nothing.
    """
    _check(suite, selection, known_targets)
    cases: dict[tuple[object, ...], Intent] = {}
    measured: set[tuple[str, str, str, str]] = set()
    for group in map(selection.adjust, suite.groups):
        for name in group.workloads:
            if selection.workloads and name not in selection.workloads:
                continue
            for backend, target in _places(group, selection, known_targets):
                for intent in _combinations(group, workloads[name], backend, target, selection, processors):
                    key = (
                        name, backend, target, intent.scenario, intent.precision, intent.artifact_precision,
                        intent.batch, intent.threads, intent.slots, json.dumps(intent.parameters, sort_keys=True),
                    )  # fmt: skip
                    if key in cases:
                        continue
                    # Accuracy and fidelity belong to the artifact, runtime, target and precision: they are measured once
                    # for all of their cases.
                    quality = (name, backend, target, f"{intent.artifact_precision}/{intent.precision}")
                    first = quality not in measured and intent.runs
                    if first:
                        measured.add(quality)
                    placement = suite.placement and intent.scenario == "single_stream" and intent.runs
                    cases[key] = replace(
                        intent, accuracy=first and name in suite.accuracy, fidelity=first, placement=placement
                    )
    if not cases:
        raise UsageError(
            "The selection leaves nothing to run.", f"Look at the suite with `weigh run {suite.name} --plan`."
        )
    return list(cases.values())


def _check(suite: Suite, selection: Selection, known: Mapping[str, tuple[str, ...]]) -> None:
    for name, (low, high) in LIMITS.items():
        value = getattr(selection, name, None)
        if value is not None and not low <= value <= high:  # not a number and infinity are not within either
            raise UsageError(f"--{name.removesuffix('_s')} cannot be {value}.", f"It is from {low:g} to {high:g}.")
    named = {name: None for group in suite.groups for name in group.workloads}
    for workload in selection.workloads:
        if workload not in named:
            raise UsageError(
                f"The suite {suite.name} has no workload {workload!r}.", f"Its workloads are {', '.join(named)}."
            )
    for backend in selection.backends:
        if backend not in known:
            raise UsageError(f"There is no backend {backend!r}.", f"Backends are {', '.join(known)}.")
    chosen = selection.backends or tuple(known)
    for target in selection.targets:
        if not any(own_name(backend, target) for backend in chosen):
            each = "; ".join(f"{backend}: {', '.join(known[backend])}" for backend in chosen)
            raise UsageError(f"No chosen backend has a target {target!r}.", f"Targets are {each}.")


def own_name(backend: str, target: str) -> str | None:
    """Return the backend's one name for a target that is asked for, so that a series has one name; None: it has none."""
    return backends.create(backend).target_named(target)


def _places(group: Group, selection: Selection, known: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    for backend in known:
        if selection.backends and backend not in selection.backends:
            continue
        if selection.targets:
            # A target that was asked for by name need not be one of the suite's own.
            named = selection.targets
        else:
            named = group.targets.get(backend, ())
            if not named and selection.backends:
                named = known[backend][:1]  # asked for by name, though the suite does not mention it
        yield from ((backend, own) for target in named if (own := own_name(backend, target)))


def _combinations(
    group: Group, workload: Workload, backend: str, target: str, selection: Selection, processors: int
) -> Iterator[Intent]:
    allowed_threads = group.threads if target in CPU_TARGETS else (RUNTIME_DEFAULT,)
    swept = product(
        group.artifact_precisions, group.precisions, group.batches, allowed_threads, group.slots, group.parameters
    )
    for artifact_precision, precision, batch, threads, slots, parameters in swept:
        if _same_as_fp32(group, backend, target, artifact_precision, precision):
            continue
        count = _threads(threads, processors)
        status, reason = _hindrance(group, workload, batch, count, selection, processors)
        yield Intent(
            workload=workload,
            backend=backend,
            target=target,
            scenario=group.scenario,
            precision=precision,
            artifact_precision=artifact_precision,
            batch=batch,
            threads=count,
            slots=slots,
            device_index=selection.device_index,
            group=group,
            parameters=filled(group.scenario, parameters, workload.latency_limit_ms),
            status=status,
            reason=reason,
        )


def _same_as_fp32(group: Group, backend: str, target: str, artifact_precision: str, precision: str) -> bool:
    """Whether the vendor's default is certain to be the fp32 case of the same group over again."""
    if precision != RUNTIME_DEFAULT or artifact_precision != "fp32" or "fp32" not in group.precisions:
        return False
    return backends.create(backend).default_precision(target) == "fp32"


def _hindrance(
    group: Group, workload: Workload, batch: int, threads: int | None, selection: Selection, processors: int
) -> tuple[str | None, str | None]:
    """Return the status and the reason of what cannot run anywhere; None and None where nothing speaks against it."""
    if group.scenario not in workload.scenarios:
        allowed = " and ".join(workload.scenarios)
        return "unsupported", f"{workload.name} allows {allowed} only: {workload.note or ''}".rstrip(": ")
    if batch > 1 and "offline" not in workload.scenarios:
        why = workload.note or "it allows one sample at a time"
        return "unsupported", f"{workload.name} has no batches: {why}"
    if threads is not None and threads > processors and selection.threads is None:
        return "skipped", f"{threads} threads on {processors} available processors would measure the waiting"
    return None, None


def _threads(asked: Threads, processors: int) -> int | None:
    if asked == AVAILABLE:
        return processors
    return None if asked == RUNTIME_DEFAULT else int(asked)
