"""The work behind `weigh fleet run`, `fetch` and `status`: the same steps on many devices, side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from agents.fleet import dispatch, ledger, remote
from agents.fleet.crowd import Outcome, for_each
from agents.fleet.dispatch import Desk, Say
from agents.fleet.gather import Gatherer
from agents.fleet.inventory import FleetDevice
from agents.fleet.ledger import Entry
from agents.fleet.order import Order
from agents.fleet.states import ON_DEVICE
from agents.fleet.sync import send_files
from agents.fleet.transport import Connection
from db.store import open_store
from harness.errors import NotDone, WeighbridgeError
from harness.folders import cache_dir


def open_desk(
    store: str, fleet_path: Path, say: Say = lambda entry, text: None, poll_s: float = 5.0, keep_remote: bool = False
) -> Desk:
    """Open the store, which must be a database: dispatches live there, not behind an ingest API."""
    if store.startswith(("http://", "https://")):
        raise NotDone(
            f"{store} is an ingest API; a control host needs the database itself.",
            "Give --store sqlite:///... or postgresql://...",
        )
    return Desk(open_store(store).engine, fleet_path, say, poll_s, keep_remote=keep_remote)


def run_all(
    desk: Desk, devices: Sequence[FleetDevice], order: Order, detach: bool = False, sync: bool = True
) -> tuple[list[Outcome[Entry]], bool]:
    """Run the order on all devices. Returns each device's dispatch as it stands then, and whether Ctrl-C was pressed."""
    stop = threading.Event()
    gatherer = Gatherer(order)

    def prepare(connection: Connection, python: str, folder: str, say: Callable[[str], None]) -> None:
        say("asking what it can run")
        answer = remote.needs(connection, python, folder)
        needed = gatherer.needed(answer, say)
        for text in needed.notes:
            say(f"not to be had: {text}")
        send_files(connection, cache_dir(), needed.files, str(answer["cache"]), say)

    def work(device: FleetDevice) -> Entry:
        entry = dispatch.start(desk, device, order, stop, prepare if sync else None)
        if detach:
            return entry
        entry = dispatch.follow(desk, device, entry, stop)
        if entry.state == "FINISHED" and not stop.is_set():
            with desk.connect(device) as connection:
                entry = dispatch.collect(desk, connection, entry)
        return entry

    return for_each(devices, work, stop)


def fetch_all(desk: Desk, devices: Sequence[FleetDevice]) -> tuple[list[Outcome[list[Entry]]], bool]:
    """Bring home whatever has ended on these devices. A run that cannot be fetched does not keep the others."""
    stop = threading.Event()
    outcomes, pressed = for_each(devices, lambda device: _fetch(desk, device, stop), stop)
    return [_both(outcome) for outcome in outcomes], pressed


def _fetch(desk: Desk, device: FleetDevice, stop: threading.Event) -> tuple[list[Entry], WeighbridgeError | None]:
    """Fetch from one device. Returns what was looked at, by run, and the first trouble."""
    found: dict[str, Entry] = {}
    troubles: list[WeighbridgeError] = []
    there = ledger.entries(desk.engine, [device.name], ON_DEVICE)
    here = desk.fetched.pending()
    for entry in ledger.entries(desk.engine, [device.name], ("FETCHED",)):
        if entry.run_id not in here:
            there.append(entry)  # fetched by another control host; the device still has it
            continue
        try:
            found[entry.run_id] = dispatch.collect(desk, None, entry)
        except WeighbridgeError as error:
            troubles.append(error)
    stored = ledger.not_removed(desk.engine, [device.name])
    if there or stored:
        try:
            with desk.connect(device) as connection:
                for entry in reversed([*there, *stored]):  # oldest first
                    if stop.is_set():
                        break
                    try:
                        ended = dispatch.collect(desk, connection, dispatch.settle(desk, connection, entry))
                        found[entry.run_id] = ended
                    except ledger.Moved:
                        continue  # another fetch is at work on it
                    except WeighbridgeError as error:
                        troubles.append(error)
        except WeighbridgeError as error:
            if there:  # a copy that only waits for being removed waits on
                troubles.append(error)
    return list(found.values()), troubles[0] if troubles else None


def _both(outcome: Outcome[tuple[list[Entry], WeighbridgeError | None]]) -> Outcome[list[Entry]]:
    found, trouble = outcome.value or ([], None)
    return Outcome(outcome.device, found, outcome.error or trouble)


def statuses(desk: Desk, devices: Sequence[FleetDevice], look: bool = True, limit: int = 20) -> list[Entry]:
    """Return the newest dispatches of these devices, the live ones as their devices say now."""
    names = [device.name for device in devices]
    if look:
        live = {entry.device for entry in ledger.entries(desk.engine, names, ("STAGED", "LAUNCHED", "RUNNING"))}

        def work(device: FleetDevice) -> None:
            for entry in ledger.entries(desk.engine, [device.name], ("STAGED", "LAUNCHED", "RUNNING")):
                try:
                    with desk.connect(device) as connection:
                        dispatch.settle(desk, connection, entry)
                except WeighbridgeError as error:
                    ledger.note(desk.engine, entry.dispatch_id, last_error=str(error))

        for_each([device for device in devices if device.name in live], work, threading.Event())
    return ledger.entries(desk.engine, names, limit=limit)
