"""Opening stores: migrations, and every way in which a database can refuse."""

from __future__ import annotations

import random
import sqlite3
import sys
import uuid
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from db import queries
from db.ingest import ingest
from db.store import VERSION_TABLE, has_password, open_store, versions
from harness.canonical import sha256_hex
from harness.documents import Bundle, read_run, write_run
from harness.errors import StoreError, UsageError
from harness.records import SampleBlob

Maker = Callable[..., Bundle]


def test_the_migrations_make_exactly_the_tables_of_the_models(empty_url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from db.schema import Base

    store = open_store(empty_url)
    with store.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, Base.metadata) == []
    store.close()


def test_the_comparison_above_would_see_a_difference(store: Any) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from sqlalchemy import text

    from db.schema import Base

    with store.engine.begin() as connection:
        connection.execute(text("DROP INDEX ix_measurements_status"))
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, Base.metadata) != []


def test_a_store_is_made_by_many_at_once(empty_url: str) -> None:
    import threading

    start = threading.Barrier(5)
    failures: list[BaseException] = []

    def open_it() -> None:
        try:
            start.wait()
            opened = open_store(empty_url)
            current, newest = versions(opened)
            assert current == newest
            opened.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_store_of_a_newer_version_is_refused(store: Any, store_url: str) -> None:
    from sqlalchemy import text

    with store.engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(StoreError, match="newer weighbridge") as refusal:
        open_store(store_url)
    assert "9999" in refusal.value.what


def test_sqlite_settings_that_the_store_relies_on(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'new folder' / 'a.sqlite'}")
    with store.engine.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 15000}
    store.close()


def test_a_missing_file_is_not_made_by_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "none.sqlite"
    with pytest.raises(StoreError, match="There is no database"):
        open_store(f"sqlite:///{path}", create=False)
    assert not path.exists()


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes, not a database. " * 50)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not an SQLite database"):
        open_store(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE birds (name TEXT)")
    other.close()
    with pytest.raises(StoreError, match="something else"):
        open_store(f"sqlite:///{path}")
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("birds",)]
    other.close()


def test_a_damaged_database_is_said_to_be_damaged(tmp_path: Path, make_bundle: Maker) -> None:
    path = tmp_path / "a.sqlite"
    store = open_store(f"sqlite:///{path}")
    ingest(store.engine, make_bundle())
    store.close()
    data = bytearray(path.read_bytes())
    data[4096 : len(data)] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="damaged"):
        _read_all(f"sqlite:///{path}")


def _read_all(url: str) -> None:
    store = open_store(url)
    try:
        queries.results(store.engine)
    finally:
        store.close()


def test_a_store_that_can_only_be_read_is_read_but_not_written(tmp_path: Path, make_bundle: Maker) -> None:
    path = tmp_path / "a.sqlite"
    store = open_store(f"sqlite:///{path}")
    ingest(store.engine, make_bundle())
    reader = open_store(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert queries.count(reader.engine) == 1
    with pytest.raises(StoreError, match="can only be read"):
        ingest(reader.engine, make_bundle(started_at="2026-06-01T10:00:00+00:00"))
    reader.close()
    store.close()


def test_a_full_disk_is_one_sentence_and_no_half_written_run(tmp_path: Path, make_bundle: Maker) -> None:
    from sqlalchemy import event

    store = open_store(f"sqlite:///{tmp_path / 'a.sqlite'}")
    ingest(store.engine, make_bundle())
    store.close()

    @event.listens_for(store.engine, "connect")
    def limit(connection: Any, record: Any) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 20}")

    with pytest.raises(StoreError, match="full") as refusal:
        ingest(store.engine, _heavy(make_bundle(started_at="2026-06-01T10:00:00+00:00")))
    assert "Free space" in refusal.value.fix
    assert queries.count(store.engine) == 1
    assert queries.data_version(store.engine) == 1
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        assert connection.exec_driver_sql("SELECT count(*) FROM samples").scalar() == 1
    store.close()


def _heavy(bundle: Bundle) -> Bundle:
    """The same run with a blob of two megabytes that does not compress."""
    import numpy as np

    samples = np.array(random.Random(7).choices(range(10**15), k=300_000), dtype="<i8")
    blob = zlib.compress(samples.tobytes())
    run = read_run(bundle.record)
    trial = replace(
        run.measurements[0].trials[0], samples=(SampleBlob("latency_ns", sha256_hex(blob), 300_000, len(blob)),)
    )
    measurement = replace(run.measurements[0], trials=(trial,))
    return Bundle(write_run(replace(run, measurements=(measurement,))), {sha256_hex(blob): blob})


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be reached"):
        open_store("postgresql://bench@127.0.0.1:1/bench")


def test_a_database_that_is_not_there(postgres_server: Any) -> None:
    with pytest.raises(StoreError, match="no such database"):
        open_store(postgres_server.get_uri(database="nowhere"))


def test_a_wrong_password_is_refused_and_never_printed(postgres_server: Any, postgres_url: str) -> None:
    import psycopg
    from sqlalchemy.engine import make_url

    role = f"r{uuid.uuid4().hex}"
    rules = Path(postgres_server.pgdata) / "pg_hba.conf"
    kept = rules.read_text()
    try:
        with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'right'")
            rules.write_text(f"local all {role} scram-sha-256\n{kept}")
            connection.execute("SELECT pg_reload_conf()")
        url = make_url(postgres_url).set(username=role, password="s3cret-and-wrong")
        with pytest.raises(StoreError, match="does not accept") as refusal:
            open_store(url.render_as_string(hide_password=False))
        assert "s3cret" not in f"{refusal.value} {refusal.value.fix}"
        assert "PGPASSWORD" in refusal.value.fix
        # The right password gets past the door, and then lacks the right to make tables.
        with pytest.raises(StoreError, match="may not do that"):
            open_store(url.set(password="right").render_as_string(hide_password=False))
    finally:
        rules.write_text(kept)
        with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(f"DROP ROLE IF EXISTS {role}")


def test_a_server_that_goes_away_is_one_sentence_and_comes_back(postgres_url: str, postgres_server: Any) -> None:
    import psycopg
    from sqlalchemy.engine import make_url

    store = open_store(postgres_url)
    assert queries.count(store.engine) == 0
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [make_url(postgres_url).database],
        )
    assert queries.count(store.engine) == 0  # the dead connection is noticed and replaced
    store.close()


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match="psycopg") as refusal:
        open_store("postgresql://bench@localhost/bench")
    assert "weighbridge[postgres]" in refusal.value.fix


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://a/b", "sqlite://", "sqlite:///:memory:", "://", "sqlite:"])
def test_addresses_that_cannot_be_meant(url: str) -> None:
    with pytest.raises(UsageError):
        open_store(url)


def test_a_password_in_an_address_is_seen() -> None:
    assert has_password("postgresql://me:word@host/db")
    assert not has_password("postgresql://me@host/db")
    assert has_password("postgresql://host/db?user=me&password=word")


def test_a_part_of_a_password_behind_its_own_at_sign_is_not_printed() -> None:
    with pytest.raises(UsageError, match="%40") as refusal:
        open_store("postgresql://me:some@thing@host.invalid/db")
    assert "thing" not in str(refusal.value)


def test_a_disk_that_is_full_before_the_first_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy import event

    import db.store

    make = db.store._engine

    def full(url: Any) -> Any:
        engine = make(url)

        @event.listens_for(engine, "connect")
        def limit(connection: Any, record: Any) -> None:
            connection.execute("PRAGMA max_page_count = 1")

        return engine

    monkeypatch.setattr(db.store, "_engine", full)
    with pytest.raises(StoreError, match="is full; nothing of this step was stored"):
        open_store(f"sqlite:///{tmp_path / 'a.sqlite'}")
