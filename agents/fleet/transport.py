"""One SSH connection to one device: commands with deadlines, and files with checksums.

The state of the link is never the state of a run: nothing that must live longer than a call runs inside the channel.
"""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import paramiko

from agents.fleet.connecting import connect
from agents.fleet.inventory import FleetDevice
from harness.errors import TransportError

CALL_S = 60.0
MAX_OUTPUT_BYTES = 8 * 1024 * 1024
MAX_FILE_BYTES = 1024 * 1024 * 1024
_BLOCK = 256 * 1024
# Runs on the device's own interpreter, any Python 3: what arrived is hashed where it lies.
_SHA256 = """
import hashlib, sys
for path in sys.argv[1:]:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1048576), b""):
                digest.update(block)
        print(digest.hexdigest())
    except OSError:
        print("-")
"""
_PATHS_AT_ONCE = 200


@dataclass(frozen=True)
class Completed:
    """What a command on the device left behind."""

    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def last_words(self) -> str:
        """The end of what it said, in one printable line."""
        text = (self.stderr or self.stdout).decode("utf-8", errors="replace").strip()
        return " ".join("".join(c if c.isprintable() else " " for c in text[-600:]).split())


class Connection:
    """An open connection; use it as a context manager. Every method raises TransportError, and none waits for ever."""

    def __init__(self, device: FleetDevice, known_hosts: Path, stop: threading.Event | None = None) -> None:
        """Connect. When `stop` is set, a command that is waited for is given up."""
        self.device = device
        self._stop = stop
        self._client = connect(device, known_hosts)
        self._sftp: paramiko.SFTPClient | None = None
        self._home: str | None = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up. Harmless twice, and to what was launched detached."""
        self._client.close()

    def run(
        self,
        arguments: Sequence[str],
        timeout_s: float = CALL_S,
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a command and wait for its end. Each argument arrives as it is: the shell there sees them quoted.

        Raises TransportError when the link breaks, the deadline passes, or it says more than 8 MiB. After a deadline
        the command may still be running there.
        """
        words = [*(f"{name}={value}" for name, value in (environment or {}).items()), *arguments]
        line = shlex.join(["env", *words] if environment else words)
        deadline = time.monotonic() + timeout_s
        try:
            channel = self._transport().open_session(timeout=min(timeout_s, CALL_S))
            try:
                channel.settimeout(timeout_s)
                channel.exec_command(line)
                channel.shutdown_write()
                return _drain(channel, deadline, self.device.name, arguments[0], self._stop)
            finally:
                channel.close()
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise self._lost(error) from error

    def check(
        self, arguments: Sequence[str], timeout_s: float = CALL_S, environment: Mapping[str, str] | None = None
    ) -> bytes:
        """Run a command that must succeed and return its standard output."""
        done = self.run(arguments, timeout_s, environment)
        if done.returncode != 0:
            what = f"On {self.device.name}, {arguments[0]!r} ended with status {done.returncode}: {done.last_words}"
            raise TransportError(what.rstrip(".: ") + ".")
        return done.stdout

    def absolute(self, path: str) -> str:
        """Return a path on the device from the root; relative ones lie below the user's home."""
        if path.startswith("/"):
            return path
        if self._home is None:
            self._home = self._files("find the home folder", lambda sftp: sftp.normalize("."))
        return str(PurePosixPath(self._home) / path)

    def real(self, path: str) -> str:
        """Return a path with its symbolic links followed."""
        found: str = self._files(f"look at {path}", lambda sftp: sftp.normalize(path))
        return found

    def make_folder(self, path: str, exclusive: bool = False) -> None:
        """Make a folder, with its parents. `exclusive` raises FileExistsError when it is there already."""
        for parent in [*reversed(PurePosixPath(path).parents)][1:]:
            if not self.exists(str(parent)):
                self._make_one(str(parent), exclusive=False)
        self._make_one(path, exclusive)

    def exists(self, path: str) -> bool:
        """Say whether a file or folder is there."""
        return self.size(path) is not None

    def size(self, path: str) -> int | None:
        """Return a file's size in bytes, None where there is none."""

        def look(sftp: paramiko.SFTPClient) -> int | None:
            try:
                return sftp.stat(path).st_size or 0
            except FileNotFoundError:
                return None

        found: int | None = self._files(f"look at {path}", look)
        return found

    def read(self, path: str, limit: int = 1024 * 1024) -> bytes | None:
        """Read a small file whole; None where there is none."""

        def read(sftp: paramiko.SFTPClient) -> bytes | None:
            try:
                with sftp.open(path, "rb") as file:
                    return bytes(file.read(limit + 1))
            except FileNotFoundError:
                return None

        data: bytes | None = self._files(f"read {path}", read)
        if data is not None and len(data) > limit:
            raise TransportError(f"On {self.device.name}, {path} is larger than {limit} bytes.")
        return data

    def upload(self, source: Path | bytes, path: str, sha256: str | None = None) -> None:
        """Bring a file to the device whole or not at all: to `.part`, hashed there, then renamed over `path`."""
        self.upload_all([(source, path)], {path: sha256} if sha256 is not None else {})

    def upload_all(self, files: Sequence[tuple[Path | bytes, str]], sha256: Mapping[str, str] | None = None) -> None:
        """`upload` for many files, hashed there with one command. Raises TransportError; then `.part` files are removed.

        `sha256` names, by path on the device, what a file must be; else it must only arrive as it was sent.
        """
        parts = {path: f"{path}.{uuid.uuid4().hex[:8]}.part" for _, path in files}
        sent: dict[str, str] = {}
        try:
            for source, path in files:
                sent[path] = self._put(source, parts[path])
                expected = (sha256 or {}).get(path, sent[path])
                if sent[path] != expected:
                    raise TransportError(f"The file {source!s} changed: it no longer has the SHA-256 {expected}.")
            found = self.digests([parts[path] for path in sent])
            for path, digest in sent.items():
                if found[parts[path]] != digest:
                    raise TransportError(
                        f"{path} arrived damaged on {self.device.name}: SHA-256 {found[parts[path]]}, sent {digest}.",
                        "Check the network and the device's disk, then try again.",
                    )
            for path in sent:
                self._rename(parts[path], path)
        except TransportError:
            with contextlib.suppress(TransportError):  # the first error says more
                for part in parts.values():
                    self.remove(part)
            raise

    def digests(self, paths: Sequence[str]) -> dict[str, str | None]:
        """Return the SHA-256 of files as the device computes them where they lie; None where there is no file."""
        found: dict[str, str | None] = {}
        for start in range(0, len(paths), _PATHS_AT_ONCE):
            chunk = paths[start : start + _PATHS_AT_ONCE]
            output = self.check([self.device.python, "-I", "-c", _SHA256, *chunk], timeout_s=600)
            lines = output.decode("ascii", errors="replace").split()
            if len(lines) != len(chunk):
                raise TransportError(f"{self.device.name} did not hash what it was asked to.")
            found |= {path: None if line == "-" else line for path, line in zip(chunk, lines, strict=True)}
        return found

    def _put(self, source: Path | bytes, part: str) -> str:
        """Write a new file there; returns the SHA-256 of what was sent."""

        def put(sftp: paramiko.SFTPClient) -> str:
            digest = hashlib.sha256()
            with sftp.open(part, "wbx") as file:
                file.set_pipelined(True)
                for block in _blocks(source):
                    digest.update(block)
                    file.write(block)
            sftp.chmod(part, 0o600)
            return digest.hexdigest()

        sent: str = self._files(f"write {part}", put)
        return sent

    def _rename(self, part: str, path: str) -> None:
        self._files(f"rename {part}", lambda sftp: sftp.posix_rename(part, path))

    def download(self, path: str, sha256: str, limit: int = MAX_FILE_BYTES) -> bytes:
        """Fetch a file that must have this SHA-256. Raises TransportError otherwise, or when it exceeds `limit` bytes."""

        def get(sftp: paramiko.SFTPClient) -> bytes:
            with sftp.open(path, "rb") as file:
                size = file.stat().st_size or 0
                if size > limit:
                    raise TransportError(
                        f"On {self.device.name}, {path} has {size} bytes; at most {limit} are fetched."
                    )
                file.prefetch(size, max_concurrent_requests=64)
                blocks = []
                left = size
                while left > 0 and (block := file.read(min(_BLOCK, left))):
                    blocks.append(block)
                    left -= len(block)
                return b"".join(blocks)

        data: bytes = self._files(f"fetch {path}", get)
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise TransportError(
                f"{path} arrived damaged from {self.device.name}: SHA-256 {found}, expected {sha256}.",
                "The copy on the device stays; `weigh fleet fetch` tries again.",
            )
        return data

    def remove(self, path: str) -> None:
        """Remove a file if it is there."""

        def remove(sftp: paramiko.SFTPClient) -> None:
            with contextlib.suppress(FileNotFoundError):
                sftp.remove(path)

        self._files(f"remove {path}", remove)

    def link(self, target: str, path: str) -> None:
        """Make `path` a symbolic link to `target`, replacing an older one in one step."""
        part = f"{path}.{uuid.uuid4().hex[:8]}.part"
        self._files(f"link {path}", lambda sftp: sftp.symlink(target, part))
        self._rename(part, path)

    def _make_one(self, path: str, exclusive: bool) -> None:
        try:
            self._files(f"make {path}", lambda sftp: sftp.mkdir(path, 0o700))
        except TransportError:
            # SFTP says no more than "Failure" when the name is taken.
            if not self.exists(path):
                raise
            if exclusive:
                raise FileExistsError(path) from None

    def _files(self, what: str, work: Any) -> Any:
        try:
            if self._sftp is None:
                self._sftp = self._client.open_sftp()
                channel = self._sftp.get_channel()
                assert channel is not None
                channel.settimeout(CALL_S)
            return work(self._sftp)
        except (ConnectionError, TimeoutError, EOFError, paramiko.SSHException) as error:
            raise self._lost(error) from error
        except OSError as error:
            raise TransportError(f"On {self.device.name}, cannot {what}: {error.strerror or error}.") from error

    def _transport(self) -> paramiko.Transport:
        transport = self._client.get_transport()
        if transport is None or not transport.is_active():
            raise TransportError(f"The connection to {self.device.name} is closed.")
        return transport

    def _lost(self, error: BaseException) -> TransportError:
        why = str(error) or type(error).__name__
        return TransportError(f"The connection to {self.device.name} ({self.device.address}) broke: {why}.")


def _blocks(source: Path | bytes) -> Any:
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _drain(
    channel: paramiko.Channel, deadline: float, name: str, command: str, stop: threading.Event | None
) -> Completed:
    """Read both streams until the command ends: an unread stream would fill its window and stop the command for ever."""
    streams: dict[str, list[bytes]] = {"out": [], "err": []}
    total = 0
    pause = 0.002
    while True:
        moved = False
        for stream, ready, receive in (
            ("out", channel.recv_ready, channel.recv),
            ("err", channel.recv_stderr_ready, channel.recv_stderr),
        ):
            while ready():
                block = receive(_BLOCK)
                streams[stream].append(block)
                total += len(block)
                moved = True
                if total > MAX_OUTPUT_BYTES:
                    raise TransportError(f"On {name}, {command!r} says more than {MAX_OUTPUT_BYTES} bytes.")
        if channel.exit_status_ready() and channel.eof_received and not moved:
            return Completed(channel.recv_exit_status(), b"".join(streams["out"]), b"".join(streams["err"]))
        if channel.closed and not moved and not channel.exit_status_ready():
            raise TransportError(f"The connection to {name} broke while {command!r} ran.")
        if stop is not None and stop.is_set():
            raise TransportError(f"Stopped while {command!r} ran on {name}.", "It may still be running there.")
        if time.monotonic() > deadline:
            raise TransportError(f"On {name}, {command!r} did not end in time.", "It may still be running there.")
        pause = 0.002 if moved else min(pause * 1.5, 0.1)
        time.sleep(0 if moved else pause)
