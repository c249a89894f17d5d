"""Real servers for the tests of push, serve and fleet: uvicorn and OpenSSH on loopback."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
import uvicorn
from sqlalchemy import Engine

from db.api.app import create_app
from db.api.limits import Limits
from db.api.tokens import create_token
from db.store import open_store
from harness.canonical import sha256_hex
from harness.documents import Bundle, write_run
from harness.records import (
    Case,
    Device,
    Environment,
    Measurement,
    Run,
    SampleBlob,
    Source,
    SuiteRef,
    Trial,
)

MakeBundle = Callable[..., Bundle]


@pytest.fixture
def make_bundle() -> MakeBundle:
    """Make a valid bundle: one failed measurement with one trial and its blob of two latencies."""

    def make(
        device: str = "pi5", device_uuid: str | None = None, run_id: str | None = None, **fields: object
    ) -> Bundle:
        blob = zlib.compress(struct.pack("<2q", 1_000_000, uuid.uuid4().int % 10**9))
        case = Case("basic-pitch", None, None, "fp32", "fp32", "onnxruntime", "cpu", None, "single_stream")
        named = SampleBlob("latency_ns", sha256_hex(blob), 2, len(blob))
        trial = Trial(str(uuid.uuid4()), "timing", "failed", reason="a test", samples=(named,))
        run = Run(
            run_id=run_id or str(uuid.uuid4()),
            status="complete",
            device=Device(device, device_uuid or str(uuid.uuid5(uuid.NAMESPACE_DNS, device)), "Raspberry Pi 5 8 GB"),
            environment=Environment({"cpu": "a"}, {"os": "b"}),
            suite=SuiteRef("quick", "1", "0" * 64),
            trigger="manual",
            started_at="2026-01-02T03:04:05Z",
            finished_at="2026-01-02T03:05:05Z",
            source=Source("measured", "weighbridge"),
            measurements=(Measurement(str(uuid.uuid4()), case, case.key, "failed", reason="a test", trials=(trial,)),),
        )
        return Bundle(write_run(replace(run, **fields)), {named.sha256: blob})  # type: ignore[arg-type]

    return make


@dataclass
class ApiServer:
    """A running ingest API."""

    url: str
    engine: Engine
    store: str

    def token(self, device: str) -> str:
        return create_token(self.engine, device)[1]


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite store without content; copying it is quicker than migrating one for each test."""
    path = tmp_path_factory.mktemp("migrated") / "store.sqlite"
    store = open_store(f"sqlite:///{path}")
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    return path


@pytest.fixture
def serve(tmp_path: Path, migrated: Path) -> Iterator[Callable[..., ApiServer]]:
    """Start the ingest API on a free port over a new SQLite store."""
    stops: list[Callable[[], None]] = []

    def start(limits: Limits | None = None, url: str | None = None) -> ApiServer:
        path = tmp_path / f"store{len(stops)}.sqlite"
        if url is None:
            shutil.copyfile(migrated, path)
        store = url or f"sqlite:///{path}"
        engine = open_store(store).engine
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(create_app(engine, limits), log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()

        def stop() -> None:
            server.should_exit = True
            thread.join(10)
            listener.close()
            engine.dispose()

        stops.append(stop)
        return ApiServer(f"http://127.0.0.1:{listener.getsockname()[1]}", engine, store)

    yield start
    for stop in stops:
        stop()


SSHD = "/usr/sbin/sshd"
STAND_IN = Path(__file__).parent / "stand_in"


@dataclass
class SshDevice:
    """A "device": a real sshd on a free port of this machine, with folders of its own."""

    name: str
    root: Path
    port: int
    login_key: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def host_key(self) -> Path:
        return self.root / "host_key"

    @property
    def fingerprint(self) -> str:
        """As OpenSSH computes it."""
        shown = subprocess.run(["ssh-keygen", "-lf", str(self.host_key)], capture_output=True, text=True, check=True)
        return shown.stdout.split()[1]

    @property
    def address(self) -> str:
        return f"{getpass.getuser()}@127.0.0.1:{self.port}"

    @property
    def folder(self) -> Path:
        return self.root / "weighbridge"

    def hold(self) -> None:
        """Make the next suite go on until `release`."""
        (self.root / "hold").touch()

    def release(self) -> None:
        (self.root / "hold").unlink(missing_ok=True)

    def new_host_key(self) -> None:
        for path in (self.host_key, self.host_key.with_suffix(".pub")):
            path.unlink(missing_ok=True)
        make_key(self.host_key)

    def start(self, stand_in: bool = True) -> None:
        """Start sshd. The environment of its sessions is the device's own, not the test's."""
        environment = {f"WEIGHBRIDGE_{name}": self.root / name.lower() for name in ("STATE", "DATA", "CONFIG")}
        environment["WEIGHBRIDGE_CACHE"] = self.root / "cache"
        if stand_in:
            environment |= {"STAND_IN": self.root, "PYTHONPATH": STAND_IN}
        config = self.root / "sshd_config"
        lines = [
            "ListenAddress 127.0.0.1",
            f"Port {self.port}",
            f"HostKey {self.host_key}",
            f"AuthorizedKeysFile {self.root / 'authorized_keys'}",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
            "PidFile none",
            "Subsystem sftp internal-sftp",
            "SetEnv " + " ".join(f"{name}={value}" for name, value in environment.items()),
        ]
        config.write_text("\n".join(lines) + "\n")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        with (self.root / "sshd.log").open("ab") as log:
            self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(config)], stderr=log)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                probe.recv(64)
                return
            assert self.process.poll() is None, (self.root / "sshd.log").read_text()
            time.sleep(0.02)
        raise AssertionError("sshd did not start")

    def stop(self) -> None:
        """Stop sshd and every session of it; agents that were launched live on."""
        if self.process is not None:
            sessions = psutil.Process(self.process.pid).children(recursive=False)
            self.process.terminate()
            self.process.wait(10)
            for session in sessions:
                with contextlib.suppress(psutil.NoSuchProcess):
                    session.kill()
            self.process = None

    def agents(self) -> list[psutil.Process]:
        """The agents that live on this device."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if "execute" in words and any(str(self.folder) in word for word in words):
                found.append(process)
        return found


def make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


@pytest.fixture
def ssh_device(tmp_path: Path) -> Iterator[Callable[..., SshDevice]]:
    """Start real OpenSSH servers; each is one device."""
    assert Path(SSHD).exists(), "No OpenSSH server on this machine: run tests/system_packages.sh"
    devices: list[SshDevice] = []
    login_key = tmp_path / "login_key"
    make_key(login_key)

    def start(name: str, stand_in: bool = True) -> SshDevice:
        root = tmp_path / f"device-{name}"
        root.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        device = SshDevice(name, root, port, login_key)
        device.new_host_key()
        (root / "authorized_keys").write_text(login_key.with_suffix(".pub").read_text())
        device.start(stand_in)
        devices.append(device)
        return device

    yield start
    for device in devices:
        device.release()
        device.stop()
        for process in device.agents():
            process.kill()


@pytest.fixture
def here(capfd, monkeypatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`weigh` in this process: the same front door without the second that a new interpreter takes."""
    import weigh as front_door

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["weigh", *arguments])
        try:
            front_door.main()
            status = 0
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else int(left.code is not None)
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, status, out, err)

    return run


@pytest.fixture
def enrolled(ssh_device, here) -> Callable[..., SshDevice]:
    """Start a device and enroll it with its fingerprint."""

    def start(name: str, stand_in: bool = True) -> SshDevice:
        device = ssh_device(name, stand_in)
        done = here(
            "fleet", "enroll", name, device.address, "--fingerprint", device.fingerprint,
            "--key-file", str(device.login_key), "--python", sys.executable, "--environment", sys.executable,
            "--folder", str(device.folder),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "The login works" in done.stdout, done.stderr
        return device

    return start
