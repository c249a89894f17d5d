"""What people write about a run. Nothing is deleted; a run marked bad stays visible and counts no more."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.errors import StoreError, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Engine

MAX_TEXT = 2000


def annotate(engine: Engine, run_id: str, text: str, author: str, bad: bool = False) -> None:
    """Write `text` beside a run, dated and signed. Raises StoreError when there is no such run, UsageError for no text."""
    from sqlalchemy import select

    from db.schema import Annotation, Run
    from db.transactions import next_version, writing

    text = " ".join(text.split())
    if not text or len(text) > MAX_TEXT or "\0" in text:
        raise UsageError(f"An annotation is a text of 1 to {MAX_TEXT} characters.")
    with writing(engine) as session:
        row = session.execute(select(Run.id).where(Run.run_id == run_id)).scalar_one_or_none()
        if row is None:
            raise StoreError(f"The store holds no run {run_id}.", "`weigh results` lists what it holds.")
        session.add(
            Annotation(
                run_id=row,
                kind="bad" if bad else "note",
                text=text,
                author=author,
                created_at=datetime.now(UTC),
                data_version=next_version(session),
            )
        )
