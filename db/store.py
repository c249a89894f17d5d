"""Opening a store: the engine for its URL, its tables brought up to date, and the sink that runs are stored through."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.documents import Bundle, Receipt
from harness.errors import StoreError, UsageError

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL

MIGRATIONS = Path(__file__).parent / "migrations"
VERSION_TABLE = "weighbridge_version"


@dataclass(frozen=True)
class Store:
    """An open database whose tables fit this code."""

    engine: Engine
    place: str  # for people, without a password

    def close(self) -> None:
        """Give all connections back. Harmless twice."""
        self.engine.dispose()


class StoreSink:
    """A sink into a database: `db.ingest.ingest` on an open store."""

    def __init__(self, store: Store) -> None:
        self.opened = store

    def store(self, bundle: Bundle) -> Receipt:
        """Store a run in one transaction. Raises StoreError or RecordError; then nothing was stored."""
        from db.ingest import ingest

        return ingest(self.opened.engine, bundle)


def open_sink(url: str) -> StoreSink:
    """Open the store at `url` for runs to be stored in."""
    return StoreSink(open_store(url))


def open_store(url: str, create: bool = True) -> Store:
    """Open the database at `url` and bring its tables up to date.

    `url` is sqlite:///PATH or postgresql://USER@HOST/DATABASE. With `create` False, an SQLite file that does not exist is
    an error instead of a new file. Raises StoreError with the way out, UsageError for a URL that cannot be meant.
    """
    import sqlite3

    from sqlalchemy.exc import SQLAlchemyError

    from db.failures import friendly, place

    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        path = Path(str(parsed.database))
        # "file:...?uri=true" is SQLite's own syntax for open modes; the driver judges it.
        if not parsed.query.get("uri") and not path.exists():
            if not create:
                raise StoreError(f"There is no database at {path}.", "`weigh run` makes one; --store names another.")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"The folder {path.parent} cannot be made: {error.strerror}.") from error
    engine = _engine(parsed)
    try:
        _bring_up_to_date(engine)
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        engine.dispose()
        raise friendly(error, parsed) from error
    except StoreError:
        engine.dispose()
        raise
    return Store(engine, place(parsed))


def has_password(url: str) -> bool:
    """Whether a password stands in `url`. Raises UsageError for a URL that cannot be read."""
    from db.failures import password_of

    return password_of(_parse(url)) is not None


def versions(store: Store) -> tuple[str | None, str]:
    """The migration that the store is at, and the newest that this code knows."""
    from db.transactions import reading

    with reading(store.engine) as connection:
        return _current(connection), _head()


def _parse(url: str) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    way_out = "Use sqlite:///PATH or postgresql://USER@HOST/DATABASE."
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise UsageError("The store's URL cannot be read.", way_out) from error
    backend = parsed.drivername.split("+")[0]
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise UsageError("A store in memory would be gone at once.", way_out)
        if not parsed.query.get("uri"):
            parsed = parsed.set(database=str(Path(parsed.database).expanduser()))
        return parsed.set(drivername="sqlite+pysqlite")
    if backend in {"postgresql", "postgres"}:
        if "@" in (parsed.host or ""):
            # Not said which, because a part of the password would be printed.
            raise UsageError("The store's URL has an @ too many.", "Write an @ in a user or password as %40.")
        return parsed.set(drivername="postgresql+psycopg")
    if backend in {"http", "https"}:
        what = "A store at an http address can be written to only: by `weigh run --store` and `weigh push`."
        raise UsageError(what, "Run this command where the database is, or name the database itself.")
    raise UsageError(f"A store of kind {parsed.drivername!r} is not known.", way_out)


def _engine(url: URL) -> Engine:
    from sqlalchemy import create_engine

    from db.transactions import prepare_sqlite

    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": 15})
        prepare_sqlite(engine)
        return engine
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs the package psycopg, which cannot be imported ({error}).",
            'Install it with: pip install "weighbridge[postgres]".',
        ) from error
    arguments = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
    return create_engine(url, pool_pre_ping=True, connect_args={**arguments, "application_name": "weighbridge"})


def _bring_up_to_date(engine: Engine) -> None:
    """Migrate to the newest revision where needed. Reads first, so that a store which fits is not written to."""
    from sqlalchemy import inspect

    from db.failures import place
    from db.transactions import writing_connection

    where = place(engine.url)
    with engine.connect() as connection:
        current = _current(connection)
        if current == _head():
            return
        if current is None and engine.dialect.name == "sqlite" and inspect(connection).get_table_names():
            raise StoreError(f"{where} is a database of something else.", "Name another file with --store.")
    _refuse_unknown(current, where)
    if engine.dialect.name == "sqlite":
        # Readers and the one writer do not wait for each other. The mode stays in the file.
        with engine.connect() as connection:
            raw = connection.connection.dbapi_connection
            assert raw is not None
            raw.cursor().execute("PRAGMA journal_mode = WAL")
    with writing_connection(engine) as connection:
        current = _current(connection)  # another process may have migrated while this one waited
        _refuse_unknown(current, where)
        if current != _head():
            _upgrade(connection)


def _refuse_unknown(current: str | None, where: str) -> None:
    if current is not None and current not in {script.revision for script in _scripts().walk_revisions()}:
        raise StoreError(
            f"{where} was written by a newer weighbridge (its tables are at {current}).",
            "Update weighbridge on this side.",
        )


def _upgrade(connection: Connection) -> None:
    from alembic import command

    config = _configuration()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _current(connection: Connection) -> str | None:
    from alembic.migration import MigrationContext

    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def _head() -> str:
    head = _scripts().get_current_head()
    assert head is not None
    return head


def _scripts() -> ScriptDirectory:
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(_configuration())


def _configuration() -> Config:
    """Alembic's settings without a file: the scripts lie in this package, wherever it is installed."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
