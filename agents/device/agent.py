"""The device's side of a dispatched run: launched once, detached, locked, leaving a result with its digest.

A run folder holds: `request.json` (and `suite.toml`), both brought by the dispatcher; `claimed` (made exclusively: launching
twice is harmless); `agent.lock` (held while the agent lives); `status.json`; `agent.log`; and at the end `result.bundle` and
`DONE` with its SHA-256, in this order.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from os import SEEK_END
from pathlib import Path
from typing import Any

from agents.device.bundle_file import pack, write_durably
from agents.device.lock import device_lock, is_held
from agents.device.run_status import STATUS, StatusWriter, boot_id
from agents.device.termination import terminated_like_ctrl_c
from harness.canonical import sha256_hex
from harness.documents import Bundle
from harness.errors import NotDone, UsageError
from harness.folders import state_dir

REQUEST = "request.json"
SUITE = "suite.toml"
LOG = "agent.log"
RESULT = "result.bundle"
DONE = "DONE"
RUN_LOCK = "agent.lock"
CLAIMED = "claimed"
REQUEST_SCHEMA = "weighbridge/request/1"
START_S = 30.0
LOG_BYTES = 2000  # of its end, in a report


@dataclass(frozen=True)
class Request:
    """What the control host asks for. `suite` is a name, or "suite.toml" for the file beside the request."""

    run_id: str
    dispatch_id: str
    device: str
    suite: str
    fence_scope: str  # which store's leases
    fence_token: int
    backends: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    offline: bool = False
    schema: str = field(default=REQUEST_SCHEMA)


Report = Callable[[int, int, str], None]
Runner = Callable[[Request, Path, Report], Bundle]


def write_request(request: Request) -> bytes:
    """Return the request as it is put into the run folder."""
    return json.dumps(asdict(request), indent=1, sort_keys=True).encode()


def read_request(folder: Path) -> Request:
    """Read and check the request of a run folder. Raises UsageError."""
    from dataclasses import fields

    from pydantic import TypeAdapter, ValidationError

    try:
        data = (folder / REQUEST).read_bytes()
        document = json.loads(data)
        if document.get("schema") != REQUEST_SCHEMA:
            raise ValueError(f"its schema is {document.get('schema')!r}, this version reads {REQUEST_SCHEMA!r}")
        unknown = set(document) - {item.name for item in fields(Request)}
        if unknown:
            raise ValueError(f"it has fields that this version does not know: {', '.join(sorted(unknown))}")
        request = TypeAdapter(Request).validate_json(data, strict=True)
        if str(uuid.UUID(request.run_id)) != request.run_id:
            raise ValueError("its run_id is not a UUID")
        return request
    except (OSError, ValueError, TypeError, AttributeError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else str(error)
        raise UsageError(
            f"{folder} holds no request that can be run: {why}.", "Control host and device need the same weighbridge."
        ) from error


def launch(folder: Path) -> dict[str, Any]:
    """Start the agent detached from this session and wait until it says that it runs, or why not.

    A new session and no stream of ours: the SSH channel closes at once, and the end of the connection ends nothing.
    """
    read_request(folder)
    command = [sys.executable, "-P", "-m", "weigh", "agent", "execute", str(folder)]
    if sys.platform == "darwin":
        command = ["caffeinate", "-i", *command]  # a sleeping Mac measures nothing
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=folder
        )
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if (folder / STATUS).exists():
            return report(folder)
        if process.poll() is not None:
            return report(folder)
        time.sleep(0.02)
    return report(folder)


def execute(folder: Path, runner: Runner | None = None) -> None:
    """Be the agent: run the request, write the result. Raises what went wrong after writing it to the status."""
    from filelock import FileLock

    request = read_request(folder)
    try:
        (folder / CLAIMED).touch(exist_ok=False)
    except FileExistsError as error:
        raise NotDone(f"The run in {folder} was started already.", "A new attempt is a new run.") from error
    with FileLock(folder / RUN_LOCK, timeout=0), StatusWriter(folder) as status:
        try:
            with device_lock(request.run_id):
                _pass_fence(request)
                with terminated_like_ctrl_c():
                    bundle = (runner or _run_suite)(request, folder, status.progress)
                _write_result(folder, request, bundle)
            status.finish()
            if runner is None:
                _forget(bundle)
        except BaseException as error:
            status.fail(str(error) or type(error).__name__)
            raise


def report(folder: Path) -> dict[str, Any]:
    """Say what is true about a run folder: does its agent live, what did it say, is the result there."""
    return {
        "boot_id": boot_id(),
        "claimed": (folder / CLAIMED).exists(),
        "alive": is_held(folder / RUN_LOCK),
        "status": _json(folder / STATUS),
        "done": _json(folder / DONE),
        "log": _tail(folder / LOG),
    }


def _pass_fence(request: Request) -> None:
    """Refuse a lease that is older than the newest this device has seen: its holder was away while another took over."""
    path = state_dir() / "fences.json"
    seen = _json(path) or {}
    newest = seen.get(request.fence_scope, 0)
    if request.fence_token < newest:
        raise NotDone(f"The lease {request.fence_token} is over: this device has run {newest} since.")
    write_durably(path, json.dumps({**seen, request.fence_scope: request.fence_token}).encode())


def _write_result(folder: Path, request: Request, bundle: Bundle) -> None:
    data = pack(bundle)
    write_durably(folder / RESULT, data)
    done = {
        "run_id": request.run_id,
        "sha256": sha256_hex(data),
        "bytes": len(data),
        "record_sha256": bundle.sha256,
    }
    write_durably(folder / DONE, json.dumps(done).encode())


def _run_suite(request: Request, folder: Path, report_progress: Report) -> Bundle:
    from agents.device.run_suite import RunRequest, run_suite
    from harness.runner.plan import Selection

    selection = Selection(backends=request.backends, targets=request.targets, workloads=request.workloads)
    suite = str(folder / SUITE) if request.suite == SUITE else request.suite
    return run_suite(
        RunRequest(suite, selection, "fleet", request.offline),
        lambda progress: report_progress(progress.done, progress.total, progress.text),
        run_id=request.run_id,
    )


def _forget(bundle: Bundle) -> None:
    """Remove what the run kept for being resumed; its result lies in the run folder now."""
    from agents.device.run_suite import mark_stored

    mark_stored(str(json.loads(bundle.record)["run_id"]), finished=True)


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, SEEK_END) - LOG_BYTES))
            return file.read(LOG_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
