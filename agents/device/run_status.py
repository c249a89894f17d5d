"""How a dispatched run says that it lives: status.json in its folder, replaced atomically, read by polling."""

from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

STATUS = "status.json"
STATUS_SCHEMA = "weighbridge/status/1"
HEARTBEAT_S = 10.0


class StatusWriter:
    """Writes the status at every change and every ten seconds. Use as a context manager."""

    def __init__(self, folder: Path, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._path = folder / STATUS
        self._heartbeat_s = heartbeat_s
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._fields: dict[str, Any] = {
            "schema": STATUS_SCHEMA,
            "state": "running",
            "reason": None,
            "boot_id": boot_id(),
            "pid": os.getpid(),
            "process_started_s": _process_start(),
            "started_at": _now(),
            "heartbeat": 0,
            "done": 0,
            "total": None,
            "text": "starting",
        }

    def __enter__(self) -> StatusWriter:
        self._write()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def progress(self, done: int, total: int, text: str) -> None:
        """Say how far the run is."""
        self._write(done=done, total=total, text=text)

    def finish(self) -> None:
        """Say that the result lies there, whole."""
        self._write(state="finished", text="done")

    def fail(self, reason: str) -> None:
        """Say why there is no result and will be none."""
        self._write(state="failed", reason=reason[:2000])

    def _beat(self) -> None:
        while not self._ended.wait(self._heartbeat_s):
            self._write()

    def _write(self, **changed: Any) -> None:
        with self._guard:
            self._fields.update(changed)
            self._fields["heartbeat"] += 1
            self._fields["heartbeat_at"] = _now()
            part = self._path.with_name(f"{STATUS}.part")
            try:
                part.write_text(json.dumps(self._fields), encoding="utf-8")
                os.replace(part, self._path)
            except OSError:
                # A full disk must not end a measurement; whoever polls sees the heartbeat stand still.
                return


def boot_id() -> str:
    """Return what changes with every start of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        import psutil

        return f"boot-{psutil.boot_time():.0f}"


def _process_start() -> float:
    import psutil

    return float(psutil.Process().create_time())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
