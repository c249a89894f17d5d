"""Stores for the dashboard's tests: empty, one run, many runs beside published results (MLPerf Inference v3.0's digits)."""

from __future__ import annotations

import socket
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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
    Flag,
    Latency,
    Measurement,
    Memory,
    Official,
    Placement,
    Quantile,
    Run,
    SampleBlob,
    Source,
    Stages,
    SuiteRef,
    Trial,
)

HERE = Device(
    "bench-1",
    "00000000-0000-4000-8000-00000000beef",
    "Acme Server 2000",
    (ComputeUnit("cpu", "cpu", "Acme CPU 9000", "Acme"),),
    "server",
    "Acme",
)
TITLES = {
    "resnet50-seeded": ("resnet50", "ResNet-50, seeded weights"),
    "efficientnet-lite0": ("efficientnet-lite0", "EfficientNet-Lite0"),
    "mlperf-resnet50": ("resnet50", "ResNet-50 (MLPerf)"),
}
MLPERF = "MLPerf Inference v3.0, closed, {}"


@dataclass(frozen=True)
class MadeStore:
    """A store's address and what is in it."""

    url: str
    runs: dict[str, str]  # by device name: the newest run's id
    measurements: dict[str, str]  # by "device workload backend target scenario"


def identifier(*parts: object) -> str:
    """The same words, the same UUID: addresses in tests stay what they are."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, " ".join(str(part) for part in parts)))


def case_of(workload: str, backend: str, target: str, scenario: str, **changes: Any) -> Case:
    return replace(
        Case(
            workload=workload,
            dataset="stamps-imagenet@" + "d" * 64 if workload == "efficientnet-lite0" else None,
            source_weights="a" * 64,
            artifact_precision="fp32",
            requested_precision="fp32",
            backend=backend,
            target=target,
            compute_unit="cpu",
            scenario=scenario,
            scenario_parameters={"duration_s": 10.0},
            input_size="1x3x224x224",
        ),
        **changes,
    )


def measured(run_key: str, case: Case, p50: float | None, rate: float, **changes: Any) -> tuple[Measurement, bytes]:
    """A case measured here: a thousand log-normal samples around p50, and every part of the record filled in."""
    seed = int.from_bytes(case.key[:8].encode(), "little") % 2**32
    samples = np.random.RandomState(seed).lognormal(np.log((p50 or 1.0) * 1e6), 0.08, 1000).astype("<i8")
    packed = zlib.compress(samples.tobytes())
    ordered = np.sort(samples) / 1e6
    at = {
        name: float(ordered[int(1000 * part)])
        for name, part in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))
    }
    family, title = TITLES[case.workload]
    measurement = Measurement(
        measurement_id=identifier("measurement", run_key, case.key),
        case=case,
        case_key=case.key,
        status="ok",
        workload_family=family,
        workload_title=title,
        artifact=Artifact(
            "onnx", "fp32", "b" * 64, 102_000_000, f"{case.workload}.onnx", "recipe:resnet50", "a" * 64, "resnet50",
            "e" * 64,
            {"onnx": "1.19.0", "numpy": "2.3.1"}, "Apache-2.0",
        ),
        effective=Effective(
            case.target, "cpu", "fp32", 2, 1, case.backend, "1.32.0", ("Acme CPU 9000",),
            Placement({"CPUExecutionProvider": 1.0}, None, "profile"), {"tf32": "off"},
        ),
        latency_ms=None
        if p50 is None
        else Latency(
            1000, float(ordered.mean()), float(ordered[0]), float(ordered[-1]),
            *(Quantile(at[name]) for name in ("p50", "p90", "p95", "p99")),
            Quantile(None, reason="1,000 samples are too few for p99.9."),
        ),
        throughput_per_s=rate,
        stages_ms=Stages(3.1, 1.7, p50 or 1.0, 0.05),
        cold_start_ms=ColdStart(41.0, 210.0, 95.0, None, 61.0, {"page cache": "warm"}),
        memory_mb=Memory(412.5),
        energy=Energy(None, "This machine shows no energy counter (no /sys/class/powercap)."),
        accuracy=Accuracy("top1", None, "Seeded weights: accuracy has no meaning."),
        trials=(Trial(
            "t1", "timing", "ok", None, 10_000_000_000, 20_000_000_000, 12, rate,
            (SampleBlob("latency_ns", sha256_hex(packed), 1000, len(packed)),),
        ),),
    )  # fmt: skip
    return replace(measurement, **changes), packed


def refused(run_key: str, case: Case, status: str, reason: str) -> tuple[Measurement, bytes]:
    family, title = TITLES[case.workload]
    made = Measurement(
        measurement_id=identifier("measurement", run_key, case.key), case=case, case_key=case.key, status=status,  # type: ignore[arg-type]
        reason=reason, workload_family=family, workload_title=title,
    )  # fmt: skip
    return made, b""


def bundle(
    run_key: str, device: Device, source: Source, parts: list[tuple[Measurement, bytes]], **changes: Any
) -> Bundle:
    run = Run(
        run_id=identifier("run", run_key),
        status="complete",
        device=device,
        environment=Environment(
            {"cpu": "Acme CPU 9000", "memory_gb": 64},
            {"os": "Debian 13", "governor": "performance"},
            {"load_1min": 0.2},
        ),
        suite=SuiteRef("quick", "1", "c" * 64),
        trigger="manual",
        started_at="2026-05-01T10:00:00+00:00",
        finished_at="2026-05-01T10:02:00+00:00",
        source=source,
        measurements=tuple(part[0] for part in parts),
        agent_version="0.1.0",
    )
    blobs = {sha256_hex(data): data for _, data in parts if data}
    return Bundle(write_run(replace(run, **changes)), blobs)


def mlperf(
    device: str, hardware: str, kind: str, submitter: str, entries: list[tuple[str, dict[str, Any]]], count: int = 1
) -> Bundle:
    """An imported run with the digits of a published summary; what the summary does not say stays unknown."""
    parts = []
    for scenario, found in entries:
        case = Case(
            workload="mlperf-resnet50", dataset="imagenet-val", source_weights=None, artifact_precision="unknown",
            requested_precision="unknown", target=kind, compute_unit="unit", scenario=scenario,
            backend="tensorrt" if kind == "gpu" else "tflite" if "Pi" in hardware else "pytorch",
            scenario_parameters=found.get("parameters", {}), boundary="loadgen",
        )  # fmt: skip
        ms = found.get("ms")
        parts.append((
            Measurement(
                measurement_id=identifier(device, scenario), case=case, case_key=case.key, status="ok",
                workload_family="resnet50", workload_title="ResNet-50 (MLPerf)",
                effective=Effective(kind, "unit", found.get("precision"), runtime=found.get("runtime")),
                latency_ms=None if ms is None else Latency(
                    None, None, ms[0], None, Quantile(ms[1]), Quantile(ms[2]), Quantile(None, reason="left out here"),
                    Quantile(ms[3]), Quantile(None, reason="left out here"),
                ),
                throughput_per_s=found.get("rate"),
                official=Official(*found["official"]),
                energy=Energy(found.get("energy"), None if found.get("energy") else "The submission has no power log.",
                              scope="wall" if found.get("energy") else None),
                accuracy=Accuracy("top1", found["accuracy"], samples=50_000, dataset="imagenet-val"),
            ), b"",
        ))  # fmt: skip
    made = Device(
        device,
        identifier("device", device),
        f"Machine of {hardware}",
        (ComputeUnit("unit", kind, hardware, count=count),),
    )  # type: ignore[arg-type]
    source = Source(
        "imported",
        MLPERF.format(submitter),
        "v3.0",
        "Apache-2.0",
        "MLCommons",
        "https://github.com/mlcommons",
        f"closed/{submitter}",
    )
    return bundle(device, made, source, parts, trigger="import", started_at="2023-04-05T00:00:00+00:00",
                  finished_at=None, suite=SuiteRef("mlperf-inference", "v3.0", "f" * 64))  # fmt: skip


def early(value: float) -> tuple[str, float, str]:
    return ("early_stopping_p90_latency", value, "ms")


def offline(value: float, accuracy: float, **more: Any) -> tuple[str, dict[str, Any]]:
    found = {"rate": value, "official": ("samples_per_second", value, "samples/s"), "accuracy": accuracy}
    return ("offline", {**found, "parameters": {"samples_per_query": 26_400_000}, **more})


def published() -> list[Bundle]:
    """ResNet-50 of MLPerf Inference v3.0, from the submissions' own summaries."""
    tensorrt = {"runtime": "TensorRT", "precision": "int8"}
    return [
        mlperf("A100-PCIe-80GBx1_TRT", "NVIDIA A100-PCIe-80GB", "gpu", "NVIDIA", [
            ("single_stream", {"ms": (0.429818, 0.469708, 0.476417, 0.505558), "official": early(0.476438),
                               "accuracy": 0.76124, **tensorrt}),
            offline(39152.4, 0.76, **tensorrt),
        ]),
        mlperf("XE2420_T4x1_TRT", "NVIDIA T4", "gpu", "Dell", [
            ("single_stream", {"ms": (0.794071, 0.811896, 0.818142, 0.825392), "official": early(0.818169),
                               "accuracy": 0.76122, **tensorrt}),
            offline(6121.33, 0.76036, **tensorrt),
        ]),
        mlperf("rpi4-tflite-v2.11.0-ruy", "Raspberry Pi 4 Model B", "cpu", "Krai", [
            ("single_stream", {"ms": (534.165252, 552.717249, 570.70071, 615.909413), "official": early(572.834162),
                               "accuracy": 0.76442, "runtime": "TFLite v2.11.0 (ruy)"}),
        ]),
        mlperf("1-node-2S-SPR-PyTorch-INT8", "Intel Xeon Platinum 8480+", "cpu", "Intel", [
            offline(20578.9, 0.7573, runtime="PyTorch", precision="int8", energy=0.0312),
        ], count=2),
    ]  # fmt: skip


def first_run(run_key: str = "first", slower: float = 1.0, **changes: Any) -> Bundle:
    """One run of this machine: three backends, an unsupported target, a crash, an accuracy."""
    parts = []
    for backend, p50, rate in (("onnxruntime", 61.2, 17.9), ("openvino", 55.4, 20.1), ("tflite", 88.9, 12.3)):
        parts.append(measured(run_key, case_of("resnet50-seeded", backend, "cpu", "single_stream"), p50 * slower, rate))
        offline_case = case_of("resnet50-seeded", backend, "cpu", "offline", batch=8)
        if backend == "tflite":
            parts.append(
                refused(run_key, offline_case, "failed", "The worker was killed by signal 9 (SIGKILL) after 3 s.")
            )
        else:
            parts.append(measured(run_key, offline_case, None, rate * 1.4))
    cuda = case_of("resnet50-seeded", "onnxruntime", "cuda", "single_stream", compute_unit=None)
    reason = (
        "onnxruntime has no CUDAExecutionProvider here: libcudart.so.13 is not installed. Install weighbridge[cuda]."
    )
    parts.append(refused(run_key, cuda, "unsupported", reason))
    parts.append(measured(
        run_key, case_of("efficientnet-lite0", "onnxruntime", "cpu", "single_stream"), 9.31, 105.0,
        accuracy=Accuracy("top1", 0.867257, samples=113, dataset="stamps-imagenet", note="113 drawn stamps, not ImageNet."),
        flags=(Flag("noisy_neighbour", "Other processes used 31 % of the processor during the trial."),),
    ))  # fmt: skip
    return bundle(run_key, HERE, Source("measured", "weighbridge", "0.1.0"), parts, **changes)


def fill(place: Path | str, bundles: list[Bundle]) -> MadeStore:
    """Ingest the bundles into the SQLite file or the store with that address, and say what is in it then."""
    from db.queries import Filter, results, run_list
    from db.store import open_sink, open_store

    url = place if isinstance(place, str) else f"sqlite:///{place}"
    store = open_store(url)
    sink = open_sink(url)
    try:
        for made in bundles:
            sink.store(made)
        runs = {run.device: run.run_id for run in reversed(run_list(store.engine, 1000))}
        measurements = {
            f"{row.device} {row.workload} {row.backend} {row.target} {row.scenario}": row.measurement_id
            for row in reversed(results(store.engine, Filter(limit=10_000)))
        }
    finally:
        store.close()
        sink.opened.close()
    return MadeStore(url, runs, measurements)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> MadeStore:
    """A store with tables and nothing in them."""
    return fill(tmp_path_factory.mktemp("empty") / "store.sqlite", [])


@pytest.fixture(scope="session")
def one_run_store(tmp_path_factory: pytest.TempPathFactory) -> MadeStore:
    """This machine's first run, nothing beside it."""
    return fill(tmp_path_factory.mktemp("one") / "store.sqlite", [first_run()])


@pytest.fixture(scope="session")
def many_run_store(tmp_path_factory: pytest.TempPathFactory) -> MadeStore:
    """Two runs of this machine, published results beside them, and a device whose name is an attack on the page."""
    nasty = replace(HERE, name="<script>alert(1)</script>**[x](javascript:alert(1))**", uuid=identifier("nasty"))
    attack = bundle(
        "nasty", nasty, Source("measured", "weighbridge", "0.1.0"),
        [measured("nasty", case_of("resnet50-seeded", "onnxruntime", "cpu", "single_stream"), 70.0, 14.0)],
        started_at="2026-04-01T10:00:00+00:00", finished_at="2026-04-01T10:01:00+00:00",
    )  # fmt: skip
    later = first_run("second", 1.02, started_at="2026-06-01T10:00:00+00:00", finished_at="2026-06-01T10:02:00+00:00")
    return fill(tmp_path_factory.mktemp("many") / "store.sqlite", [first_run(), *published(), attack, later])


def rich_bundles() -> list[Bundle]:
    """Two devices on which everything was measured that the pages can show."""
    import importlib.util
    import sys

    place = Path(__file__).with_name("rich_run.py")
    spec = importlib.util.spec_from_file_location("rich_run", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["rich_run"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return [module.rich_run("lab-a", identifier), module.rich_run("lab-b", identifier, 1.3, "powersave")]


@pytest.fixture(scope="session")
def rich_store(tmp_path_factory: pytest.TempPathFactory) -> MadeStore:
    """Every scenario, precision, flag and gate, on two devices."""
    return fill(tmp_path_factory.mktemp("rich") / "store.sqlite", rich_bundles())


@pytest.fixture
def postgres_run_store(postgres_url: str) -> MadeStore:
    """This machine's first run and the published results in a real PostgreSQL."""
    return fill(postgres_url, [first_run(), *published()])


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[str], str]]:
    """Start the dashboard on a store as `weigh dashboard` does, once per store; the address. All are stopped at the end."""
    from dashboard import launch

    running: dict[str, tuple[Any, str]] = {}

    def start(store: str) -> str:
        if store not in running:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = int(probe.getsockname()[1])
            running[store] = (launch.start(store, "127.0.0.1", port), launch.reachable_address("127.0.0.1", port))
        return running[store][1]

    yield start
    for server, _ in running.values():
        launch.stop(server)
