"""A device's newest run beside what it measured before: what the regression rule is applied to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness.judgement import flags
from harness.judgement.regression import Point
from harness.judgement.spread import Spread, spread_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


LOOKED_BACK = 5  # earlier measurements of a case among which an undisturbed one is looked for
_ASKED = (
    "workload",
    "backend",
    "target",
    "scenario",
    "requested_precision",
    "artifact_precision",
    "batch",
    "streams",
    "threads",
)


@dataclass(frozen=True)
class Pair:
    """One case of the newest run, and the last earlier measurement of it that was ok and undisturbed, else ok."""

    case_key: str
    label: str
    newest: Point
    previous: Point | None


@dataclass(frozen=True)
class DeviceHistory:
    """The newest run of one device, case by case."""

    device: str
    device_uuid: str
    run_id: str
    started_at: datetime
    earlier_runs: int
    pairs: tuple[Pair, ...]


def histories(engine: Engine, device: str | None = None) -> list[DeviceHistory]:
    """The newest measured run of each device (or of the one with this name or UUID) and what came before it.

    Imported runs and runs annotated as bad do not count. Raises UsageError for a device that the store does not know, or a
    name that several bear.
    """
    from db.transactions import reading

    with reading(engine) as connection:
        found = [_history(connection, row) for row in _devices(connection, device)]
    return [history for history in found if history is not None]


def _devices(connection: Connection, wanted: str | None) -> list[Any]:
    from sqlalchemy import or_, select

    from db.schema import Device, Run

    measured = select(Run.device_id).where(Run.source_kind == "measured")
    statement = (
        select(Device.id, Device.name, Device.uuid).where(Device.id.in_(measured)).order_by(Device.name, Device.id)
    )
    if wanted is None:
        return list(connection.execute(statement))
    rows = list(connection.execute(statement.where(or_(Device.name == wanted, Device.uuid == wanted))))
    if not rows:
        raise UsageError(
            f"The store has no measurements by a device {wanted!r}.",
            "`weigh results --source measured` shows its devices.",
        )
    if len(rows) > 1:
        raise UsageError(
            f"{len(rows)} devices are named {wanted!r}.", f"Name one by UUID: {', '.join(row.uuid for row in rows)}."
        )
    return rows


def _history(connection: Connection, device: Any) -> DeviceHistory | None:
    from sqlalchemy import func, select

    from db.schema import Annotation, Run

    good = select(Run.id, Run.run_id, Run.started_at).where(
        Run.device_id == device.id,
        Run.source_kind == "measured",
        Run.id.not_in(select(Annotation.run_id).where(Annotation.kind == "bad")),
    )
    newest = connection.execute(good.order_by(Run.started_at.desc(), Run.id.desc()).limit(1)).one_or_none()
    if newest is None:
        return None
    runs = int(connection.execute(select(func.count()).select_from(good.subquery())).scalar_one())
    now = connection.execute(_points(good).where(_run_row() == newest.id).order_by(_position())).mappings().all()
    before = _settled(connection.execute(_last_ok(good, newest)).mappings())
    if any(_without_model(row) for row in now):
        every = _settled(connection.execute(_last_ok(good, newest, only_its_cases=False)).mappings())
        asked = {_asked(row): row for row in every.values()}
        before |= {row["case_id"]: asked[_asked(row)] for row in now if _without_model(row) and _asked(row) in asked}
    pairs = tuple(
        Pair(
            row["case_key"],
            f"{row['workload']} {row['backend']} {row['target']} {row['scenario']} {row['requested_precision']}",
            _point(row),
            _point(before[row["case_id"]]) if row["case_id"] in before else None,
        )
        for row in now
    )
    return DeviceHistory(device.name, device.uuid, newest.run_id, newest.started_at, runs - 1, pairs)


def _settled(rows: Iterable[Any]) -> dict[int, Any]:
    """Of each case, the latest of these ok measurements that nothing disturbed, else the latest. Rows come oldest first."""
    chosen: dict[int, Any] = {}
    for row in rows:
        held = chosen.get(row["case_id"])
        if held is None or _undisturbed(row) or not _undisturbed(held):
            chosen[row["case_id"]] = row
    return dict(sorted(chosen.items(), key=lambda item: (item[1]["started_at"], item[1]["id"])))


def _undisturbed(row: Any) -> bool:
    return not any(flag["code"] in flags.UNSETTLED for flag in row["flags"])


def _without_model(row: Any) -> bool:
    """Whether it ended before its model was looked at, so that its case names no weights and is never that of an ok one."""
    return row["status"] in ("unsupported", "failed") and row["source_weights"] is None


def _asked(row: Any) -> tuple[Any, ...]:
    """What a case asks for besides model and data: by this a target that stopped working is found again."""
    return tuple(row[name] for name in _ASKED)


def _run_row() -> Any:
    from db.schema import Measurement

    return Measurement.run_id


def _position() -> Any:
    from db.schema import Measurement

    return Measurement.position


def _points(good: Any) -> Any:
    """The rule's columns of every measurement in the runs `good`."""
    from sqlalchemy import select

    from db.schema import Case, Measurement, Workload

    runs = good.subquery("good_runs")
    return (
        select(
            Measurement.id,
            Measurement.case_id,
            Measurement.measurement_id,
            Measurement.started_at,
            runs.c.run_id,
            Measurement.status,
            Measurement.reason,
            Measurement.p50_ms,
            Measurement.throughput_per_s,
            Measurement.accuracy_value,
            Measurement.quantiles,
            Measurement.throughput,
            Measurement.flags,
            Measurement.runtime,
            Measurement.runtime_version,
            Case.key.label("case_key"),
            Case.source_weights,
            *(getattr(Case, name) for name in _ASKED[1:]),
            Workload.name.label("workload"),
        )
        .join(runs, runs.c.id == Measurement.run_id)
        .join(Case, Case.id == Measurement.case_id)
        .join(Workload, Workload.id == Case.workload_id)
    )


def _last_ok(good: Any, newest: Any, only_its_cases: bool = True) -> Any:
    """Of each case of the newest run, the last few ok measurements in earlier runs, by a window function over one index.

    A resumed run began when its interrupted part did, so that this is no earlier one. `only_its_cases` False: of every
    case of the device, the oldest first.
    """
    from sqlalchemy import func, select

    from db.schema import Measurement

    cases = select(Measurement.case_id).where(Measurement.run_id == newest.id)
    rank = func.row_number().over(
        partition_by=Measurement.case_id, order_by=(Measurement.started_at.desc(), Measurement.id.desc())
    )
    ranked = (
        _points(good)
        .add_columns(rank.label("rank"))
        .where(Measurement.started_at < newest.started_at, Measurement.status == "ok")
    )
    if only_its_cases:
        ranked = ranked.where(Measurement.case_id.in_(cases))
    last = ranked.subquery("ranked")
    return select(last).where(last.c.rank <= LOOKED_BACK).order_by(last.c.started_at, last.c.id)


def _point(row: Any) -> Point:
    runtime = " ".join(part for part in (row["runtime"], row["runtime_version"]) if part) or None
    throughput = spread_of(row["throughput"], row["throughput_per_s"])
    p50_ms = row["p50_ms"]
    if row["scenario"] == "server":
        # A server's latency is that of its highest rate within the limit: where that rises, so may the latency.
        p50_ms = None
        throughput = _between_rates(row["throughput"] or {}, throughput)
    return Point(
        measurement_id=row["measurement_id"],
        run_id=row["run_id"],
        status=row["status"],
        reason=row["reason"],
        p50_ms=p50_ms,
        throughput_per_s=row["throughput_per_s"],
        accuracy=row["accuracy_value"],
        runtime=runtime,
        p50=spread_of((row["quantiles"] or {}).get("p50"), p50_ms),
        throughput=throughput,
        flags=tuple(flag["code"] for flag in row["flags"]),
    )


def _between_rates(found: Mapping[str, Any], otherwise: Spread) -> Spread:
    """The limit lies between the highest rate that meets it and the lowest that misses it, which are 12 % apart at least."""
    if found.get("value") is None or found.get("low") is None:
        return otherwise
    high = inf if found.get("high") is None else float(found["high"])
    return Spread(float(found["value"]), float(found["low"]), high, "range")
