"""Reading and writing in one transaction, with database errors turned into sentences on the way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, event, text, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from db.failures import friendly
from db.schema import StoreState
from harness.errors import StoreError

BUSY_TIMEOUT_MS = 15_000
_WRITE_LOCK = 0x57454947  # "WEIG": the advisory lock under which stores are written and migrated


def prepare_sqlite(engine: Engine) -> None:
    """Let SQLAlchemy, not the driver, begin transactions on SQLite, so that a writer takes its lock at the start.

    A transaction that begins as a reader and then writes can fail at once with "database is locked", whatever the busy
    timeout is; BEGIN IMMEDIATE waits instead.
    """

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        writes = connection.get_execution_options().get("weighbridge_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN DEFERRED")


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """One consistent view of the store for several queries. Raises StoreError."""
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection
    except (SQLAlchemyError, OSError) as error:
        raise friendly(error, engine.url) from error


@contextmanager
def writing_connection(engine: Engine) -> Iterator[Connection]:
    """One writing transaction at a time per store: commits or leaves nothing. Raises StoreError.

    Writers queue on one lock (SQLite's own; an advisory lock on PostgreSQL). A run is stored in milliseconds and
    measured in minutes, and the queue makes natural keys race-free and the ingest sequence free of overtaking.
    """
    try:
        with engine.connect().execution_options(weighbridge_writes=True) as connection, connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITE_LOCK})
            yield connection
    except (SQLAlchemyError, OSError) as error:
        raise friendly(error, engine.url) from error
    except OverflowError as error:
        raise StoreError("A whole number in the record is too large for the database; nothing was stored.") from error


@contextmanager
def writing(engine: Engine) -> Iterator[Session]:
    """`writing_connection` with an ORM session on it. Flushed before the commit."""
    with writing_connection(engine) as connection, Session(bind=connection, expire_on_commit=False) as session:
        yield session
        session.flush()


def next_version(session: Session) -> int:
    """Count one change of the store and return the new data version. Only inside `writing`."""
    statement = update(StoreState).values(data_version=StoreState.data_version + 1).returning(StoreState.data_version)
    return int(session.execute(statement).scalar_one())
