"""What was found: runs as received, their measurements, trials and raw samples, and what people wrote about them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, LargeBinary, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from db.schema.base import BIG_ID, Base


class Run(Base):
    """One execution of a suite. `record` holds the received bytes (zlib), `record_sha256` their digest as received."""

    __tablename__ = "runs"
    __table_args__ = (
        UniqueConstraint("run_id"),
        UniqueConstraint("ingest_sequence"),
        Index(None, "device_id", "started_at"),
        Index(None, "started_at"),
        Index(None, "source_name"),
    )

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    run_id: Mapped[str]
    ingest_sequence: Mapped[int] = mapped_column(BigInteger)  # grows in the order of commits, without overtaking
    device_id: Mapped[int] = mapped_column(ForeignKey("devices.id"))
    environment_id: Mapped[int] = mapped_column(ForeignKey("environments.id"))
    suite_id: Mapped[int] = mapped_column(ForeignKey("suites.id"))
    status: Mapped[str]
    trigger: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    received_at: Mapped[datetime]
    agent_version: Mapped[str | None]
    source_kind: Mapped[str]  # measured, imported
    source_name: Mapped[str]
    source_version: Mapped[str | None]
    source_licence: Mapped[str | None]
    source_attribution: Mapped[str | None]
    source_url: Mapped[str | None]
    source_location: Mapped[str | None]
    conditions: Mapped[dict[str, Any]]
    record_sha256: Mapped[str]
    record_bytes: Mapped[int] = mapped_column(BigInteger)
    record: Mapped[bytes] = mapped_column(LargeBinary)  # last, so that SQLite reads the other columns without it


class RunHarness(Base):
    """What the harness itself cost in a run, and what it changed on the machine.

    A table of its own: SQLite would have to walk through the whole of `runs.record` to reach columns added behind it.
    """

    __tablename__ = "run_harness"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True, autoincrement=False)
    self_cost: Mapped[dict[str, Any] | None]
    preparation: Mapped[dict[str, Any] | None]


class Measurement(Base):
    """A case on a device in a run. Columns for what is filtered, sorted or shown in tables; documents for the rest.

    `device_id` and `started_at` repeat the run's, because "the newest of each case on a device" is asked on every page
    and one index must answer it.
    """

    __tablename__ = "measurements"
    __table_args__ = (
        UniqueConstraint("measurement_id"),
        Index(None, "run_id"),
        Index(None, "device_id", "case_id", "started_at"),
        Index(None, "case_id"),
        Index(None, "compute_unit_id"),
        Index(None, "status"),
        Index(None, "started_at"),
    )

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    measurement_id: Mapped[str]
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    device_id: Mapped[int] = mapped_column(ForeignKey("devices.id"))
    started_at: Mapped[datetime]
    position: Mapped[int]  # in the record
    case_id: Mapped[int] = mapped_column(ForeignKey("cases.id"))
    artifact_id: Mapped[int | None] = mapped_column(ForeignKey("artifacts.id"))
    compute_unit_id: Mapped[int | None] = mapped_column(ForeignKey("compute_units.id"))
    status: Mapped[str]
    reason: Mapped[str | None]

    effective_target: Mapped[str | None]
    effective_precision: Mapped[str | None]
    effective_threads: Mapped[int | None]
    effective_streams: Mapped[int | None]
    runtime: Mapped[str | None]
    runtime_version: Mapped[str | None]
    effective: Mapped[dict[str, Any] | None]

    latency_count: Mapped[int | None] = mapped_column(BigInteger)
    latency_mean_ms: Mapped[float | None]
    latency_min_ms: Mapped[float | None]
    latency_max_ms: Mapped[float | None]
    p50_ms: Mapped[float | None]
    p90_ms: Mapped[float | None]
    p95_ms: Mapped[float | None]
    p99_ms: Mapped[float | None]
    p99_9_ms: Mapped[float | None]
    quantiles: Mapped[dict[str, Any] | None]  # intervals, methods, reasons, by percentile
    throughput_per_s: Mapped[float | None]
    throughput: Mapped[dict[str, Any] | None]  # its interval over trials
    official_metric: Mapped[str | None]
    official_value: Mapped[float | None]
    official_unit: Mapped[str | None]

    energy_j: Mapped[float | None]
    energy_net_j: Mapped[float | None]
    power_w: Mapped[float | None]
    energy_scope: Mapped[str | None]
    energy_quality: Mapped[str | None]
    energy_reason: Mapped[str | None]
    energy: Mapped[dict[str, Any] | None]

    accuracy_metric: Mapped[str | None]
    accuracy_value: Mapped[float | None]
    accuracy_reason: Mapped[str | None]
    accuracy_samples: Mapped[int | None] = mapped_column(BigInteger)
    accuracy_note: Mapped[str | None]
    accuracy: Mapped[dict[str, Any] | None]

    peak_rss_mb: Mapped[float | None]
    device_memory_mb: Mapped[float | None]
    stages_ms: Mapped[dict[str, Any] | None]
    cold_start_ms: Mapped[dict[str, Any] | None]
    fidelity: Mapped[dict[str, Any] | None]
    thermal: Mapped[dict[str, Any] | None]
    sampling: Mapped[dict[str, Any] | None]
    rate_curve: Mapped[dict[str, Any] | None]  # server
    over_time: Mapped[dict[str, Any] | None]  # sustained
    flags: Mapped[list[Any]]
    trial_count: Mapped[int]


class Trial(Base):
    """One case run once in one fresh process."""

    __tablename__ = "trials"
    __table_args__ = (UniqueConstraint("measurement_id", "trial_id"),)

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    measurement_id: Mapped[int] = mapped_column(ForeignKey("measurements.id"))
    trial_id: Mapped[str]
    position: Mapped[int]
    kind: Mapped[str]
    status: Mapped[str]
    reason: Mapped[str | None]
    window_start_ns: Mapped[int | None] = mapped_column(BigInteger)
    window_end_ns: Mapped[int | None] = mapped_column(BigInteger)
    discarded_warmup: Mapped[int | None] = mapped_column(BigInteger)
    throughput_per_s: Mapped[float | None]
    last_words: Mapped[str | None]
    discarded_unsteady: Mapped[int | None] = mapped_column(BigInteger)
    unsteady_reason: Mapped[str | None]
    conditions: Mapped[dict[str, Any] | None]


class Sample(Base):
    """A blob of raw samples or predictions, as received, by the SHA-256 of its bytes."""

    __tablename__ = "samples"

    sha256: Mapped[str] = mapped_column(primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)
    bytes: Mapped[int] = mapped_column(BigInteger)


class TrialSample(Base):
    """Which blob holds what of a trial."""

    __tablename__ = "trial_samples"
    __table_args__ = (Index(None, "sha256"),)

    trial_id: Mapped[int] = mapped_column(ForeignKey("trials.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    what: Mapped[str]
    sha256: Mapped[str] = mapped_column(ForeignKey("samples.sha256"))
    count: Mapped[int] = mapped_column(BigInteger)


class Annotation(Base):
    """What a person wrote about a run. `bad` takes the run out of "newest" and of regression checks; nothing is deleted."""

    __tablename__ = "annotations"
    __table_args__ = (CheckConstraint("kind IN ('note', 'bad')", name="kind"), Index(None, "run_id"))

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    kind: Mapped[str]
    text: Mapped[str]
    author: Mapped[str]
    created_at: Mapped[datetime]
    data_version: Mapped[int] = mapped_column(BigInteger)  # the store's version that this annotation made
