"""Measurements as they stand in their records, each with its device and run, for programs that read `--json`."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

from db.answers import Filter, ResultRow
from harness.judgement.trust import trust_of_row

if TYPE_CHECKING:
    from sqlalchemy import Engine


# What a measurement has now and one of an older record may not say.
_ADDED: dict[str, Any] = dict.fromkeys(("throughput", "sampling", "rate_curve", "over_time", "fidelity"))


def measurement_documents(engine: Engine, wanted: Filter) -> list[dict[str, Any]]:
    """Each measurement that fits the filter, with the fields of its record, and `device` and `run` beside them.

    `status` and `reason` are the judged ones: a measurement that breaks the validity rule reads invalid. `trust` is made
    at reading: its grade and the doubts behind it. Fields that were added after a record was written have their defaults.
    """
    from db.queries import results

    rows = results(engine, wanted)
    records = _records(engine, sorted({row.run_id for row in rows}))
    documents = []
    for row in rows:
        record, received = records[row.run_id]
        measurement = next(item for item in record["measurements"] if item["measurement_id"] == row.measurement_id)
        device = {**record["device"], "name": row.device}
        documents.append(
            {
                **_ADDED,
                **measurement,
                "status": row.status,
                "reason": row.reason,
                "workload_family": row.family,
                "trust": trust_of_row(row).as_document(),
                "device": device,
                "run": _run(row, record, received),
            }
        )
    return documents


def _run(row: ResultRow, record: dict[str, Any], received: dict[str, Any]) -> dict[str, Any]:
    names = ("run_id", "status", "suite", "trigger", "started_at", "finished_at", "source", "agent_version")
    return {
        **{name: record[name] for name in names},
        **{name: record.get(name) for name in ("self_cost", "preparation")},
        "environment_digest": row.environment_digest,
        "ingest_sequence": row.ingest_sequence,
        "annotations": list(row.annotations),
        **received,
    }


def _records(engine: Engine, run_ids: list[str]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """The records as received, by run id, and when they came with which digest."""
    from sqlalchemy import select

    from db.schema import Run
    from db.transactions import reading

    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    with reading(engine) as connection:
        for start in range(0, len(run_ids), 200):
            statement = select(Run.run_id, Run.record, Run.record_sha256, Run.received_at).where(
                Run.run_id.in_(run_ids[start : start + 200])
            )
            for row in connection.execute(statement):
                received = {"record_sha256": row.record_sha256, "received_at": row.received_at.isoformat()}
                found[row.run_id] = (json.loads(zlib.decompress(row.record)), received)
    return found
