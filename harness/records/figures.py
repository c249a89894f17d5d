"""The numbers of a measurement: times, rates, memory, energy. None means not known, with a reason beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Quantile:
    """A percentile. `value` is None where the samples do not carry it, and `reason` says so."""

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Latency:
    """Milliseconds over all samples of all timing trials, warm-up excluded.

    Percentiles follow LoadGen: the zero-based index floor(n p) of the sorted samples. An imported summary may lack
    mean, min or max.
    """

    count: int | None
    mean: float | None
    min: float | None
    max: float | None
    p50: Quantile
    p90: Quantile
    p95: Quantile
    p99: Quantile
    p99_9: Quantile


@dataclass(frozen=True)
class RatePoint:
    """What one offered rate of the server scenario gave. Latency counts from the scheduled arrival, in milliseconds."""

    offered_per_s: float  # mean of the Poisson arrivals; one query of the case's batch each
    completed_per_s: float | None  # answers over the time from the first arrival to the last answer
    count: int  # queries, over all trials
    p50: Quantile
    p90: Quantile
    p99: Quantile
    keeps_up: bool | None = None  # False: the queue grew until the end, so that longer would have been slower
    meets_limit: Literal["met", "missed", "undecided"] | None = None  # None: the workload has no limit


@dataclass(frozen=True)
class RateCurve:
    """Latency at several offered rates, so that any limit can be asked later, and the workload's own limit."""

    points: tuple[RatePoint, ...]
    percentile: str = "p99"
    limit_ms: float | None = None
    highest_met_per_s: float | None = None  # the highest offered rate that meets the limit; None with `reason`
    reason: str | None = None


@dataclass(frozen=True)
class Slice:
    """A stretch of a sustained trial."""

    start_s: float  # from the window's start
    end_s: float
    count: int
    p50_ms: float | None
    p99_ms: float | None
    throughput_per_s: float | None
    cpu_mhz: float | None = None
    temperature_c: float | None = None


@dataclass(frozen=True)
class OverTime:
    """How a sustained load went: slices in the order of time, and what changed from the first to the last part."""

    slices: tuple[Slice, ...]
    drift: float | None = None  # median latency of the last fifth over that of the first fifth; None with `reason`
    drift_low: float | None = None
    drift_high: float | None = None
    verdict: Literal["steady", "slower", "faster", "undecided"] | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Official:
    """The value that the source itself declares as its result, e.g. MLPerf's early-stopping estimate."""

    metric: str  # "early_stopping_p90_latency", "samples_per_second"
    value: float
    unit: str  # "ms", "samples/s"


@dataclass(frozen=True)
class Stages:
    """Median milliseconds of each stage of one sample, timed apart."""

    decode: float | None = None
    preprocess: float | None = None
    inference: float | None = None
    postprocess: float | None = None


@dataclass(frozen=True)
class ColdStart:
    """Milliseconds of each part of the first answer (median over trials), and the state of every cache."""

    process: float | None = None
    import_: float | None = None
    load: float | None = None
    compile: float | None = None
    first_inference: float | None = None
    caches: dict[str, str] = field(default_factory=dict)
    # Fields of a Quantile over trials by the part's name, and of their sum where no part is missing: "first_answer".
    intervals: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Memory:
    """Megabytes (10^6 bytes). Peak resident set of the worker process; device memory where the runtime tells.

    The process holds Python, the runtime, the model, and the prepared inputs that rotate (at most about 256 MB of them): it
    is no figure of the model alone.
    """

    peak_rss: float | None = None
    device: float | None = None


@dataclass(frozen=True)
class Energy:
    """Energy of one inference in joules and the power behind it in watts; None with `reason` when not measured."""

    per_inference_j: float | None
    reason: str | None = None
    net_per_inference_j: float | None = None  # idle subtracted
    mean_w: float | None = None
    idle_w: float | None = None
    loaded_idle_w: float | None = None
    source: str | None = None  # "rapl:package-0", "nvml:0", "spec-ptdaemon"
    scope: str | None = None  # gpu_board, cpu_package, soc_estimate, board_rails, wall
    method: str | None = None  # counter_diff, trapezoid
    quality: str | None = None  # metered, sensor, estimated
    samples: int | None = None
