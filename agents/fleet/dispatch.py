"""One dispatch on one device: lease, stage, launch, follow, fetch, store. Each step is written down before the next.

Killed at any point, the store says how far it came and the device says what became of it; `settle` and `collect` go on
from there, in this process or in another one, a month later.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from agents.device.agent import CLAIMED, SUITE, Request
from agents.device.bundle_file import unpack
from agents.device.spool import Spool, run_id_of
from agents.fleet import ledger, remote
from agents.fleet.inventory import FleetDevice, known_hosts_file
from agents.fleet.ledger import Entry
from agents.fleet.order import Order
from agents.fleet.states import Look, judge
from agents.fleet.sync import send_files
from agents.fleet.transport import Connection
from db.failures import place
from db.ingest import ingest
from db.schema import LIVE_STATES
from harness.canonical import sha256_hex
from harness.errors import NotDone, RecordError, TransportError, WeighbridgeError
from harness.folders import state_dir

# A living agent's heartbeat changes every 10 s; when it stands still this long, the device is asked in earnest.
SILENT_S = 45.0
LONGEST_PAUSE_S = 60.0


Say = Callable[[Entry, str], None]
Prepare = Callable[[Connection, str, str, Callable[[str], None]], None]


class Stopped(Exception):
    """The person pressed Ctrl-C before anything was launched."""


class NothingStarted(TransportError):
    """The launch failed, and the device says that no agent runs."""


@dataclass(frozen=True)
class Desk:
    """What every step needs: the store, the fleet file, and someone to tell."""

    engine: Engine
    fleet_path: Path
    say: Say = lambda entry, text: None
    poll_s: float = 5.0
    patience_s: float = 600.0  # how long an unreachable device is waited for before its run is left to `fetch`
    keep_remote: bool = False

    def connect(self, device: FleetDevice) -> Connection:
        """Open a connection with the pinned host key."""
        return Connection(device, known_hosts_file(self.fleet_path))

    @property
    def fence_scope(self) -> str:
        """Whose fencing tokens these are: one store's tokens grow, two stores' know nothing of each other."""
        return sha256_hex(place(self.engine.url).encode())[:32]

    @property
    def fetched(self) -> Spool:
        """Where results wait between the device and the store."""
        return Spool(state_dir() / "fetched")


def start(
    desk: Desk, device: FleetDevice, order: Order, stop: threading.Event, prepare: Prepare | None = None
) -> Entry:
    """Lease the device, bring the run there and launch it detached. Raises when it cannot; then the lease is free again.

    `prepare` brings models and data to the device's cache once the run's folder is there.
    """
    entry = ledger.queue(desk.engine, device, order.suite, order.as_document())
    try:
        entry = ledger.lease(desk.engine, entry.dispatch_id)
    except WeighbridgeError as error:
        ledger.move(desk.engine, entry, "CANCELLED", last_error=str(error))
        raise
    launched = False
    try:
        desk.say(entry, "connecting")
        with desk.connect(device) as connection:
            python = remote.interpreter(connection)
            folder = remote.run_folder(connection, entry.run_id)
            _check_stop(stop)
            assert entry.fencing_token is not None
            request = Request(
                run_id=entry.run_id,
                dispatch_id=entry.dispatch_id,
                device=device.name,
                suite=SUITE,
                fence_scope=desk.fence_scope,
                fence_token=entry.fencing_token,
                backends=order.backends,
                targets=order.targets,
                workloads=order.workloads,
                offline=order.offline,
            )
            desk.say(entry, "sending the suite")
            remote.stage(connection, folder, request, order.document.text)
            send_files(connection, order.document.path.parent, order.beside, folder, _teller(desk, entry))
            entry = ledger.move(desk.engine, entry, "STAGED", remote_folder=folder)
            if prepare is not None:
                prepare(connection, python, folder, _teller(desk, entry))
            _check_stop(stop)
            entry = ledger.move(desk.engine, entry, "STAGED")  # still ours? an operator may have unlocked the device
            launched = True  # from here on, only the device knows
            look = _launch(connection, python, folder)
            entry = ledger.move(desk.engine, entry, "LAUNCHED", last_seen_at=datetime.now(UTC))
            return _judged(desk, entry, look)
    except ledger.Moved:
        raise
    except Exception as error:
        # Whatever it was: a device on which nothing was started must not stay leased.
        if not launched or isinstance(error, NothingStarted):
            state = "CANCELLED" if isinstance(error, Stopped) else "FAILED"
            ledger.move(desk.engine, entry, state, last_error=str(error) or "stopped before the launch")
        else:
            ledger.note(desk.engine, entry.dispatch_id, last_error=str(error))
        raise


def follow(desk: Desk, device: FleetDevice, entry: Entry, stop: threading.Event) -> Entry:
    """Poll until the run has ended, the person goes away, or the device has been unreachable for too long.

    A broken link changes nothing about the run: it is RUNNING until the device itself says otherwise.
    """
    connection: Connection | None = None
    silent_since = unreachable_since = None
    heartbeat: object = None
    pause = desk.poll_s
    try:
        while entry.state in ("LAUNCHED", "RUNNING") and not stop.is_set():
            try:
                connection = connection or desk.connect(device)
                assert entry.remote_folder is not None
                look = remote.glance(connection, entry.remote_folder)
                beat = (look.status or {}).get("heartbeat")
                silent_since = time.monotonic() if beat != heartbeat or silent_since is None else silent_since
                heartbeat = beat
                if time.monotonic() - silent_since > SILENT_S:
                    look = remote.examine(connection, entry.remote_folder)
                    silent_since = None
                entry = _judged(desk, entry, look)
                unreachable_since, pause = None, desk.poll_s
            except TransportError as error:
                if connection is not None:
                    connection.close()
                connection = None
                unreachable_since = unreachable_since or time.monotonic()
                entry = ledger.note(desk.engine, entry.dispatch_id, last_error=str(error))
                desk.say(entry, f"unreachable, the run goes on: {error.what}")
                if time.monotonic() - unreachable_since > desk.patience_s:
                    return entry
                pause = min(pause * 2, LONGEST_PAUSE_S)
            if entry.state in ("LAUNCHED", "RUNNING"):
                stop.wait(pause)
        return entry
    finally:
        if connection is not None:
            connection.close()


def settle(desk: Desk, connection: Connection, entry: Entry) -> Entry:
    """Ask the device what became of a dispatch, and write it down."""
    if entry.state not in ("STAGED", "LAUNCHED", "RUNNING") or entry.remote_folder is None:
        return entry
    return _judged(desk, entry, remote.examine(connection, entry.remote_folder))


def collect(desk: Desk, connection: Connection | None, entry: Entry) -> Entry:
    """Bring a finished run home and store it: checked, kept on this disk, ingested, only then removed from the device.

    Done again after any interruption it goes on where it was; done again after its end it changes nothing. Without a
    connection, what was fetched already is stored, and its copy stays on the device until the next time.
    """
    if entry.state == "FINISHED" and connection is not None:
        desk.say(entry, "fetching")
        digest = _download(desk, connection, entry)
        entry = ledger.move(desk.engine, entry, "FETCHED", result_sha256=digest)
    if entry.state == "FETCHED":
        desk.say(entry, "storing")
        try:
            if connection is not None and entry.run_id not in desk.fetched.pending():
                # Fetched by another control host, or this one has lost its disk; the device still has it.
                _download(desk, connection, entry)
            ingest(desk.engine, desk.fetched.load(entry.run_id))
        except WeighbridgeError as error:
            now = ledger.find(desk.engine, entry.dispatch_id)
            if now.state != entry.state:
                return now  # another fetch has stored it in the meantime
            ledger.note(desk.engine, entry.dispatch_id, last_error=str(error))
            raise
        entry = ledger.move(desk.engine, entry, "INGESTED", last_error=None)
    if entry.state == "INGESTED":
        desk.fetched.remove(entry.run_id)
        left = connection is not None and entry.remote_removed_at is None and not desk.keep_remote
        if left and connection is not None and entry.remote_folder is not None:
            remote.remove(connection, entry.remote_folder, entry.run_id)
            entry = ledger.note(desk.engine, entry.dispatch_id, remote_removed_at=datetime.now(UTC))
        desk.say(entry, "stored")
    return entry


def _download(desk: Desk, connection: Connection, entry: Entry) -> str:
    """Bring the result onto this host's disk, checked; returns the SHA-256 of its file."""
    assert entry.remote_folder is not None
    done = remote.glance(connection, entry.remote_folder).done
    data = remote.fetch_result(connection, entry.remote_folder, done)
    bundle = unpack(data)
    if run_id_of(bundle.record) != entry.run_id:
        raise RecordError(f"{entry.device} gave the result of another run than {entry.run_id}; it was not stored.")
    desk.fetched.add(bundle)
    return sha256_hex(data)


def free(desk: Desk, device: FleetDevice, force: bool = False) -> tuple[Entry | None, str]:
    """Free a device's lease by an operator's word. Returns the dispatch that held it, and what was found.

    Raises NotDone while an agent is alive there, or when nobody can know because the device is unreachable; `force`
    frees it all the same. The run folder is claimed first, so that a dispatcher that wakes up cannot launch it.
    """
    held = ledger.entries(desk.engine, [device.name], LIVE_STATES)
    if not held:
        return None, "no run holds it"
    entry = held[0]
    found = "the device was not asked"
    try:
        with desk.connect(device) as connection:
            entry = settle(desk, connection, entry)
            if entry.state not in LIVE_STATES:
                return entry, entry.last_error or entry.state
            folder = entry.remote_folder or remote.run_folder(connection, entry.run_id)
            look = remote.examine(connection, folder)
            if look.alive and not force:
                raise NotDone(
                    f"On {device.name} the agent of run {entry.run_id} is alive: the device is not free.",
                    "Wait for it, or give --force: its own lock still keeps a second run away until it ends.",
                )
            if look.done is not None and not force:
                raise NotDone(
                    f"The run {entry.run_id} on {device.name} has a result.",
                    f"Run `weigh fleet fetch {device.name}`; to give the result up, --force.",
                )
            if not look.claimed and connection.exists(folder):
                connection.upload(b"", f"{folder}/{CLAIMED}")
            found = "its agent is alive and goes on" if look.alive else "no agent is alive there"
    except TransportError as error:
        if not force:
            raise NotDone(
                f"{device.name} cannot be asked whether its run still goes on: {error.what}",
                "To free it all the same: --force.",
            ) from error
        found = "the device could not be reached"
    return ledger.move(desk.engine, entry, "CANCELLED", last_error=f"Unlocked by an operator; {found}."), found


def _launch(connection: Connection, python: str, folder: str) -> Look:
    try:
        return remote.launch(connection, python, folder)
    except TransportError as error:
        try:
            look = remote.examine(connection, folder)
        except TransportError:
            raise error from None  # nobody knows; `fetch` asks again
        if look.alive or look.claimed:
            return look
        raise NothingStarted(error.what, error.fix) from error


def _judged(desk: Desk, entry: Entry, look: Look) -> Entry:
    state, reason = judge(entry.state, look)
    fields: dict[str, Any] = {"last_seen_at": datetime.now(UTC)}
    if look.status is not None:
        fields["remote_status"] = dict(look.status)
        fields["remote_boot_id"] = look.status.get("boot_id")
        fields["remote_pid"] = look.status.get("pid")
    fields["last_error"] = reason
    moved = ledger.move(desk.engine, entry, state, **fields)
    desk.say(moved, _progress(look) if moved.state in ("LAUNCHED", "RUNNING") else reason or "")
    return moved


def _teller(desk: Desk, entry: Entry) -> Callable[[str], None]:
    return lambda text: desk.say(entry, text)


def _progress(look: Look) -> str:
    status = look.status or {}
    text = str(status.get("text") or "")
    return "".join(c for c in text if c.isprintable())[:200]


def _check_stop(stop: threading.Event) -> None:
    if stop.is_set():
        raise Stopped
