"""One worker process: started in a private folder and a process group of its own, with a time limit, and never left behind.

The worker's result is its trial file; its exit status says how it died where there is none. Standard output is thrown away,
because it belongs to the runtimes' noise; of standard error the end is kept as the worker's last words.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from harness.worker.job import SPAWNED_VARIABLE, TRIAL_FILE, TRIAL_SCHEMA, Job, write_job

LAST_WORDS_CHARACTERS = 2000
LAST_WORDS_BYTES = 64 * 1024  # kept while the worker runs, however much it prints
TRIAL_FILE_BYTES = 8 * 1024 * 1024
SAMPLE_FILE_BYTES = 512 * 1024 * 1024
# Runtimes read many variables of their own, so all pass but ours, Python's and what looks like a secret.
HIDDEN_PREFIXES = ("WEIGHBRIDGE_", "PYTHON", "PG")
HIDDEN_PARTS = ("TOKEN", "PASSWORD", "PASSWD", "SECRET", "CREDENTIAL", "API_KEY", "DATABASE_URL", "DSN")


@dataclass(frozen=True)
class Outcome:
    """What came of one worker: its own document, or the reason why there is none."""

    status: str  # ok, unsupported, failed
    reason: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)  # what -> raw content
    last_words: str | None = None
    notes: tuple[str, ...] = ()
    elapsed_s: float = 0.0  # from the start of the process to its end, as a run's budget counts it


def run_worker(
    archive: Path, interpreter: Path, job: Job, folder: Path, started: Callable[[int], None] | None = None
) -> Outcome:
    """Run `job` in a fresh process and return its outcome; `folder` is made for it and removed afterwards.

    `started` is told the process's identifier as soon as there is one. A crash, a hang or a garbled result is an outcome
    with a reason. KeyboardInterrupt stops the worker and is raised again.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        private = Path(tempfile.mkdtemp(prefix=f"{job.kind}-", dir=folder))
    except OSError as error:
        return Outcome("failed", f"The worker's folder cannot be made in {folder}: {error.strerror or error}.")
    try:
        job = replace(job, out_dir=str(private))
        job_file = private / "job.json"
        write_job(job, job_file)
        begin = time.monotonic()
        code, words, timed_out = _wait_for(archive, interpreter, job_file, private, job.timeout_s, started)
        return replace(_outcome(private, job, code, words, timed_out), elapsed_s=time.monotonic() - begin)
    except OSError as error:
        return Outcome("failed", f"The interpreter {interpreter} cannot be started: {error.strerror or error}.")
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _wait_for(
    archive: Path,
    interpreter: Path,
    job_file: Path,
    private: Path,
    timeout_s: float,
    started: Callable[[int], None] | None,
) -> tuple[int | None, str, bool]:
    """Start the worker and wait; return (exit status, last words, timed out). No process of its group survives."""
    environment = worker_environment(os.environ, private)
    own_group: dict[str, Any] = {"start_new_session": True} if os.name == "posix" else {}
    environment[SPAWNED_VARIABLE] = str(time.monotonic_ns())
    process = subprocess.Popen(
        [str(interpreter), "-I", str(archive), str(job_file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=private,
        env=environment,
        **own_group,
    )
    assert process.stderr is not None
    # Blocking threads, because Popen.wait with a timeout polls twenty times a second and would disturb the measurement.
    tail = _Tail(process.stderr)
    ended = threading.Event()
    threading.Thread(target=_announce_end, args=(process, ended), name="wait-for-worker", daemon=True).start()
    timed_out = False
    try:
        if started is not None:
            started(process.pid)
        timed_out = not ended.wait(timeout_s)
    finally:
        _kill_group(process)
        ended.wait(10)
        words = tail.close()
    return process.returncode, words, timed_out


def _announce_end(process: subprocess.Popen[bytes], ended: threading.Event) -> None:
    process.wait()
    ended.set()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass  # all of the group have ended


class _Tail:
    """Reads a pipe to its end on a thread and keeps the last bytes."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._kept = b""
        self._thread = threading.Thread(target=self._read, name="worker-stderr", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while data := os.read(self._pipe.fileno(), 65536):
            self._kept = (self._kept + data)[-LAST_WORDS_BYTES:]

    def close(self) -> str:
        """Return the last words; a grandchild that escaped its group and holds the pipe is not waited for long."""
        self._thread.join(2)
        if not self._thread.is_alive():
            self._pipe.close()
        return _printable(self._kept.decode("utf-8", errors="replace"))[-LAST_WORDS_CHARACTERS:]


def worker_environment(parent: Mapping[str, str], private: Path) -> dict[str, str]:
    """Return the worker's environment: the parent's, without ours, without secrets, with temporary files kept private."""
    kept = {
        name: value
        for name, value in parent.items()
        if not name.startswith(HIDDEN_PREFIXES) and not any(part in name.upper() for part in HIDDEN_PARTS)
    }
    return {**kept, "TMPDIR": str(private), "TEMP": str(private), "TMP": str(private)}


def _outcome(private: Path, job: Job, code: int | None, words: str, timed_out: bool) -> Outcome:
    if timed_out:
        return Outcome(
            "failed",
            f"The worker did not finish within {job.timeout_s:.0f} s and was stopped.",
            last_words=words or None,
        )
    path = private / TRIAL_FILE
    if not path.is_file():
        return Outcome("failed", death_of(code), last_words=words or None)
    try:
        if path.stat().st_size > TRIAL_FILE_BYTES:
            raise ValueError(f"it has more than {TRIAL_FILE_BYTES} bytes")
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
        if document["schema"] != TRIAL_SCHEMA or document["trial_id"] != job.trial_id:
            raise ValueError("it belongs to another job")
        status = document["status"]
        if status not in ("ok", "unsupported", "failed"):
            raise ValueError(f"it has the status {status!r}")
        files = {entry["what"]: _content(private, str(entry["what"])) for entry in document["files"]}
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        return Outcome("failed", f"The worker's trial file is not valid: {error}.", last_words=words or None)
    notes = () if code == 0 else (f"After writing its trial: {death_of(code)}",)
    reason = None
    if status != "ok":
        reason = _printable(f"{document.get('reason') or 'No reason was given.'} {document.get('fix') or ''}")
    return Outcome(status, reason, document, files, (words or None) if status == "failed" else None, notes)


def _printable(text: str) -> str:
    """Without what could steer a terminal: a runtime's words may repeat what stands in an untrusted model file."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text).strip()


def _content(private: Path, name: str) -> bytes:
    path = private / name
    if Path(name).name != name or path.is_symlink() or path.stat().st_size > SAMPLE_FILE_BYTES:
        raise ValueError(f"its file {name!r} is not acceptable")
    return path.read_bytes()


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def death_of(code: int | None) -> str:
    """Say in one sentence how a process with this exit status ended; a negative status is a signal's number."""
    if code is None:
        return "The worker could not be stopped."
    if code >= 0:
        return f"The worker ended with exit status {code} and left no result."
    name = signal.Signals(-code).name if -code in list(signal.Signals) else f"signal {-code}"
    hints = {
        "SIGKILL": "The worker was killed by SIGKILL (out of memory?).",
        "SIGSEGV": "The worker crashed with a segmentation fault (SIGSEGV).",
        "SIGABRT": "The worker was aborted by its runtime (SIGABRT).",
        "SIGILL": "The worker met an instruction that this processor does not have (SIGILL).",
        "SIGALRM": "The worker ran into its own time limit (SIGALRM).",
    }
    return hints.get(name, f"The worker was ended by {name}.")


def interpreter_for(backend: str, runtimes: Mapping[str, Path]) -> Path:
    """Return the Python that the configuration names for a backend, else the one that runs now."""
    return runtimes.get(backend, Path(sys.executable))
