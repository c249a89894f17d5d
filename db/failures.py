"""What databases say when they refuse, turned into one sentence with the way out. Passwords never reach a message."""

from __future__ import annotations

import errno
import sqlite3
from typing import Any

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from harness.errors import StoreError


def place(url: URL) -> str:
    """Name a store for people: a path, or user@host:port/database without the password."""
    if url.get_backend_name() == "sqlite":
        return url.database or "(memory)"
    port = f":{url.port}" if url.port else ""
    user = f"{url.username}@" if url.username else ""
    return f"postgresql://{user}{url.host or 'localhost'}{port}/{url.database or ''}"


def password_of(url: URL) -> str | None:
    """Return the password that a URL holds, before the host or among its parameters."""
    found = url.password or url.query.get("password")
    return None if not found else found if isinstance(found, str) else found[0]


def friendly(error: SQLAlchemyError | sqlite3.Error | OSError, url: URL) -> StoreError:
    """Turn what SQLAlchemy, SQLite or the system raised into a StoreError that says what to do."""
    where = place(url)
    if isinstance(error, OSError):
        if error.errno == errno.ENOSPC:
            return _full(where)
        return StoreError(f"The store {where} cannot be used: {error.strerror or error}.")
    text = str(error.orig) if isinstance(error, DBAPIError) and error.orig else str(error)
    password = password_of(url)
    if password:
        text = text.replace(password, "***")
    low = text.lower()
    if url.get_backend_name() == "sqlite":
        return _sqlite(where, text, low)
    return _postgresql(where, text, low, getattr(getattr(error, "orig", None), "sqlstate", None))


def _sqlite(where: str, text: str, low: str) -> StoreError:
    if "disk is full" in low or "no space left" in low:
        return _full(where)
    if "not a database" in low or "malformed" in low:
        return StoreError(
            f"{where} is not an SQLite database, or it is damaged.",
            "Nothing was changed; name another file with --store, or restore it from a backup.",
        )
    if "readonly" in low or "read-only" in low:
        return StoreError(
            f"The database {where} can only be read.",
            "Make the file and its folder writable for this user, or name another store with --store.",
        )
    if "unable to open" in low:
        return StoreError(
            f"The database {where} cannot be opened.",
            "Check that its folder exists and that this user may write there.",
        )
    if "locked" in low or "busy" in low:
        return StoreError(
            f"Another process has been writing to {where} for too long.", "Wait until it has finished, then try again."
        )
    if "disk i/o error" in low:
        return StoreError(f"The disk under {where} failed to read or write.", "Check the disk and its free space.")
    return StoreError(f"The database {where} refused: {_one_line(text)}.")


def _postgresql(where: str, text: str, low: str, state: Any) -> StoreError:
    if state in {"28P01", "28000"} or "password authentication failed" in low or "no password supplied" in low:
        return StoreError(
            f"{where} does not accept this user and password.",
            "Set PGPASSWORD, or put the password into ~/.pgpass with mode 0600.",
        )
    if state == "3D000" or ("database" in low and "does not exist" in low):
        return StoreError(f"{where}: the server has no such database.", "Make it with createdb, or correct the name.")
    if state == "42501" or "permission denied" in low:
        return StoreError(
            f"{where}: this user may not do that ({_one_line(text)}).", "Ask for the right on the schema."
        )
    if state in {"53100", "53400"} or "no space left" in low:
        return _full(where)
    if state == "25006" or "read-only" in low:
        return StoreError(
            f"{where} can only be read (a replica or a read-only transaction).", "Name the primary server."
        )
    unreachable = ("could not", "connection failed", "connection refused", "connection is bad", "closed the connection")
    if any(part in low for part in (*unreachable, "timeout expired", "connection is closed", "terminating connection")):
        return StoreError(
            f"The database server of {where} cannot be reached ({_one_line(text)}).",
            "Check that it runs, the host and the port, and the network.",
        )
    return StoreError(f"The database {where} refused: {_one_line(text)}.")


def _full(where: str) -> StoreError:
    return StoreError(
        f"The disk or the database of {where} is full; nothing of this step was stored.", "Free space, then try again."
    )


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")[:300]
