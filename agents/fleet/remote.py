"""A run folder on a device: made, filled, launched, looked at, emptied. No decisions, no database."""

from __future__ import annotations

import json
import uuid
from typing import Any

from agents.device.agent import DONE, REQUEST, RESULT, SUITE, Request, write_request
from agents.device.run_status import STATUS
from agents.fleet.inventory import FleetDevice
from agents.fleet.states import Look
from agents.fleet.transport import Connection
from harness.errors import TransportError

LAUNCH_S = 60.0
NEEDS_S = 600.0  # every target is tried there
_REMOVE = "import shutil,sys\nshutil.rmtree(sys.argv[1])"


def interpreter(connection: Connection) -> str:
    """Return the device's Python that has weighbridge. Raises TransportError when there is none yet."""
    device = connection.device
    # The link is followed now: a bootstrap in the middle of a run must not change the run's environment.
    link = connection.absolute(f"{device.folder}/env")
    path = device.environment or f"{connection.real(link) if connection.exists(link) else link}/bin/python"
    if not connection.exists(path):
        raise TransportError(
            f"{device.name} has no environment yet ({path} is not there).",
            f"Run `weigh fleet bootstrap {device.name}`.",
        )
    return path


def weigh(device: FleetDevice, python: str, *arguments: str) -> list[str]:
    """Return the command line of our own program there. -P: a file in the home folder must not pass for a module."""
    return [python, "-P", "-m", "weigh", *arguments]


def run_folder(connection: Connection, run_id: str) -> str:
    """Return the path of a run's folder on the device."""
    return connection.absolute(f"{connection.device.folder}/runs/{uuid.UUID(run_id)}")


def stage(connection: Connection, folder: str, request: Request, suite_text: str | None) -> None:
    """Make the run's folder, which must be new, and put in what the agent needs."""
    try:
        connection.make_folder(folder, exclusive=True)
    except FileExistsError as error:
        raise TransportError(
            f"On {connection.device.name}, {folder} is there already: this run was sent before."
        ) from error
    if suite_text is not None:
        connection.upload(suite_text.encode(), f"{folder}/{SUITE}")
    connection.upload(write_request(request), f"{folder}/{REQUEST}")


def needs(connection: Connection, python: str, folder: str) -> dict[str, Any]:
    """Ask which targets work there, and where its cache lies."""
    output = connection.check(weigh(connection.device, python, "agent", "needs", folder), NEEDS_S)
    found = _document(output)
    if found is None or not _says_what_it_needs(found):
        raise TransportError(f"{connection.device.name} does not answer like weighbridge.", "Bootstrap it again.")
    return found


def _says_what_it_needs(found: dict[str, Any]) -> bool:
    cache, processors, places = found.get("cache"), found.get("processors"), found.get("places")
    return (
        isinstance(cache, str)
        and cache.startswith("/")
        and isinstance(processors, int)
        and processors > 0
        and isinstance(places, list)
        and all(isinstance(place, dict) and {"backend", "target", "works"} <= place.keys() for place in places)
    )


def launch(connection: Connection, python: str, folder: str) -> Look:
    """Start the agent detached; returns what it says after its first breath."""
    command = weigh(connection.device, python, "agent", "launch", folder)
    output = connection.check(command, LAUNCH_S, {"WEIGHBRIDGE_DEVICE": connection.device.name})
    return _look(connection, output)


def glance(connection: Connection, folder: str) -> Look:
    """Read the run's files, nothing more: a look that costs the device almost nothing, for polling."""
    done = connection.read(f"{folder}/{DONE}")
    status = connection.read(f"{folder}/{STATUS}")
    return Look(status=_document(status), done=_document(done))


def examine(connection: Connection, folder: str) -> Look:
    """Ask the device's own program, which also sees whether the agent lives."""
    if not connection.exists(folder):
        return Look(alive=False, claimed=False, log="Its folder is not there.")
    command = weigh(connection.device, interpreter(connection), "agent", "report", folder)
    return _look(connection, connection.check(command))


def fetch_result(connection: Connection, folder: str, done: Any) -> bytes:
    """Fetch the result, which must have the SHA-256 that DONE names."""
    digest = done.get("sha256") if isinstance(done, dict) else None
    if not isinstance(digest, str):
        raise TransportError(f"On {connection.device.name}, {folder}/{DONE} does not name a digest.")
    return connection.download(f"{folder}/{RESULT}", digest)


def remove(connection: Connection, folder: str, run_id: str) -> None:
    """Remove a run's folder, if it is there. Only a folder that is named after its run."""
    if folder.rpartition("/")[2] != str(uuid.UUID(run_id)):
        raise TransportError(f"{folder} is not the folder of run {run_id}; nothing was removed.")
    if connection.exists(folder):
        connection.check([connection.device.python, "-I", "-c", _REMOVE, folder])


def _look(connection: Connection, output: bytes) -> Look:
    found = _document(output)
    if found is None:
        raise TransportError(f"{connection.device.name} does not answer like weighbridge.", "Bootstrap it again.")
    return Look(
        status=_table(found, "status"),
        done=_table(found, "done"),
        alive=bool(found.get("alive")),
        claimed=bool(found.get("claimed")),
        boot_id=str(found["boot_id"]) if found.get("boot_id") else None,
        log=str(found.get("log") or ""),
    )


def _table(found: dict[str, Any], name: str) -> dict[str, Any] | None:
    value = found.get(name)
    return value if isinstance(value, dict) else None


def _document(data: bytes | None) -> dict[str, Any] | None:
    if data is None:
        return None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
