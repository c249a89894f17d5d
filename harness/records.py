"""The run record: what one execution of a suite on one device found, and everything that says how far to trust it.

Frozen dataclasses of the standard library, so that devices need nothing else. `harness.documents` reads them strictly
from JSON and writes them. Names carry units. None means "not known" or "not measured", and a `reason` beside it says why;
it never means zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from harness.canonical import digest_of

SCHEMA = "weighbridge/run/1"

RunStatus = Literal["complete", "interrupted"]
MeasurementStatus = Literal["ok", "invalid", "unsupported", "failed", "skipped"]
TrialKind = Literal["timing", "energy", "accuracy", "placement", "cold"]
Gate = Literal["passed", "failed", "undecided"]


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
        from dataclasses import asdict

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


@dataclass(frozen=True)
class Memory:
    """Megabytes (10^6 bytes). Peak resident set of the worker process; device memory where the runtime tells."""

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


@dataclass(frozen=True)
class Accuracy:
    """Quality on labelled data, 0 to 1. `value` is None with a reason (and how to get the data) when not measured."""

    metric: str
    value: float | None
    reason: str | None = None
    reference: float | None = None
    relative: float | None = None
    gate: Gate | None = None
    samples: int | None = None
    dataset: str | None = None
    predictions: str | None = None  # SHA-256 of the blob with one prediction per sample
    details: dict[str, float] = field(default_factory=dict)  # further metrics, e.g. top5
    note: str | None = None


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
    fidelity: dict[str, Any] | None = None
    thermal: dict[str, Any] | None = None
    flags: tuple[Flag, ...] = ()
    trials: tuple[Trial, ...] = ()


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
