"""Make the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
MOMENT = sa.DateTime(timezone=True)
STATES = (
    "state IN ('QUEUED', 'LEASED', 'STAGED', 'LAUNCHED', 'RUNNING', 'FINISHED', 'FETCHED', "
    "'INGESTED', 'FAILED', 'LOST', 'CANCELLED')"
)
LIVE = sa.text("state IN ('LEASED', 'STAGED', 'LAUNCHED', 'RUNNING', 'FINISHED')")
TABLES = (
    "artifacts",
    "datasets",
    "dispatches",
    "environments",
    "hardware_models",
    "samples",
    "store_state",
    "suites",
    "tokens",
    "workloads",
    "cases",
    "devices",
    "compute_units",
    "runs",
    "annotations",
    "measurements",
    "trials",
    "trial_samples",
)


def upgrade() -> None:
    op.create_table(
        "artifacts",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("format", sa.String(), nullable=False),
        sa.Column("precision", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("source", sa.String()),
        sa.Column("source_sha256", sa.String()),
        sa.Column("recipe", sa.String()),
        sa.Column("recipe_sha256", sa.String()),
        sa.Column("tools", DOCUMENT, nullable=False),
        sa.Column("licence", sa.String()),
        sa.PrimaryKeyConstraint("id", name="pk_artifacts"),
        sa.UniqueConstraint("sha256", "format", "precision", name="uq_artifacts_sha256_format_precision"),
    )
    op.create_table(
        "datasets",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
        sa.UniqueConstraint("name", "digest", name="uq_datasets_name_digest"),
    )
    op.create_table(
        "dispatches",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("dispatch_id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("retry_of", sa.String()),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("suite", sa.String(), nullable=False),
        sa.Column("request", DOCUMENT, nullable=False),
        sa.Column("requested_by", sa.String()),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("fencing_token", sa.BigInteger()),
        sa.Column("remote_folder", sa.String()),
        sa.Column("remote_boot_id", sa.String()),
        sa.Column("remote_pid", sa.BigInteger()),
        sa.Column("remote_status", DOCUMENT),
        sa.Column("result_sha256", sa.String()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("leased_at", MOMENT),
        sa.Column("staged_at", MOMENT),
        sa.Column("launched_at", MOMENT),
        sa.Column("last_seen_at", MOMENT),
        sa.Column("finished_at", MOMENT),
        sa.Column("fetched_at", MOMENT),
        sa.Column("ingested_at", MOMENT),
        sa.Column("ended_at", MOMENT),
        sa.Column("remote_removed_at", MOMENT),
        sa.Column("deadline_at", MOMENT),
        sa.Column("last_error", sa.String()),
        sa.CheckConstraint(STATES, name="ck_dispatches_state"),
        sa.PrimaryKeyConstraint("id", name="pk_dispatches"),
        sa.UniqueConstraint("device", "fencing_token", name="uq_dispatches_device_fencing_token"),
        sa.UniqueConstraint("dispatch_id", name="uq_dispatches_dispatch_id"),
    )
    op.create_index("ix_dispatches_run_id", "dispatches", ["run_id"])
    op.create_index("ix_dispatches_state", "dispatches", ["state"])
    op.create_index(
        "ux_dispatches_live_device", "dispatches", ["device"], unique=True, sqlite_where=LIVE, postgresql_where=LIVE
    )
    op.create_table(
        "environments",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("machine", DOCUMENT, nullable=False),
        sa.Column("configuration", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_environments"),
        sa.UniqueConstraint("digest", name="uq_environments_digest"),
    )
    op.create_table(
        "hardware_models",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("vendor", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hardware_models"),
        sa.UniqueConstraint("vendor", "name", "kind", name="uq_hardware_models_vendor_name_kind"),
    )
    op.create_index("ix_hardware_models_name", "hardware_models", ["name"])
    op.create_table(
        "samples",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_samples"),
    )
    op.create_table(
        "store_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("data_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_store_state"),
    )
    op.create_table(
        "suites",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_suites"),
        sa.UniqueConstraint("name", "version", "digest", name="uq_suites_name_version_digest"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("device_uuid", sa.String()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("revoked_at", MOMENT),
        sa.Column("last_used_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
        sa.UniqueConstraint("token_id", name="uq_tokens_token_id"),
    )
    op.create_index("ix_tokens_device", "tokens", ["device"])
    op.create_table(
        "workloads",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("family", sa.String(), nullable=False),
        sa.Column("title", sa.String()),
        sa.PrimaryKeyConstraint("id", name="pk_workloads"),
        sa.UniqueConstraint("name", name="uq_workloads_name"),
    )
    op.create_index("ix_workloads_family", "workloads", ["family"])
    op.create_table(
        "cases",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("workload_id", BIG_ID, nullable=False),
        sa.Column("dataset_id", BIG_ID),
        sa.Column("source_weights", sa.String()),
        sa.Column("artifact_precision", sa.String(), nullable=False),
        sa.Column("requested_precision", sa.String(), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("compute_unit", sa.String()),
        sa.Column("scenario", sa.String(), nullable=False),
        sa.Column("scenario_parameters", DOCUMENT, nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("streams", sa.Integer()),
        sa.Column("threads", sa.Integer()),
        sa.Column("input_size", sa.String()),
        sa.Column("boundary", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="fk_cases_dataset_id"),
        sa.ForeignKeyConstraint(["workload_id"], ["workloads.id"], name="fk_cases_workload_id"),
        sa.PrimaryKeyConstraint("id", name="pk_cases"),
        sa.UniqueConstraint("key", name="uq_cases_key"),
    )
    op.create_index("ix_cases_backend", "cases", ["backend"])
    op.create_index("ix_cases_scenario", "cases", ["scenario"])
    op.create_index("ix_cases_workload_id", "cases", ["workload_id"])
    op.create_table(
        "devices",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("uuid", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("hardware_model_id", BIG_ID, nullable=False),
        sa.Column("form", sa.String()),
        sa.Column("last_started_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["hardware_model_id"], ["hardware_models.id"], name="fk_devices_hardware_model_id"),
        sa.PrimaryKeyConstraint("id", name="pk_devices"),
        sa.UniqueConstraint("uuid", name="uq_devices_uuid"),
    )
    op.create_index("ix_devices_name", "devices", ["name"])
    op.create_table(
        "compute_units",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("device_id", BIG_ID, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("hardware_model_id", BIG_ID, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger()),
        sa.ForeignKeyConstraint(["device_id"], ["devices.id"], name="fk_compute_units_device_id"),
        sa.ForeignKeyConstraint(
            ["hardware_model_id"], ["hardware_models.id"], name="fk_compute_units_hardware_model_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_compute_units"),
        sa.UniqueConstraint(
            "device_id",
            "name",
            "hardware_model_id",
            "count",
            name="uq_compute_units_device_id_name_hardware_model_id_count",
        ),
    )
    op.create_index("ix_compute_units_hardware_model_id", "compute_units", ["hardware_model_id"])
    op.create_table(
        "runs",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("ingest_sequence", sa.BigInteger(), nullable=False),
        sa.Column("device_id", BIG_ID, nullable=False),
        sa.Column("environment_id", BIG_ID, nullable=False),
        sa.Column("suite_id", BIG_ID, nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("trigger", sa.String(), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT),
        sa.Column("received_at", MOMENT, nullable=False),
        sa.Column("agent_version", sa.String()),
        sa.Column("source_kind", sa.String(), nullable=False),
        sa.Column("source_name", sa.String(), nullable=False),
        sa.Column("source_version", sa.String()),
        sa.Column("source_licence", sa.String()),
        sa.Column("source_attribution", sa.String()),
        sa.Column("source_url", sa.String()),
        sa.Column("source_location", sa.String()),
        sa.Column("conditions", DOCUMENT, nullable=False),
        sa.Column("record_sha256", sa.String(), nullable=False),
        sa.Column("record_bytes", sa.BigInteger(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["device_id"], ["devices.id"], name="fk_runs_device_id"),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], name="fk_runs_environment_id"),
        sa.ForeignKeyConstraint(["suite_id"], ["suites.id"], name="fk_runs_suite_id"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("ingest_sequence", name="uq_runs_ingest_sequence"),
        sa.UniqueConstraint("run_id", name="uq_runs_run_id"),
    )
    op.create_index("ix_runs_device_id_started_at", "runs", ["device_id", "started_at"])
    op.create_index("ix_runs_source_name", "runs", ["source_name"])
    op.create_index("ix_runs_started_at", "runs", ["started_at"])
    op.create_table(
        "annotations",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("run_id", BIG_ID, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("data_version", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('note', 'bad')", name="ck_annotations_kind"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_annotations_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_annotations"),
    )
    op.create_index("ix_annotations_run_id", "annotations", ["run_id"])
    op.create_table(
        "measurements",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("measurement_id", sa.String(), nullable=False),
        sa.Column("run_id", BIG_ID, nullable=False),
        sa.Column("device_id", BIG_ID, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("case_id", BIG_ID, nullable=False),
        sa.Column("artifact_id", BIG_ID),
        sa.Column("compute_unit_id", BIG_ID),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String()),
        sa.Column("effective_target", sa.String()),
        sa.Column("effective_precision", sa.String()),
        sa.Column("effective_threads", sa.Integer()),
        sa.Column("effective_streams", sa.Integer()),
        sa.Column("runtime", sa.String()),
        sa.Column("runtime_version", sa.String()),
        sa.Column("effective", DOCUMENT),
        sa.Column("latency_count", sa.BigInteger()),
        sa.Column("latency_mean_ms", sa.Double()),
        sa.Column("latency_min_ms", sa.Double()),
        sa.Column("latency_max_ms", sa.Double()),
        sa.Column("p50_ms", sa.Double()),
        sa.Column("p90_ms", sa.Double()),
        sa.Column("p95_ms", sa.Double()),
        sa.Column("p99_ms", sa.Double()),
        sa.Column("p99_9_ms", sa.Double()),
        sa.Column("quantiles", DOCUMENT),
        sa.Column("throughput_per_s", sa.Double()),
        sa.Column("official_metric", sa.String()),
        sa.Column("official_value", sa.Double()),
        sa.Column("official_unit", sa.String()),
        sa.Column("energy_j", sa.Double()),
        sa.Column("energy_net_j", sa.Double()),
        sa.Column("power_w", sa.Double()),
        sa.Column("energy_scope", sa.String()),
        sa.Column("energy_quality", sa.String()),
        sa.Column("energy_reason", sa.String()),
        sa.Column("energy", DOCUMENT),
        sa.Column("accuracy_metric", sa.String()),
        sa.Column("accuracy_value", sa.Double()),
        sa.Column("accuracy_reason", sa.String()),
        sa.Column("accuracy_samples", sa.BigInteger()),
        sa.Column("accuracy_note", sa.String()),
        sa.Column("accuracy", DOCUMENT),
        sa.Column("peak_rss_mb", sa.Double()),
        sa.Column("device_memory_mb", sa.Double()),
        sa.Column("stages_ms", DOCUMENT),
        sa.Column("cold_start_ms", DOCUMENT),
        sa.Column("fidelity", DOCUMENT),
        sa.Column("thermal", DOCUMENT),
        sa.Column("flags", DOCUMENT, nullable=False),
        sa.Column("trial_count", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["artifact_id"], ["artifacts.id"], name="fk_measurements_artifact_id"),
        sa.ForeignKeyConstraint(["case_id"], ["cases.id"], name="fk_measurements_case_id"),
        sa.ForeignKeyConstraint(["compute_unit_id"], ["compute_units.id"], name="fk_measurements_compute_unit_id"),
        sa.ForeignKeyConstraint(["device_id"], ["devices.id"], name="fk_measurements_device_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_measurements_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_measurements"),
        sa.UniqueConstraint("measurement_id", name="uq_measurements_measurement_id"),
    )
    op.create_index("ix_measurements_case_id", "measurements", ["case_id"])
    op.create_index("ix_measurements_compute_unit_id", "measurements", ["compute_unit_id"])
    op.create_index(
        "ix_measurements_device_id_case_id_started_at", "measurements", ["device_id", "case_id", "started_at"]
    )
    op.create_index("ix_measurements_run_id", "measurements", ["run_id"])
    op.create_index("ix_measurements_started_at", "measurements", ["started_at"])
    op.create_index("ix_measurements_status", "measurements", ["status"])
    op.create_table(
        "trials",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("measurement_id", BIG_ID, nullable=False),
        sa.Column("trial_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String()),
        sa.Column("window_start_ns", sa.BigInteger()),
        sa.Column("window_end_ns", sa.BigInteger()),
        sa.Column("discarded_warmup", sa.BigInteger()),
        sa.Column("throughput_per_s", sa.Double()),
        sa.Column("last_words", sa.String()),
        sa.ForeignKeyConstraint(["measurement_id"], ["measurements.id"], name="fk_trials_measurement_id"),
        sa.PrimaryKeyConstraint("id", name="pk_trials"),
        sa.UniqueConstraint("measurement_id", "trial_id", name="uq_trials_measurement_id_trial_id"),
    )
    op.create_table(
        "trial_samples",
        sa.Column("trial_id", BIG_ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("what", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["sha256"], ["samples.sha256"], name="fk_trial_samples_sha256"),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name="fk_trial_samples_trial_id"),
        sa.PrimaryKeyConstraint("trial_id", "position", name="pk_trial_samples"),
    )
    op.create_index("ix_trial_samples_sha256", "trial_samples", ["sha256"])
    op.execute("INSERT INTO store_state (id, data_version) VALUES (1, 0)")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
