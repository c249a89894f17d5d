"""Storing imported runs: those that the store has already are left alone, whatever version of the importer made them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.documents import Bundle, write_run
from harness.records import Run

if TYPE_CHECKING:
    from sqlalchemy import Engine


@dataclass(frozen=True)
class Imported:
    """How many runs came in, and how many were there before."""

    new: int
    known: int


def store_runs(engine: Engine, runs: Iterable[Run], step: Callable[[], None] = lambda: None) -> Imported:
    """Store each run in its own transaction. An imported run's id comes from its source files, so its id is its content.

    Raises StoreError; what was stored before it stays, and the next import goes on from there.
    """
    from db.ingest import ingest

    listed = list(runs)
    there = _known(engine, [run.run_id for run in listed])
    new = known = 0
    for run in listed:
        if run.run_id in there or not ingest(engine, Bundle(write_run(run))).new:
            known += 1
        else:
            new += 1
        step()
    return Imported(new, known)


def _known(engine: Engine, run_ids: list[str]) -> set[str]:
    from sqlalchemy import select

    from db.schema import Run as RunRow
    from db.transactions import reading

    found: set[str] = set()
    with reading(engine) as connection:
        for start in range(0, len(run_ids), 500):
            part = run_ids[start : start + 500]
            found |= set(connection.scalars(select(RunRow.run_id).where(RunRow.run_id.in_(part))))
    return found
