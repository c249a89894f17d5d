"""Where the model files of a run come from: source, recipe and tools of each, for whoever asks about a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Engine

_COLUMNS = (
    "name",
    "format",
    "precision",
    "sha256",
    "bytes",
    "source",
    "source_sha256",
    "recipe",
    "recipe_sha256",
    "tools",
    "licence",
    "calibration",
)


def lineage(engine: Engine, run_id: str) -> dict[str, dict[str, Any]]:
    """The artifact of each measurement of a run, by measurement id; measurements without one are left out."""
    from sqlalchemy import select

    from db.schema import Artifact, Case, Measurement, Run
    from db.transactions import reading

    columns = [getattr(Artifact, name) for name in _COLUMNS]
    statement = (
        select(Measurement.measurement_id, Case.source_weights, *columns)
        .join(Artifact, Artifact.id == Measurement.artifact_id)
        .join(Run, Run.id == Measurement.run_id)
        .join(Case, Case.id == Measurement.case_id)
        .where(Run.run_id == run_id)
    )
    with reading(engine) as connection:
        return {
            row["measurement_id"]: {name: row[name] for name in (*_COLUMNS, "source_weights")}
            for row in connection.execute(statement).mappings()
        }
