"""A measurement with its trials and flags, and the run that holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from harness.records.case import Artifact, Case, Effective
from harness.records.figures import (
    ColdStart,
    Energy,
    Latency,
    Memory,
    Official,
    OverTime,
    Quantile,
    RateCurve,
    Stages,
)
from harness.records.identity import Device, Environment, Source, SuiteRef
from harness.records.quality import Accuracy, Fidelity

SCHEMA = "weighbridge/run/1"

RunStatus = Literal["complete", "interrupted"]
MeasurementStatus = Literal["ok", "invalid", "unsupported", "failed", "skipped"]
TrialKind = Literal["timing", "energy", "accuracy", "placement", "cold", "fidelity"]


@dataclass(frozen=True)
class Flag:
    """Something a reader must know before trusting or comparing a measurement."""

    code: str  # snake_case, stable
    message: str


@dataclass(frozen=True)
class SampleBlob:
    """Raw samples beside the record: zlib-compressed little-endian int64 nanoseconds (or JSON lines), by digest."""

    what: str  # "latency_ns", "query_ns", "decode_ns", "predictions"
    sha256: str
    count: int
    bytes: int


@dataclass(frozen=True)
class Trial:
    """One case run once in one fresh process."""

    trial_id: str
    kind: TrialKind
    status: MeasurementStatus
    reason: str | None = None
    window_start_ns: int | None = None  # CLOCK_MONOTONIC of the device
    window_end_ns: int | None = None
    discarded_warmup: int | None = None
    throughput_per_s: float | None = None
    samples: tuple[SampleBlob, ...] = ()
    last_words: str | None = None  # the end of the worker's standard error, where it failed
    discarded_unsteady: int | None = None  # samples in front of the steady part, left out of every figure
    unsteady_reason: str | None = None  # why no steady part was found; then nothing was left out
    conditions: dict[str, Any] = field(default_factory=dict)  # what else went on during the window


@dataclass(frozen=True)
class Sampling:
    """How often a case was repeated, why it ended there, and how sure its target figure became."""

    trials: int
    figure: str  # "p50", "throughput"
    stopped: Literal["narrow_enough", "budget_spent", "fixed", "interrupted"]
    sentence: str
    looks: tuple[int, ...] = ()  # trial counts at which the rule looks
    asked_half_width: float | None = None  # as a share of the value
    reached_half_width: float | None = None  # None: a range, or nothing


@dataclass(frozen=True)
class SelfCost:
    """The harness's own cost per query on this machine, from the same loop around a session that does nothing.

    Microseconds, medians over `trials` fresh processes. None with `reason` when not measured.
    """

    recorded_us: float | None  # inside every recorded latency: the call and the clock
    wall_us: float | None  # of the loop per query, most of it between two queries
    trials: int = 0
    queries: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Change:
    """One setting of the machine that was changed for the run, and whether it was put back."""

    what: str  # "governor of cpu0"
    before: str
    during: str
    restored: bool


@dataclass(frozen=True)
class Preparation:
    """What was done on request to make the machine quiet. `refused` are settings that could not be changed, with why."""

    changes: tuple[Change, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement:
    """A case on a device in a run: all its trials, summarised, with everything that says how far to trust it."""

    measurement_id: str
    case: Case
    case_key: str
    status: MeasurementStatus
    reason: str | None = None
    workload_family: str | None = None
    workload_title: str | None = None
    artifact: Artifact | None = None
    effective: Effective | None = None
    latency_ms: Latency | None = None  # None for offline: queue times are no latency
    throughput_per_s: float | None = None
    official: Official | None = None
    stages_ms: Stages | None = None
    cold_start_ms: ColdStart | None = None
    memory_mb: Memory | None = None
    energy: Energy | None = None
    accuracy: Accuracy | None = None
    fidelity: Fidelity | None = None
    thermal: dict[str, Any] | None = None
    flags: tuple[Flag, ...] = ()
    trials: tuple[Trial, ...] = ()
    sampling: Sampling | None = None
    throughput: Quantile | None = None  # of `throughput_per_s` over trials: low, high, method
    rate_curve: RateCurve | None = None  # server
    over_time: OverTime | None = None  # sustained


@dataclass(frozen=True)
class Run:
    """One execution of a suite on one device in one environment."""

    run_id: str
    status: RunStatus
    device: Device
    environment: Environment
    suite: SuiteRef
    trigger: str  # "manual", "schedule", "fleet", "import"
    started_at: str  # RFC 3339, UTC
    finished_at: str | None
    source: Source
    measurements: tuple[Measurement, ...] = ()
    agent_version: str | None = None
    schema: str = SCHEMA
    self_cost: SelfCost | None = None
    preparation: Preparation | None = None
