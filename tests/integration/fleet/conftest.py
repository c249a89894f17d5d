"""Real servers for the tests of push, serve and fleet: uvicorn and OpenSSH on loopback."""

from __future__ import annotations

import socket
import struct
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

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


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., ApiServer]]:
    """Start the ingest API on a free port over a new SQLite store."""
    stops: list[Callable[[], None]] = []

    def start(limits: Limits | None = None) -> ApiServer:
        store = f"sqlite:///{tmp_path / f'store{len(stops)}.sqlite'}"
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
