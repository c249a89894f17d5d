"""A run in which every scenario, verdict and flag of the dashboard occurs, with numbers that a reader can check by hand.

Two devices: `lab-a` (the baseline) and `lab-b`, another kernel and governor. Loaded by path from conftest.py.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from harness.canonical import sha256_hex
from harness.documents import Bundle, write_run
from harness.records import (
    Accuracy,
    Artifact,
    Case,
    Change,
    ColdStart,
    ComputeUnit,
    Device,
    Effective,
    Energy,
    Environment,
    Fidelity,
    Flag,
    Latency,
    Measurement,
    Memory,
    OverTime,
    Placement,
    Preparation,
    Quantile,
    RateCurve,
    RatePoint,
    Run,
    SampleBlob,
    Sampling,
    SelfCost,
    Slice,
    Source,
    Stages,
    SuiteRef,
    Trial,
)

Identify = Callable[..., str]
TOO_FEW = Quantile(None, reason="1,800 samples are worth 900 independent ones; an interval takes 3,688.")
SOURCE = Source("measured", "weighbridge", "0.1.0")
CONDITIONS = {
    "other_load": 0.02, "steal": 0.004, "frequency_mhz": {"low": 2400.0, "high": 3100.0, "median": 2900.0},
    "temperature_c": {"low": 61.0, "high": 72.5, "median": 70.0},
}  # fmt: skip


def over_trials(value: float, share: float = 0.02, trials: int = 9) -> Quantile:
    method = f"median over trials, 95 % interval of the median over {trials} trials, one unit measured"
    return Quantile(value, value * (1 - share), value * (1 + share), method)


def ranged(value: float, share: float = 0.05) -> Quantile:
    return Quantile(value, value * (1 - share), value * (1 + share), "median, range of 3 trials, one unit measured")


def latency(p50: float, quantile: Callable[..., Quantile] = over_trials) -> Latency:
    return Latency(
        1800, p50 * 1.05, p50 * 0.9, p50 * 2, quantile(p50), quantile(p50 * 1.1), quantile(p50 * 1.15),
        quantile(p50 * 1.4), TOO_FEW,
    )  # fmt: skip


def accuracy(value: float, gate: Any, low: float, high: float, **more: Any) -> Accuracy:
    return Accuracy(
        "top1", value, reference=0.8673, relative=value / 0.8673, gate=gate, samples=113, dataset="stamps-imagenet",
        relative_low=low, relative_high=high, target=0.99, method="paired, exact", **more,
    )  # fmt: skip


class Maker:
    """Makes the measurements of one run and keeps their blobs."""

    def __init__(self, key: str, identify: Identify, faster: float) -> None:
        self.key, self.identify, self.faster = key, identify, faster
        self.blobs: dict[str, bytes] = {}
        self.measurements: list[Measurement] = []

    def blob(self, what: str, middle_ms: float, count: int = 200) -> SampleBlob:
        seed = len(self.blobs)
        drawn = np.random.RandomState(seed).lognormal(np.log(middle_ms * 1e6), 0.08, count)
        packed = zlib.compress(drawn.astype("<i8").tobytes())
        self.blobs[sha256_hex(packed)] = packed
        return SampleBlob(what, sha256_hex(packed), count, len(packed))

    def trials(self, p50: float, count: int = 9, *more: tuple[str, float]) -> tuple[Trial, ...]:
        made = []
        for place in range(count):
            blobs = [self.blob("latency_ns", p50), *(self.blob(what, middle) for what, middle in more)]
            steady = (
                {"unsteady_reason": "more than half would have to go"} if place == 1 else {"discarded_unsteady": 12}
            )
            start = 10_000_000_000 * (place + 1)
            made.append(Trial(
                f"t{place + 1}", "timing", "ok", None, start, start + 8_000_000_000, 25, 1000 / p50, tuple(blobs),
                conditions=CONDITIONS, **steady,
            ))  # fmt: skip
        return tuple(made)

    def add(self, scenario: str, p50: float | None, **changes: Any) -> None:
        """One measurement; fields of the case and of the measurement are told apart by their names."""
        asked = {name: changes.pop(name) for name in list(changes) if name in Case.__dataclass_fields__}
        case = replace(
            Case("efficientnet-lite0", "stamps-imagenet@" + "d" * 64, "a" * 64, "fp32", "fp32", "onnxruntime", "cpu", "cpu",
                 scenario, input_size="1x3x224x224"),
            **asked,
        )  # fmt: skip
        base = Measurement(
            self.identify("rich", self.key, case.key), case, case.key, "ok",
            workload_family="efficientnet-lite0", workload_title="EfficientNet-Lite0",
            artifact=Artifact("onnx", case.artifact_precision, sha256_hex(case.artifact_precision.encode()), 18_600_000,
                              f"efficientnet-lite0.{case.artifact_precision}.onnx", source_sha256="a" * 64,
                              calibration="stamps-calibration@" + "c" * 64 if "int8" in case.artifact_precision else None),
            effective=Effective(case.target, "cpu", "fp32", 2, 1, case.backend, "1.32.0", ("CPU",),
                                Placement({"CPUExecutionProvider": 1.0}, None, "profile")),
            latency_ms=latency(p50 / self.faster) if p50 else None,
            throughput_per_s=1000 * self.faster / p50 if p50 else None,
            throughput=over_trials(1000 * self.faster / p50) if p50 else None,
            stages_ms=Stages(1.2, 0.8, p50, 0.02) if p50 else None,
            memory_mb=Memory(212.0),
            energy=Energy(0.31 / self.faster, None, 0.25, 41.0, 18.0, 22.0, "rapl:package-0", "cpu_package", "counter_diff",
                          "metered", 400),
            accuracy=accuracy(0.8673, "passed", 1.0, 1.0),
            fidelity=Fidelity("onnxruntime cpu fp32", 113, 1.0, 0.999999, 1.2e-05, 3.1e-06),
            sampling=Sampling(9, "p50", "narrow_enough", "Narrow enough: within 2.0 % of the median; 5.0 % was asked for.",
                              (8, 12, 16, 24), 0.05, 0.02),
            trials=self.trials(p50) if p50 else (),
        )  # fmt: skip
        self.measurements.append(replace(base, **changes))


def rich_run(key: str, identify: Identify, faster: float = 1.0, governor: str = "performance") -> Bundle:
    """The whole run of one device; `faster` divides every time."""
    maker = Maker(key, identify, faster)
    add = maker.add
    add("single_stream", 10.0)
    add("single_stream", 4.0, artifact_precision="int8",
        effective=Effective("cpu", "cpu", "int8", 2, 1, "onnxruntime", "1.32.0", ("CPU",)),
        accuracy=accuracy(0.8584, "undecided", 0.965, 1.0, samples_needed=770),
        flags=(Flag("gate_undecided", "113 samples cannot tell whether 99 % is kept; about 770 would."),))  # fmt: skip
    add("single_stream", 3.5, artifact_precision="int4",
        effective=Effective("cpu", "cpu", "int4", 2, 1, "onnxruntime", "1.32.0", ("CPU",)),
        accuracy=accuracy(0.5398, "failed", 0.55, 0.70),
        flags=(Flag("gate_failed", "It keeps 62.2 % of the reference's accuracy; 99 % is asked for."),
               Flag("low_fidelity", "The smallest cosine to the fp32 outputs is 0.71.")),
        fidelity=Fidelity("onnxruntime cpu fp32", 113, 0.61, 0.71, 3.4, 0.8))  # fmt: skip
    add("single_stream", 7.0, backend="openvino", requested_precision="default",
        effective=Effective("cpu", "cpu", "bf16", 2, 1, "openvino", "2026.1", ("CPU",)))  # fmt: skip
    add("single_stream", 9.0, backend="tflite",
        effective=Effective("cpu", "cpu", "fp32", 2, 1, "tflite", "2.1.0", ("XNNPACK", "CPU"),
                            Placement({"XNNPACK": 0.66, "CPU": 0.34}, {"XNNPACK": 0.9, "CPU": 0.1}, "profile")),
        latency_ms=latency(9.0 / faster, ranged), trials=maker.trials(9.0, 3),
        flags=(Flag("mixed_placement", "The network's nodes ran on several processors: XNNPACK 66%, CPU 34%."),
               Flag("other_load", "Other processes used 31 % of the processors during a window.")))  # fmt: skip
    add("single_stream", 9.8, backend="openvino", target="auto",
        effective=Effective("auto", "cpu", "fp32", 2, 1, "openvino", "2026.1", ("CPU",)),
        flags=(Flag("auto_target", "AUTO chose CPU."),))  # fmt: skip
    for batch, rate in ((1, 100.0), (2, 180.0), (4, 300.0), (8, 330.0), (16, 335.0), (32, 210.0)):
        add("offline", None, batch=batch, throughput_per_s=rate * faster, throughput=over_trials(rate * faster),
            trials=maker.trials(1000 / rate))  # fmt: skip
    points = tuple(
        RatePoint(
            rate,
            min(rate, 92.0),
            6000,
            over_trials(p50, 0.03),
            over_trials(p90, 0.04),
            over_trials(p99, 0.08),
            rate < 95,
            meets,
        )
        for rate, p50, p90, p99, meets in (
            (20.0, 10.2, 11.0, 12.0, "met"),
            (50.0, 10.6, 12.1, 14.0, "met"),
            (70.0, 11.9, 16.0, 21.0, "undecided"),
            (85.0, 15.0, 29.0, 47.0, "missed"),
            (95.0, 80.0, 300.0, 620.0, "missed"),
        )
    )
    add("server", 10.6, scenario_parameters={"limit_ms": 20.0, "percentile": 99}, throughput_per_s=50.0,
        throughput=over_trials(50.0), rate_curve=RateCurve(points, "p99", 20.0, 50.0))  # fmt: skip
    slices = tuple(
        Slice(
            10.0 * n,
            10.0 * (n + 1),
            900,
            10 + 0.12 * max(0, n - 10),
            14 + 0.2 * max(0, n - 10),
            95.0,
            3100.0 - 25 * max(0, n - 10),
            48 + 24 * (1 - 0.85**n),
        )
        for n in range(30)
    )
    add("sustained", 11.0, scenario_parameters={"duration_s": 300},
        over_time=OverTime(slices, 1.2, 1.17, 1.24, "slower"),
        flags=(Flag("throttled", "The processor lowered its clock because of heat."),))  # fmt: skip
    for file_cache, compile_cache, parts in (
        ("warm", "off", (45.0, 220.0, 80.0, None, 60.0)), ("cold", "off", (140.0, 690.0, 310.0, None, 75.0)),
        ("warm", "warm", (44.0, 221.0, 24.0, None, 31.0)),
    ):  # fmt: skip
        caches = {"file_cache": file_cache, "compile_cache": compile_cache}
        trial = Trial("t1", "cold", "ok", reason=None)
        add("cold_start", None, scenario_parameters=caches, cold_start_ms=ColdStart(*parts, caches=caches),
            trials=(trial,) * 1, throughput_per_s=None)  # fmt: skip
    add("duty_cycle", 16.0, scenario_parameters={"period_s": 1.0},
        trials=maker.trials(16.0, 6, ("back_to_back_ns", 10.0)),
        thermal={"idle_penalty": {**asdict(over_trials(1.6, 0.05)), "trials": 9, "back_to_back_p50_ms": 10.0}})  # fmt: skip
    number = {"lab-a": 1, "lab-b": 2}[key]
    run = Run(
        identify("rich-run", key), "complete",
        Device(key, f"00000000-0000-4000-8000-0000000000a{number}", "Acme Server 2000",
               (ComputeUnit("cpu", "cpu", f"Acme CPU 9000 with a rather long name, revision {number}", "Acme"),), "server",
               "Acme"),
        Environment({"cpu": {"model": f"Acme CPU 9000 r{number}"}},
                    {"os": {"name": "Debian 13"}, "kernel": {"release": f"6.12.{number}"},
                     "power": {"governor": governor}}, {"load_1min": 0.2}),
        SuiteRef("standard", "2", "c" * 64), "manual", "2026-07-01T10:00:00+00:00", "2026-07-01T10:20:00+00:00", SOURCE,
        tuple(maker.measurements), "0.2.0", self_cost=SelfCost(0.14, 0.61, 5, 100_000),
        preparation=Preparation((Change("governor of cpu0", "powersave", "performance", True),), {"turbo": "not permitted"}),
    )  # fmt: skip
    named = {blob.sha256 for one in run.measurements for trial in one.trials for blob in trial.samples}
    return Bundle(write_run(run), {digest: data for digest, data in maker.blobs.items() if digest in named})
