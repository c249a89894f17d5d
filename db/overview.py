"""What a store holds, in numbers: for `weigh db info`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from db.store import Store


@dataclass(frozen=True)
class Overview:
    """A store at a glance. `bytes` is the size of the file or of the database, as its engine tells."""

    place: str
    engine: str
    migration: str | None
    newest_migration: str
    data_version: int
    bytes: int
    rows: dict[str, int]
    newest_run: datetime | None
    last_received: datetime | None


def overview(store: Store) -> Overview:
    """Count every table and say how large and how recent the store is."""
    from sqlalchemy import func, select, text

    from db.schema import Base, Run, StoreState
    from db.store import versions
    from db.transactions import reading

    migration, newest_migration = versions(store)
    engine = store.engine
    with reading(engine) as connection:
        rows = {
            name: int(connection.execute(select(func.count()).select_from(table)).scalar_one())
            for name, table in sorted(Base.metadata.tables.items())
            if name != StoreState.__tablename__
        }
        newest, received = connection.execute(select(func.max(Run.started_at), func.max(Run.received_at))).one()
        version = int(connection.execute(select(StoreState.data_version)).scalar_one())
        if engine.dialect.name == "postgresql":
            server = f"PostgreSQL {connection.execute(text('SHOW server_version')).scalar_one()}"
            size = int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
        else:
            server = f"SQLite {connection.execute(text('SELECT sqlite_version()')).scalar_one()}"
            file = Path(str(engine.url.database))
            size = sum(part.stat().st_size for part in (file, file.with_name(file.name + "-wal")) if part.exists())
    return Overview(store.place, server, migration, newest_migration, version, size, rows, newest, received)
