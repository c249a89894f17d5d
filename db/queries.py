"""Everything that pages and commands read: flat rows of measurements, runs, and what there is to filter by.

Each function reads one consistent state of the store, aggregates in SQL, and costs a fixed number of queries, whatever the
number of rows. Rows are plain data; no ORM object leaves this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from db.answers import Facets, Filter, ResultRow, RunDetail, RunRow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from sqlalchemy import Connection, Engine

MOST_ROWS = 1_000_000  # of one run
__all__ = [
    "Facets",
    "Filter",
    "ResultRow",
    "RunDetail",
    "RunRow",
    "count",
    "data_version",
    "environments",
    "facets",
    "identified",
    "results",
    "run_detail",
    "run_list",
    "trial_samples",
]


def results(engine: Engine, wanted: Filter | None = None) -> list[ResultRow]:
    """Measurements that fit the filter, newest run first, in the order of their record. Raises StoreError."""
    from db.transactions import reading

    with reading(engine) as connection:
        return _rows(connection, wanted or Filter())


def count(engine: Engine, wanted: Filter | None = None) -> int:
    """How many measurements fit the filter; its limit and offset do not matter."""
    from sqlalchemy import func, select

    from db.selection import joined, restricted
    from db.transactions import reading

    statement = restricted(joined(select(func.count())), wanted or Filter())
    with reading(engine) as connection:
        return int(connection.execute(statement).scalar_one())


def facets(engine: Engine) -> Facets:
    """The values that occur, for the choices of a filter, each sorted."""
    from sqlalchemy import select

    from db.schema import Case, ComputeUnit, Device, HardwareModel, Measurement, Run, Workload
    from db.transactions import reading

    units = select(Measurement.compute_unit_id).distinct()
    with reading(engine) as connection:

        def values(statement: Any) -> tuple[str, ...]:
            return tuple(sorted({str(value) for value in connection.scalars(statement)}))

        bought = select(HardwareModel.name).join(ComputeUnit, ComputeUnit.hardware_model_id == HardwareModel.id)
        return Facets(
            families=values(select(Workload.family).distinct()),
            workloads=values(select(Workload.name)),
            hardware=values(bought.where(ComputeUnit.id.in_(units)).distinct()),
            devices=values(select(Device.name).distinct()),
            backends=values(select(Case.backend).distinct()),
            scenarios=values(select(Case.scenario).distinct()),
            statuses=values(select(Measurement.status).distinct()),
            sources=values(select(Run.source_name).distinct()),
        )


def run_list(engine: Engine, limit: int = 100) -> list[RunRow]:
    """Runs, newest first, with how many of their measurements are ok."""
    from db.transactions import reading

    with reading(engine) as connection:
        return _runs(connection, limit=limit)


def run_detail(engine: Engine, run_id: str) -> RunDetail:
    """Everything about one run. Raises StoreError when the store has no such run."""
    from sqlalchemy import select

    from db.schema import ComputeUnit, Device, Environment, HardwareModel, Run, RunHarness
    from db.transactions import reading
    from harness.errors import StoreError

    with reading(engine) as connection:
        statement = (
            select(
                Run.id,
                Run.record_sha256,
                Run.received_at,
                Run.agent_version,
                Run.conditions,
                Run.source_licence,
                Run.source_location,
                RunHarness.preparation,
                Run.device_id,
                Environment.digest,
                Environment.machine,
                Environment.configuration,
                Device.uuid,
                Device.form,
                HardwareModel.vendor,
                HardwareModel.name.label("hardware_model"),
            )
            .join(Environment, Environment.id == Run.environment_id)
            .join(Device, Device.id == Run.device_id)
            .join(HardwareModel, HardwareModel.id == Device.hardware_model_id)
            .outerjoin(RunHarness, RunHarness.run_id == Run.id)
            .where(Run.run_id == run_id)
        )
        found = connection.execute(statement).one_or_none()
        if found is None:
            raise StoreError(f"The store holds no run {run_id}.", "`weigh results` lists what it holds.")
        units = connection.execute(
            select(
                ComputeUnit.name, HardwareModel.kind, HardwareModel.name, ComputeUnit.count, ComputeUnit.memory_bytes
            )
            .join(HardwareModel, HardwareModel.id == ComputeUnit.hardware_model_id)
            .where(ComputeUnit.device_id == found.device_id)
            .order_by(ComputeUnit.id)
        )
        run = _runs(connection, limit=1, row_id=found.id)[0]
        return RunDetail(
            run=run,
            environment={
                "digest": found.digest,
                "machine": found.machine,
                "configuration": found.configuration,
                "conditions": found.conditions,
            },
            device={
                "name": run.device,
                "uuid": found.uuid,
                "hardware_model": found.hardware_model,
                "vendor": found.vendor or None,
                "form": found.form,
                "compute_units": [
                    dict(zip(("name", "kind", "hardware_model", "count", "memory_bytes"), unit, strict=True))
                    for unit in units
                ],
            },
            rows=_rows(connection, Filter(run_ids=(run_id,), limit=MOST_ROWS)),
            trials=_trials(connection, found.id),
            record_sha256=found.record_sha256,
            received_at=found.received_at,
            annotations=_annotations(connection, [found.id]).get(found.id, ()),
            agent_version=found.agent_version,
            licence=found.source_licence,
            preparation=found.preparation,
            location=found.source_location,
        )


def data_version(engine: Engine) -> int:
    """A number that grows with every run stored and every annotation."""
    from sqlalchemy import select

    from db.schema import StoreState
    from db.transactions import reading

    with reading(engine) as connection:
        return int(connection.execute(select(StoreState.data_version)).scalar_one())


def identified(engine: Engine, beginning: str) -> list[Filter]:
    """Filters for the runs and measurements whose id begins so, runs first; at most a few, several mean it is ambiguous."""
    from sqlalchemy import select

    from db.schema import Measurement, Run
    from db.transactions import reading

    with reading(engine) as connection:

        def beginning_so(column: Any) -> list[str]:
            statement = select(column).where(column.startswith(beginning, autoescape=True)).order_by(column).limit(3)
            return list(connection.scalars(statement))

        runs, measurements = beginning_so(Run.run_id), beginning_so(Measurement.measurement_id)
    return [
        *(Filter(run_ids=(run,), limit=MOST_ROWS) for run in runs),
        *(Filter(measurement_ids=(measurement,)) for measurement in measurements),
    ]


def environments(engine: Engine, digests: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Machine and configuration of each environment, by its digest; what the store does not hold is left out."""
    from sqlalchemy import select

    from db.schema import Environment
    from db.transactions import reading

    wanted = sorted(set(digests))
    found: dict[str, dict[str, Any]] = {}
    with reading(engine) as connection:
        for start in range(0, len(wanted), 500):
            statement = select(Environment.digest, Environment.machine, Environment.configuration).where(
                Environment.digest.in_(wanted[start : start + 500])
            )
            for row in connection.execute(statement):
                found[row.digest] = {"machine": row.machine, "configuration": row.configuration}
    return found


def trial_samples(engine: Engine, measurement_id: str, what: str = "latency_ns") -> npt.NDArray[np.int64]:
    """Raw samples of all timing trials of a measurement, in order, in nanoseconds; empty when none are kept.

    Latencies are those of which the figures are made: what a trial had not settled for is left out in front, as the record
    says, so that percentiles of them can be compared with the record's. The blobs keep all of them.
    """
    import zlib

    import numpy as np
    from sqlalchemy import select

    from db.schema import Measurement, Sample, Trial, TrialSample
    from db.transactions import reading

    statement = (
        select(Sample.data, Trial.discarded_unsteady)
        .join(TrialSample, TrialSample.sha256 == Sample.sha256)
        .join(Trial, Trial.id == TrialSample.trial_id)
        .join(Measurement, Measurement.id == Trial.measurement_id)
        .where(Measurement.measurement_id == measurement_id, TrialSample.what == what)
        .where(Trial.kind == "timing", Trial.status == "ok")
        .order_by(Trial.position, TrialSample.position)
    )
    with reading(engine) as connection:
        parts = [
            np.frombuffer(zlib.decompress(data), dtype="<i8")[(skip or 0) if what == "latency_ns" else 0 :]
            for data, skip in connection.execute(statement)
        ]
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, dtype=np.int64)


def _rows(connection: Connection, wanted: Filter) -> list[ResultRow]:
    from db.selection import DERIVED, result_columns

    found = connection.execute(result_columns(wanted)).mappings().all()
    notes = _annotations(connection, sorted({row["run_row"] for row in found}))
    rows = []
    for row in found:
        fields = {name: value for name, value in row.items() if name not in DERIVED}
        fields["flags"] = tuple((str(flag["code"]), str(flag["message"])) for flag in row["flags"])
        fields["dataset"] = (
            None if row["dataset_name"] is None else _dataset(row["dataset_name"], row["dataset_digest"])
        )
        fields["batch"] = row["batch"] or None
        fields["annotations"] = notes.get(row["run_row"], ())
        rows.append(ResultRow(**fields))
    return rows


def _dataset(name: str, digest: str) -> str:
    return f"{name}@{digest}" if digest else name


def _annotations(connection: Connection, runs: list[int]) -> dict[int, tuple[str, ...]]:
    """Each run's annotations as sentences with author and day, oldest first."""
    from sqlalchemy import select

    from db.schema import Annotation

    texts: dict[int, list[str]] = {}
    for start in range(0, len(runs), 500):
        statement = select(Annotation).where(Annotation.run_id.in_(runs[start : start + 500])).order_by(Annotation.id)
        for note in connection.execute(statement).mappings():
            mark = "bad: " if note["kind"] == "bad" else ""
            text = f"{mark}{note['text']} ({note['author']}, {note['created_at']:%Y-%m-%d})"
            texts.setdefault(note["run_id"], []).append(text)
    return {run: tuple(lines) for run, lines in texts.items()}


def _runs(connection: Connection, limit: int, row_id: int | None = None) -> list[RunRow]:
    from sqlalchemy import case, func, select

    from db.schema import Device, Measurement, Run, Suite

    names = ("id", "run_id", "status", "device_id", "suite_id", "started_at", "finished_at", "trigger")
    columns = [getattr(Run, name) for name in (*names, "source_kind", "source_name")]  # all but the record's bytes
    chosen = select(*columns).order_by(Run.started_at.desc(), Run.id.desc()).limit(limit)
    if row_id is not None:
        chosen = chosen.where(Run.id == row_id)
    newest = chosen.subquery()
    statement = (
        select(
            newest.c.run_id,
            newest.c.status,
            Device.name.label("device"),
            Device.uuid.label("device_uuid"),
            Suite.name.label("suite"),
            newest.c.started_at,
            newest.c.finished_at,
            newest.c.trigger,
            newest.c.source_kind,
            newest.c.source_name,
            func.count(Measurement.id).label("measurements"),
            func.coalesce(func.sum(case((Measurement.status == "ok", 1), else_=0)), 0).label("ok"),
        )
        .join(Device, Device.id == newest.c.device_id)
        .join(Suite, Suite.id == newest.c.suite_id)
        .outerjoin(Measurement, Measurement.run_id == newest.c.id)
        .group_by(*newest.c, Device.name, Device.uuid, Suite.name)
        .order_by(newest.c.started_at.desc(), newest.c.id.desc())
    )
    return [RunRow(**{**row, "ok": int(row["ok"])}) for row in connection.execute(statement).mappings()]


def _trials(connection: Connection, run_row: int) -> list[dict[str, Any]]:
    """All trials of a run with the names of their blobs, in two queries."""
    from sqlalchemy import select

    from db.schema import Measurement, Trial, TrialSample

    blobs: dict[int, list[dict[str, Any]]] = {}
    of_run = (
        select(Trial.id).join(Measurement, Measurement.id == Trial.measurement_id).where(Measurement.run_id == run_row)
    )
    statement = select(TrialSample).where(TrialSample.trial_id.in_(of_run))
    for blob in connection.execute(statement.order_by(TrialSample.trial_id, TrialSample.position)).mappings():
        blobs.setdefault(blob["trial_id"], []).append({name: blob[name] for name in ("what", "sha256", "count")})
    columns = [getattr(Trial, name) for name in _TRIAL_COLUMNS]
    trials = (
        select(Trial.id, Measurement.measurement_id, *columns)
        .join(Measurement, Measurement.id == Trial.measurement_id)
        .where(Measurement.run_id == run_row)
        .order_by(Measurement.position, Trial.position)
    )
    return [
        {**{name: row[name] for name in ("measurement_id", *_TRIAL_COLUMNS)}, "samples": blobs.get(row["id"], [])}
        for row in connection.execute(trials).mappings()
    ]


_TRIAL_COLUMNS = (
    "trial_id",
    "kind",
    "status",
    "reason",
    "window_start_ns",
    "window_end_ns",
    "discarded_warmup",
    "throughput_per_s",
    "last_words",
    "discarded_unsteady",
    "unsteady_reason",
    "conditions",
)
