"""Dispatches in the store: made before anything is sent, moved only along the state machine, leased one per device.

Every change is one transaction that checks the state it starts from: of two processes that move the same dispatch, one wins
and the other learns it.
"""

from __future__ import annotations

import platform
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, func, select

from agents.fleet.inventory import FleetDevice
from agents.fleet.states import NEXT
from agents.fleet.user import user_name
from db.schema import LIVE_STATES, Dispatch
from db.transactions import reading, writing
from harness.errors import NotDone, StoreError

_MOMENTS = {
    "LEASED": "leased_at",
    "STAGED": "staged_at",
    "LAUNCHED": "launched_at",
    "FINISHED": "finished_at",
    "FETCHED": "fetched_at",
    "INGESTED": "ingested_at",
    "FAILED": "ended_at",
    "LOST": "ended_at",
    "CANCELLED": "ended_at",
}


class DeviceLeased(NotDone):
    """Another dispatch holds the device."""


class Moved(StoreError):
    """Another process has moved the dispatch in the meantime."""


@dataclass(frozen=True)
class Entry:
    """One dispatch as the store has it."""

    dispatch_id: str
    run_id: str
    device: str
    host: str
    suite: str
    request: dict[str, Any]
    state: str
    fencing_token: int | None
    remote_folder: str | None
    remote_status: dict[str, Any] | None
    result_sha256: str | None
    created_at: datetime
    updated_at: datetime
    launched_at: datetime | None
    last_seen_at: datetime | None
    ingested_at: datetime | None
    remote_removed_at: datetime | None
    last_error: str | None


def queue(engine: Engine, device: FleetDevice, suite: str, request: dict[str, Any]) -> Entry:
    """Write down that a run is wanted; its identifiers exist from here on."""
    now = datetime.now(UTC)
    row = Dispatch(
        dispatch_id=str(uuid.uuid4()),
        run_id=str(uuid.uuid4()),
        attempt=1,
        device=device.name,
        host=device.address,
        suite=suite,
        request=request,
        requested_by=f"{user_name()}@{platform.node()}",
        state="QUEUED",
        created_at=now,
        updated_at=now,
    )
    with writing(engine) as session:
        session.add(row)
        session.flush()
        return _entry(row)


def lease(engine: Engine, dispatch_id: str) -> Entry:
    """Take the device for this dispatch, with a fencing token above all earlier ones.

    Raises DeviceLeased when another dispatch holds it; the partial unique index would refuse it as well.
    """
    with writing(engine) as session:
        row = _row(session, dispatch_id)
        query = select(Dispatch).where(Dispatch.device == row.device, Dispatch.state.in_(LIVE_STATES))
        other = session.scalar(query)
        if other is not None and other.dispatch_id != dispatch_id:
            raise DeviceLeased(
                f"{row.device} is held by run {other.run_id} ({other.state}, since {_short(other.created_at)}).",
                f"`weigh fleet fetch {row.device}` brings it home; `weigh fleet unlock {row.device}` frees the device.",
            )
        newest = session.scalar(select(func.max(Dispatch.fencing_token)).where(Dispatch.device == row.device))
        row.fencing_token = (newest or 0) + 1
        _set_state(row, "LEASED")
        return _entry(row)


def move(engine: Engine, entry: Entry, state: str, **fields: Any) -> Entry:
    """Move a dispatch from the state that `entry` shows. Raises Moved when it is in another one by now."""
    with writing(engine) as session:
        row = _row(session, entry.dispatch_id)
        if row.state != entry.state:
            raise Moved(
                f"The run {entry.run_id} on {entry.device} is {row.state} by now, no longer {entry.state}.",
                "Another `weigh fleet` is at work on it; see `weigh fleet status`.",
            )
        if state != row.state:
            if state not in NEXT[row.state]:
                raise StoreError(f"A dispatch cannot go from {row.state} to {state}.")
            _set_state(row, state)
        for name, value in fields.items():
            setattr(row, name, value)
        row.updated_at = datetime.now(UTC)
        session.flush()
        return _entry(row)


def note(engine: Engine, dispatch_id: str, **fields: Any) -> Entry:
    """Write fields beside the state, whatever it is by now."""
    with writing(engine) as session:
        row = _row(session, dispatch_id)
        for name, value in fields.items():
            setattr(row, name, value)
        row.updated_at = datetime.now(UTC)
        session.flush()
        return _entry(row)


def find(engine: Engine, dispatch_id: str) -> Entry:
    """Return a dispatch. Raises StoreError when there is none."""
    with reading(engine) as connection:
        query = select(Dispatch.__table__).where(Dispatch.dispatch_id == dispatch_id)
        row = connection.execute(query).one_or_none()
    if row is None:
        raise StoreError(f"The store has no dispatch {dispatch_id}.")
    return _entry(row)


def entries(
    engine: Engine,
    devices: Collection[str] | None = None,
    states: Collection[str] | None = None,
    limit: int | None = None,
) -> list[Entry]:
    """Return dispatches, newest first."""
    query = select(Dispatch.__table__).order_by(Dispatch.id.desc())
    if devices is not None:
        query = query.where(Dispatch.device.in_(devices))
    if states is not None:
        query = query.where(Dispatch.state.in_(states))
    with reading(engine) as connection:
        return [_entry(row) for row in connection.execute(query.limit(limit))]


def not_removed(engine: Engine, devices: Collection[str]) -> list[Entry]:
    """Return what is stored already while its copy still lies on the device."""
    query = select(Dispatch.__table__).where(
        Dispatch.device.in_(devices), Dispatch.state == "INGESTED", Dispatch.remote_removed_at.is_(None)
    )
    with reading(engine) as connection:
        return [_entry(row) for row in connection.execute(query)]


def _row(session: Any, dispatch_id: str) -> Dispatch:
    row = session.scalar(select(Dispatch).where(Dispatch.dispatch_id == dispatch_id))
    if row is None:
        raise StoreError(f"The store has no dispatch {dispatch_id}.")
    found: Dispatch = row
    return found


def _set_state(row: Dispatch, state: str) -> None:
    row.state = state
    row.updated_at = datetime.now(UTC)
    if state in _MOMENTS:
        setattr(row, _MOMENTS[state], row.updated_at)


def _entry(row: Any) -> Entry:
    return Entry(**{name: getattr(row, name) for name in Entry.__dataclass_fields__})


def _short(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")
