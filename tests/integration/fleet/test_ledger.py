"""Dispatches in the store, on SQLite and on PostgreSQL: one lease per device, and no step that is not written down."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agents.fleet import ledger
from agents.fleet.inventory import FleetDevice
from agents.fleet.states import NEXT
from harness.errors import StoreError

PI = FleetDevice("pi5", "10.0.0.5", "pi", "SHA256:" + "A" * 43)
MAC = FleetDevice("mac", "10.0.0.6", "me", "SHA256:" + "B" * 43)
ROAD = ("LEASED", "STAGED", "LAUNCHED", "RUNNING", "FINISHED", "FETCHED", "INGESTED")


def queued(store: Any, device: FleetDevice = PI) -> ledger.Entry:
    return ledger.queue(store.engine, device, "quick", {"offline": False})


def test_the_whole_road_is_written_down(store: Any) -> None:
    entry = queued(store)
    assert entry.state == "QUEUED"
    for state in ROAD:
        entry = (
            ledger.lease(store.engine, entry.dispatch_id)
            if state == "LEASED"
            else ledger.move(store.engine, entry, state)
        )
        assert ledger.find(store.engine, entry.dispatch_id).state == state
    assert entry.launched_at is not None and entry.ingested_at is not None
    assert entry.launched_at <= entry.ingested_at


def test_a_device_is_leased_once_until_its_run_is_home(store: Any) -> None:
    first, second, other = queued(store), queued(store), queued(store, MAC)
    first = ledger.lease(store.engine, first.dispatch_id)
    assert ledger.lease(store.engine, other.dispatch_id).state == "LEASED"
    with pytest.raises(ledger.DeviceLeased, match=first.run_id):
        ledger.lease(store.engine, second.dispatch_id)
    ledger.move(store.engine, first, "FAILED", last_error="x")
    assert ledger.lease(store.engine, second.dispatch_id).fencing_token == 2


def test_fencing_tokens_only_grow(store: Any) -> None:
    tokens = []
    for _ in range(3):
        entry = ledger.lease(store.engine, queued(store).dispatch_id)
        tokens.append(entry.fencing_token)
        ledger.move(store.engine, entry, "CANCELLED")
    assert tokens == [1, 2, 3]


def test_of_many_who_want_a_device_at_once_one_gets_it(store: Any) -> None:
    wanted = [queued(store).dispatch_id for _ in range(8)]

    def attempt(dispatch_id: str) -> bool:
        try:
            ledger.lease(store.engine, dispatch_id)
        except (ledger.DeviceLeased, StoreError):
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(attempt, wanted)) == [False] * 7 + [True]


def test_of_two_who_move_a_dispatch_one_wins(store: Any) -> None:
    entry = ledger.lease(store.engine, queued(store).dispatch_id)
    ledger.move(store.engine, entry, "CANCELLED", last_error="unlocked")
    with pytest.raises(ledger.Moved, match="CANCELLED"):
        ledger.move(store.engine, entry, "STAGED")
    assert ledger.find(store.engine, entry.dispatch_id).last_error == "unlocked"


def test_a_step_that_the_machine_does_not_know_is_refused(store: Any) -> None:
    entry = queued(store)
    for state in set(NEXT) - NEXT["QUEUED"] - {"QUEUED"}:
        with pytest.raises(StoreError, match="cannot go from QUEUED"):
            ledger.move(store.engine, entry, state)


def test_what_lies_on_devices_although_it_is_stored_is_found(store: Any) -> None:
    entry = ledger.lease(store.engine, queued(store).dispatch_id)
    for state in ROAD[1:]:
        entry = ledger.move(store.engine, entry, state)
    assert [found.run_id for found in ledger.not_removed(store.engine, ["pi5"])] == [entry.run_id]
    ledger.note(store.engine, entry.dispatch_id, remote_removed_at=entry.updated_at)
    assert ledger.not_removed(store.engine, ["pi5"]) == []


def test_the_newest_comes_first(store: Any) -> None:
    made = [queued(store).run_id for _ in range(3)]
    assert [entry.run_id for entry in ledger.entries(store.engine, ["pi5"], limit=2)] == made[:0:-1]
    assert ledger.entries(store.engine, ["mac"]) == []
    assert ledger.entries(store.engine, ["pi5"], ["RUNNING"]) == []
