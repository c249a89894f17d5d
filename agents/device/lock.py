"""One run at a time on a device: two at once would measure each other.

The lock is the operating system's (flock): it ends with the process that holds it, whatever kills that process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import NotDone, WeighbridgeError
from harness.folders import state_dir
from harness.preparation import repair


class DeviceBusy(NotDone):
    """Another run holds the device."""


@contextmanager
def device_lock(run_id: str, path: Path | None = None) -> Iterator[None]:
    """Hold this device's lock for a run. Raises DeviceBusy at once, naming the run that holds it.

    Whoever holds it measures, so that this is also where settings that a killed run left changed are put back first.
    """
    from filelock import FileLock, Timeout

    path = path or state_dir() / "device.lock"
    owner = path.with_suffix(".owner.json")
    lock = FileLock(path, timeout=0)
    said = {"run_id": run_id, "pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        owner.write_text(json.dumps(said), encoding="utf-8")
    except Timeout as error:
        raise DeviceBusy(
            f"This device is busy with {_described(owner)}.",
            "Two runs at once would disturb each other; wait for its end.",
        ) from error
    except OSError as error:
        lock.release()
        raise WeighbridgeError(
            f"The device's lock cannot be written in {path.parent}: {error.strerror or error}.",
            "Free some space there, or set WEIGHBRIDGE_STATE to a folder that can be written.",
        ) from error
    try:
        for sentence in repair(state_dir()):
            print(sentence, file=sys.stderr, flush=True)
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def is_held(path: Path) -> bool:
    """Say whether a living process holds the lock at `path`."""
    from filelock import FileLock, Timeout

    if not path.exists():
        return False
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def _described(owner: Path) -> str:
    try:
        said = json.loads(owner.read_text(encoding="utf-8"))
        return f"run {said['run_id']} (process {said['pid']}, since {said['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another run"
