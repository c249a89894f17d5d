"""The one join behind every table of measurements, and the filter on it, as SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, and_, exists, func, or_, select
from sqlalchemy.orm import aliased

from db.answers import Filter
from db.schema import (
    Annotation,
    Artifact,
    Case,
    ComputeUnit,
    Dataset,
    Device,
    Environment,
    HardwareModel,
    Measurement,
    Run,
    RunHarness,
    Suite,
    Workload,
)

UnitModel = aliased(HardwareModel, name="unit_models")
DeviceModel = aliased(HardwareModel, name="device_models")
DERIVED = frozenset({"run_row", "dataset_name", "dataset_digest"})  # columns from which a row's fields are made

_COLUMNS = (
    Measurement.measurement_id,
    Run.run_id,
    Run.ingest_sequence,
    Measurement.started_at,
    Run.source_kind,
    Run.source_name,
    Run.source_attribution.label("attribution"),
    Run.source_url.label("url"),
    Run.source_version,
    Run.source_location,
    Device.name.label("device"),
    Device.uuid.label("device_uuid"),
    DeviceModel.name.label("device_model"),
    UnitModel.name.label("hardware_model"),
    UnitModel.kind.label("unit_kind"),
    ComputeUnit.count.label("unit_count"),
    ComputeUnit.name.label("compute_unit"),
    Workload.name.label("workload"),
    Workload.family,
    Workload.title.label("workload_title"),
    Dataset.name.label("dataset_name"),
    Dataset.digest.label("dataset_digest"),
    Case.key.label("case_key"),
    Case.backend,
    Case.target,
    Case.scenario,
    Case.scenario_parameters,
    Case.batch,
    Case.threads,
    Case.streams,
    Case.boundary,
    Case.input_size,
    Measurement.status,
    Measurement.reason,
    Artifact.name.label("artifact_name"),
    Artifact.format.label("artifact_format"),
    Artifact.sha256.label("artifact_sha256"),
    Artifact.calibration.label("artifact_calibration"),
    Case.source_weights,
    Case.artifact_precision,
    Case.requested_precision,
    Measurement.effective_target,
    Measurement.effective_precision,
    Measurement.effective_threads,
    Measurement.effective_streams,
    Measurement.effective,
    Measurement.runtime,
    Measurement.runtime_version,
    Measurement.latency_count,
    Measurement.latency_mean_ms,
    Measurement.latency_min_ms,
    Measurement.latency_max_ms,
    Measurement.p50_ms,
    Measurement.p90_ms,
    Measurement.p95_ms,
    Measurement.p99_ms,
    Measurement.p99_9_ms,
    Measurement.quantiles,
    Measurement.throughput_per_s,
    Measurement.throughput,
    Measurement.official_metric,
    Measurement.official_value,
    Measurement.official_unit,
    Measurement.energy_j,
    Measurement.energy_net_j,
    Measurement.power_w,
    Measurement.energy_scope,
    Measurement.energy_quality,
    Measurement.energy_reason,
    Measurement.energy,
    Measurement.accuracy_metric,
    Measurement.accuracy_value,
    Measurement.accuracy_reason,
    Measurement.accuracy_samples,
    Measurement.accuracy_note,
    Measurement.accuracy,
    Measurement.peak_rss_mb,
    Measurement.device_memory_mb,
    Measurement.cold_start_ms,
    Measurement.stages_ms,
    Measurement.fidelity,
    Measurement.sampling,
    Measurement.rate_curve,
    Measurement.over_time,
    Measurement.thermal,
    RunHarness.self_cost,
    Measurement.flags,
    Suite.name.label("suite"),
    Measurement.trial_count.label("trials"),
    Environment.digest.label("environment_digest"),
    Run.id.label("run_row"),
)


def result_columns(wanted: Filter) -> Select[Any]:
    """The statement for a page of result rows, newest run first.

    Which rows are on the page is found first, so that sorting carries ids and not the documents of every row that fits.
    """
    order = (Measurement.started_at.desc(), Measurement.run_id.desc(), Measurement.position)
    chosen = restricted(joined(select(Measurement.id)), wanted).order_by(*order)
    page = chosen.limit(wanted.limit).offset(wanted.offset)
    return joined(select(*_COLUMNS)).where(Measurement.id.in_(page.scalar_subquery())).order_by(*order)


def joined(statement: Select[Any]) -> Select[Any]:
    """Measurements with all that a row shows. Joins over primary keys only."""
    return (
        statement.select_from(Measurement)
        .join(Run, Run.id == Measurement.run_id)
        .join(Device, Device.id == Measurement.device_id)
        .join(DeviceModel, DeviceModel.id == Device.hardware_model_id)
        .join(Environment, Environment.id == Run.environment_id)
        .join(Suite, Suite.id == Run.suite_id)
        .join(Case, Case.id == Measurement.case_id)
        .join(Workload, Workload.id == Case.workload_id)
        .outerjoin(Dataset, Dataset.id == Case.dataset_id)
        .outerjoin(RunHarness, RunHarness.run_id == Run.id)
        .outerjoin(Artifact, Artifact.id == Measurement.artifact_id)
        .outerjoin(ComputeUnit, ComputeUnit.id == Measurement.compute_unit_id)
        .outerjoin(UnitModel, UnitModel.id == ComputeUnit.hardware_model_id)
    )


def restricted(statement: Select[Any], wanted: Filter) -> Select[Any]:
    """`statement` over the join, with the filter's conditions."""
    for column, values in (
        (Workload.family, wanted.families),
        (Workload.name, wanted.workloads),
        (UnitModel.name, wanted.hardware),
        (Case.backend, wanted.backends),
        (Case.scenario, wanted.scenarios),
        (Measurement.status, wanted.statuses),
        (Run.run_id, wanted.run_ids),
        (Measurement.measurement_id, wanted.measurement_ids),
    ):
        if values:
            statement = statement.where(column.in_(values))
    if wanted.devices:
        statement = statement.where(or_(Device.name.in_(wanted.devices), Device.uuid.in_(wanted.devices)))
    if wanted.sources:
        statement = statement.where(or_(Run.source_name.in_(wanted.sources), Run.source_kind.in_(wanted.sources)))
    if wanted.search and wanted.search.strip():
        statement = statement.where(_found(wanted.search.strip()))
    return statement.where(_newest()) if wanted.newest_only else statement


def _found(text: str) -> Any:
    """Each word of the text occurs in one of the names that a reader sees."""
    names = (
        Workload.name,
        Workload.title,
        Workload.family,
        Device.name,
        DeviceModel.name,
        UnitModel.name,
        Case.backend,
        Case.target,
        Case.scenario,
        Measurement.runtime,
        Artifact.name,
        Run.source_name,
        Suite.name,
    )
    return and_(*(or_(*(name.icontains(word, autoescape=True) for name in names)) for word in text.split()))


def _newest() -> Any:
    """No other measurement of the same case on the same device is newer; runs marked bad count on neither side.

    A resumed run began when the interrupted one did, and ended later. Of two of one moment the first stored stands:
    copies of an imported result never push out the original. What was skipped (an interrupted run did not come to it)
    was not tried, and never pushes out what was.
    """
    other, its_run = aliased(Measurement, name="newer"), aliased(Run, name="newer_run")
    bad = select(Annotation.run_id).where(Annotation.kind == "bad")
    ended, other_ended = (func.coalesce(run.finished_at, run.started_at) for run in (Run, its_run))
    later = or_(other_ended > ended, and_(other_ended == ended, other.id < Measurement.id))
    newer = or_(other.started_at > Measurement.started_at, and_(other.started_at == Measurement.started_at, later))
    same = and_(other.device_id == Measurement.device_id, other.case_id == Measurement.case_id)
    tried, skipped = other.status != "skipped", Measurement.status == "skipped"
    better = or_(and_(newer, or_(tried, skipped)), and_(tried, skipped))
    return and_(
        Measurement.run_id.not_in(bad),
        ~exists(
            select(other.id)
            .join(its_run, its_run.id == other.run_id)
            .where(same, better, other.run_id.not_in(bad))
            .correlate(Measurement, Run)
        ),
    )
