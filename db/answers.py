"""The shapes of what `db.queries` answers and is asked. Plain data, importable without SQLAlchemy."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Filter:
    """Which measurements are wanted. Empty tuples mean all; the parts must all hold.

    `sources` takes names and the kinds "measured" and "imported". `newest_only` keeps, of each case on each device, the
    newest measurement whose run was not annotated as bad; one that was skipped stands only where no other is.
    `search` looks for a text in names, regardless of case.
    """

    families: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()  # names or UUIDs
    backends: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    measurement_ids: tuple[str, ...] = ()
    search: str | None = None
    newest_only: bool = False
    limit: int = 1000
    offset: int = 0


@dataclass(frozen=True)
class Facets:
    """The values that occur in the store, sorted."""

    families: tuple[str, ...]
    workloads: tuple[str, ...]
    hardware: tuple[str, ...]
    devices: tuple[str, ...]
    backends: tuple[str, ...]
    scenarios: tuple[str, ...]
    statuses: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True)
class ResultRow:
    """One measurement with its case, device and run, flat. None means not known or not measured, never zero.

    `hardware_model` is the compute unit's, the thing that can be bought; None where the record names no unit.
    """

    measurement_id: str
    run_id: str
    ingest_sequence: int
    started_at: datetime
    source_kind: str
    source_name: str
    attribution: str | None
    url: str | None
    device: str
    device_uuid: str
    device_model: str
    hardware_model: str | None
    unit_kind: str | None
    unit_count: int | None
    workload: str
    family: str
    workload_title: str | None
    dataset: str | None  # name@digest
    backend: str
    target: str
    scenario: str
    scenario_parameters: dict[str, Any]
    batch: int | None  # None: an imported result whose source does not tell it
    threads: int | None
    streams: int | None
    status: str
    reason: str | None
    artifact_name: str | None
    artifact_format: str | None
    artifact_precision: str
    artifact_sha256: str | None
    requested_precision: str
    effective_target: str | None
    effective_precision: str | None
    effective_threads: int | None
    runtime: str | None
    runtime_version: str | None
    latency_count: int | None
    latency_mean_ms: float | None
    latency_min_ms: float | None
    latency_max_ms: float | None
    p50_ms: float | None
    p90_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    p99_9_ms: float | None
    throughput_per_s: float | None
    official_metric: str | None
    official_value: float | None
    official_unit: str | None
    energy_j: float | None
    energy_net_j: float | None
    power_w: float | None
    energy_scope: str | None
    energy_quality: str | None
    energy_reason: str | None
    accuracy_metric: str | None
    accuracy_value: float | None
    accuracy_reason: str | None
    accuracy_samples: int | None
    accuracy_note: str | None
    peak_rss_mb: float | None
    cold_start_ms: dict[str, Any] | None
    stages_ms: dict[str, Any] | None
    flags: tuple[tuple[str, str], ...]
    suite: str
    trials: int
    environment_digest: str
    annotations: tuple[str, ...] = ()
    # Beyond what tables show: what a comparison or the Run page needs to explain a row.
    case_key: str = ""
    compute_unit: str | None = None
    effective_streams: int | None = None
    effective: dict[str, Any] | None = None
    quantiles: dict[str, Any] | None = None
    energy: dict[str, Any] | None = None
    accuracy: dict[str, Any] | None = None
    device_memory_mb: float | None = None
    boundary: str = "host_to_host"
    input_size: str | None = None
    source_version: str | None = None
    source_location: str | None = None
    source_weights: str | None = None
    artifact_calibration: str | None = None  # name@digest
    throughput: dict[str, Any] | None = None  # records.Quantile of throughput_per_s
    fidelity: dict[str, Any] | None = None  # records.Fidelity
    sampling: dict[str, Any] | None = None  # records.Sampling
    rate_curve: dict[str, Any] | None = None  # records.RateCurve
    over_time: dict[str, Any] | None = None  # records.OverTime
    thermal: dict[str, Any] | None = None  # of a duty cycle: "idle_penalty"; no shape is promised
    self_cost: dict[str, Any] | None = None  # records.SelfCost of the run


@dataclass(frozen=True)
class RunRow:
    """One run in a list."""

    run_id: str
    status: str
    device: str
    suite: str
    started_at: datetime
    finished_at: datetime | None
    trigger: str
    source_kind: str
    source_name: str
    measurements: int
    ok: int
    device_uuid: str = ""


@dataclass(frozen=True)
class RunDetail:
    """Everything about one run."""

    run: RunRow
    environment: dict[str, Any]  # digest, machine, configuration, conditions
    device: dict[str, Any]
    rows: list[ResultRow]
    trials: list[dict[str, Any]]
    record_sha256: str
    received_at: datetime
    annotations: tuple[str, ...] = ()
    agent_version: str | None = None
    licence: str | None = None
    preparation: dict[str, Any] | None = None  # records.Preparation
    location: str | None = field(default=None)
