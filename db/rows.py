"""A run record taken apart into rows. Only used inside the one writing transaction of an ingest."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from db import schema
from db.schema import Base
from db.transactions import next_version
from harness.documents import Bundle
from harness.errors import RecordError, StoreError
from harness.judgement.validity import judged
from harness.records import Artifact, Case, ComputeUnit, Device, Latency, Measurement, Run, Trial

Row = TypeVar("Row", bound=Base)
QUANTILES = ("p50", "p90", "p95", "p99", "p99_9")


class RowWriter:
    """Finds or makes the rows of one run. Natural keys are safe to look up first, because writers queue on one lock."""

    def __init__(self, session: Session, received_at: datetime) -> None:
        self.session = session
        self.received_at = received_at
        self.found: dict[tuple[object, ...], Base] = {}  # natural keys seen in this run

    def store_blobs(self, named: list[str], blobs: dict[str, bytes]) -> None:
        """Keep blobs that are new; refuse a record whose blobs are neither here nor in the store."""
        digests = sorted(named)
        known: set[str] = set()
        for start in range(0, len(digests), 500):  # below every database's limit of bound parameters
            part = digests[start : start + 500]
            known |= set(self.session.scalars(select(schema.Sample.sha256).where(schema.Sample.sha256.in_(part))))
        missing = [digest for digest in digests if digest not in known and digest not in blobs]
        if missing:
            raise RecordError(
                f"The record names {len(missing)} blobs that did not come with it (first: {missing[0]}).",
                "Send the run again with all its blobs.",
            )
        rows = [
            {"sha256": digest, "bytes": len(blobs[digest]), "data": blobs[digest]}
            for digest in digests
            if digest not in known
        ]
        if rows:
            self.session.execute(insert(schema.Sample), rows)

    def store_run(
        self, run: Run, bundle: Bundle, started: datetime, finished: datetime | None, packed: bytes
    ) -> schema.Run:
        """Make the run's row and everything below it."""
        self._refuse_known_measurements(run)
        device = self._device(run.device, started)
        units = {unit.name: self._compute_unit(device, unit) for unit in run.device.compute_units}
        environment = self._once(
            schema.Environment,
            {"digest": run.environment.digest},
            {"machine": run.environment.machine, "configuration": run.environment.configuration},
        )
        suite = self._once(schema.Suite, asdict(run.suite), {})
        row = schema.Run(
            run_id=run.run_id,
            ingest_sequence=next_version(self.session),
            device_id=device.id,
            environment_id=environment.id,
            suite_id=suite.id,
            status=run.status,
            trigger=run.trigger,
            started_at=started,
            finished_at=finished,
            received_at=self.received_at,
            agent_version=run.agent_version,
            source_kind=run.source.kind,
            source_name=run.source.name,
            source_version=run.source.version,
            source_licence=run.source.licence,
            source_attribution=run.source.attribution,
            source_url=run.source.url,
            source_location=run.source.location,
            conditions=run.environment.conditions,
            record_sha256=bundle.sha256,
            record_bytes=len(bundle.record),
            record=packed,
        )
        self._add(row)
        if run.self_cost is not None or run.preparation is not None:
            cost = asdict(run.self_cost) if run.self_cost is not None else None
            prepared = asdict(run.preparation) if run.preparation is not None else None
            self._add(schema.RunHarness(run_id=row.id, self_cost=cost, preparation=prepared))
        for position, measurement in enumerate(run.measurements):
            self._measurement(run, row, measurement, position, units)
        return row

    def _refuse_known_measurements(self, run: Run) -> None:
        identifiers = [measurement.measurement_id for measurement in run.measurements]
        for start in range(0, len(identifiers), 500):
            part = identifiers[start : start + 500]
            table = schema.Measurement
            known = self.session.scalars(select(table.measurement_id).where(table.measurement_id.in_(part))).first()
            if known is not None:
                raise StoreError(
                    f"The measurement id {known} belongs to another run in this store; nothing was stored."
                )

    def _device(self, device: Device, started: datetime) -> schema.Device:
        """The machine by UUID. A newer run may rename it, or say that its board was replaced."""
        model = self._hardware_model(device.vendor, device.hardware_model, "machine")
        row = self._once(
            schema.Device,
            {"uuid": device.uuid},
            {"name": device.name, "hardware_model_id": model.id, "form": device.form, "last_started_at": started},
        )
        if started > row.last_started_at:
            row.name, row.hardware_model_id, row.form, row.last_started_at = device.name, model.id, device.form, started
        return row

    def _compute_unit(self, device: schema.Device, unit: ComputeUnit) -> schema.ComputeUnit:
        model = self._hardware_model(unit.vendor, unit.hardware_model, unit.kind)
        key = {"device_id": device.id, "name": unit.name, "hardware_model_id": model.id, "count": unit.count}
        return self._once(schema.ComputeUnit, key, {"memory_bytes": unit.memory_bytes})

    def _hardware_model(self, vendor: str | None, name: str, kind: str) -> schema.HardwareModel:
        return self._once(schema.HardwareModel, {"vendor": vendor or "", "name": name, "kind": kind}, {})

    def _measurement(
        self,
        run: Run,
        row: schema.Run,
        measurement: Measurement,
        position: int,
        units: dict[str, schema.ComputeUnit],
    ) -> None:
        case, effective = measurement.case, measurement.effective
        status, reason = judged(measurement, run.source)
        unit_name = (effective.compute_unit if effective else None) or case.compute_unit
        unit = units.get(unit_name) if unit_name else None
        artifact = self._artifact(measurement.artifact) if measurement.artifact else None
        energy, accuracy, memory = measurement.energy, measurement.accuracy, measurement.memory_mb
        stored = schema.Measurement(
            measurement_id=measurement.measurement_id,
            run_id=row.id,
            device_id=row.device_id,
            started_at=row.started_at,
            position=position,
            case_id=self._case(case, measurement).id,
            artifact_id=artifact.id if artifact else None,
            compute_unit_id=unit.id if unit else None,
            status=status,
            reason=reason,
            effective_target=effective.target if effective else None,
            effective_precision=effective.precision if effective else None,
            effective_threads=effective.threads if effective else None,
            effective_streams=effective.streams if effective else None,
            runtime=effective.runtime if effective else None,
            runtime_version=effective.runtime_version if effective else None,
            effective=asdict(effective) if effective else None,
            **_latency_columns(measurement.latency_ms),
            throughput_per_s=measurement.throughput_per_s,
            throughput=asdict(measurement.throughput) if measurement.throughput else None,
            official_metric=measurement.official.metric if measurement.official else None,
            official_value=measurement.official.value if measurement.official else None,
            official_unit=measurement.official.unit if measurement.official else None,
            energy_j=energy.per_inference_j if energy else None,
            energy_net_j=energy.net_per_inference_j if energy else None,
            power_w=energy.mean_w if energy else None,
            energy_scope=energy.scope if energy else None,
            energy_quality=energy.quality if energy else None,
            energy_reason=energy.reason if energy else None,
            energy=asdict(energy) if energy else None,
            accuracy_metric=accuracy.metric if accuracy else None,
            accuracy_value=accuracy.value if accuracy else None,
            accuracy_reason=accuracy.reason if accuracy else None,
            accuracy_samples=accuracy.samples if accuracy else None,
            accuracy_note=accuracy.note if accuracy else None,
            accuracy=asdict(accuracy) if accuracy else None,
            peak_rss_mb=memory.peak_rss if memory else None,
            device_memory_mb=memory.device if memory else None,
            stages_ms=asdict(measurement.stages_ms) if measurement.stages_ms else None,
            cold_start_ms=_cold_start(measurement),
            fidelity=asdict(measurement.fidelity) if measurement.fidelity else None,
            thermal=measurement.thermal,
            sampling=asdict(measurement.sampling) if measurement.sampling else None,
            rate_curve=asdict(measurement.rate_curve) if measurement.rate_curve else None,
            over_time=asdict(measurement.over_time) if measurement.over_time else None,
            flags=[asdict(flag) for flag in measurement.flags],
            trial_count=len(measurement.trials),
        )
        self._add(stored)
        for trial_position, trial in enumerate(measurement.trials):
            self._trial(stored.id, trial, trial_position)

    def _case(self, case: Case, measurement: Measurement) -> schema.Case:
        workload = self._workload(case.workload, measurement.workload_family, measurement.workload_title)
        dataset = None
        if case.dataset is not None:
            name, _, digest = case.dataset.partition("@")
            dataset = self._once(schema.Dataset, {"name": name, "digest": digest}, {})
        fields = asdict(case)
        del fields["workload"], fields["dataset"]
        fields |= {"workload_id": workload.id, "dataset_id": dataset.id if dataset else None}
        return self._once(schema.Case, {"key": measurement.case_key}, fields)

    def _workload(self, name: str, family: str | None, title: str | None) -> schema.Workload:
        row = self._once(schema.Workload, {"name": name}, {"family": family or name, "title": title})
        if family is not None:
            row.family = family
        if title is not None:
            row.title = title
        return row

    def _artifact(self, artifact: Artifact) -> schema.Artifact:
        fields = asdict(artifact)
        key = {name: fields.pop(name) for name in ("sha256", "format", "precision")}
        return self._once(schema.Artifact, key, fields)

    def _trial(self, measurement_row: int, trial: Trial, position: int) -> None:
        fields = asdict(trial)
        del fields["samples"]
        row = schema.Trial(measurement_id=measurement_row, position=position, **fields)
        self._add(row)
        self.session.add_all(
            schema.TrialSample(trial_id=row.id, position=place, what=blob.what, sha256=blob.sha256, count=blob.count)
            for place, blob in enumerate(trial.samples)
        )

    def _add(self, row: Base) -> None:
        self.session.add(row)
        self.session.flush()

    def _once(self, table: type[Row], key: dict[str, Any], rest: dict[str, Any]) -> Row:
        """The row with this natural key; made with `rest` when there is none."""
        seen = self.found.get((table, *key.values()))
        if isinstance(seen, table):
            return seen
        found = self.session.scalars(select(table).filter_by(**key)).one_or_none()
        if found is None:
            found = table(**key, **rest)
            self._add(found)
        self.found[(table, *key.values())] = found
        return found


def _latency_columns(latency: Latency | None) -> dict[str, Any]:
    if latency is None:
        return {}
    return {
        "latency_count": latency.count,
        "latency_mean_ms": latency.mean,
        "latency_min_ms": latency.min,
        "latency_max_ms": latency.max,
        "quantiles": {name: asdict(getattr(latency, name)) for name in QUANTILES},
        **{f"{name}_ms": getattr(latency, name).value for name in QUANTILES},
    }


def _cold_start(measurement: Measurement) -> dict[str, Any] | None:
    """As the record writes it: the part is named "import"."""
    if measurement.cold_start_ms is None:
        return None
    return {
        ("import" if name == "import_" else name): value for name, value in asdict(measurement.cold_start_ms).items()
    }
