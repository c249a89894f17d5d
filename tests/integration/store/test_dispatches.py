"""The lease that the database itself enforces."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from db.schema import DISPATCH_STATES, LIVE_STATES, Dispatch
from db.transactions import reading, writing
from harness.errors import StoreError

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def _dispatch(device: str, state: str, token: int | None) -> Dispatch:
    return Dispatch(
        dispatch_id=str(uuid.uuid4()),
        run_id=str(uuid.uuid4()),
        attempt=1,
        device=device,
        host=device,
        suite="quick",
        request={},
        state=state,
        fencing_token=token,
        created_at=NOW,
        updated_at=NOW,
    )


def _add(store: Any, *rows: Dispatch) -> None:
    with writing(store.engine) as session:
        session.add_all(rows)


@pytest.mark.parametrize("state", LIVE_STATES)
def test_a_device_has_one_live_lease(store: Any, state: str) -> None:
    _add(store, _dispatch("pi", state, 1), _dispatch("mac", state, 1))
    with pytest.raises(StoreError):
        _add(store, _dispatch("pi", "LEASED", 2))
    with reading(store.engine) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM dispatches").scalar() == 2


def test_what_waits_or_has_ended_holds_no_lease(store: Any) -> None:
    idle = [state for state in DISPATCH_STATES if state not in LIVE_STATES]
    _add(store, *(_dispatch("pi", state, place) for place, state in enumerate(idle * 2)))
    _add(store, _dispatch("pi", "RUNNING", 99))


def test_a_state_that_does_not_exist_is_refused(store: Any) -> None:
    with pytest.raises(StoreError):
        _add(store, _dispatch("pi", "LOITERING", 1))


def test_a_fencing_token_is_given_once(store: Any) -> None:
    _add(store, _dispatch("pi", "FAILED", 7))
    with pytest.raises(StoreError):
        _add(store, _dispatch("pi", "FAILED", 7))
    _add(store, _dispatch("pi", "QUEUED", None), _dispatch("pi", "QUEUED", None))
