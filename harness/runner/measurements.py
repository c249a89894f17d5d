"""From a case's outcomes to its measurement: figures, what really ran, flags, and the blobs with raw samples."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from harness.canonical import sha256_hex
from harness.energy import energy_of
from harness.judgement import flags
from harness.judgement.summary import median_ms, stability_flags, summarise_cold_start, summarise_latency
from harness.judgement.validity import judged
from harness.records import (
    Accuracy,
    ColdStart,
    Effective,
    Energy,
    Flag,
    Measurement,
    MeasurementStatus,
    Memory,
    Placement,
    SampleBlob,
    Source,
    Stages,
    Trial,
    TrialKind,
)
from harness.runner.cases import PlannedCase, PlannedTrial, compute_unit_of
from harness.runner.plan import CPU_TARGETS
from harness.runner.trial_process import Outcome

Ran = Sequence[tuple[PlannedTrial, Outcome]]
CACHES = {"compile": "off", "page": "not controlled"}  # the operating system may hold the model file in memory
OFF_THE_CLOCK = ("latency_ns", "query_ns", "decode_ns", "preprocess_ns", "postprocess_ns")


@dataclass(frozen=True)
class Assembled:
    """A measurement and the blobs that it names by digest."""

    measurement: Measurement
    blobs: dict[str, bytes]


def assemble(planned: PlannedCase, ran: Ran, accuracy: Accuracy | None, processors: int, source: Source) -> Assembled:
    """Summarise all finished trials of one case. Without a usable timing trial the figures stay None."""
    blobs: dict[str, bytes] = {}
    trials = tuple(_trial(trial, outcome, blobs) for trial, outcome in ran)
    workload = planned.intent.workload
    base = Measurement(
        measurement_id=planned.measurement_id,
        case=planned.case,
        case_key=planned.case.key,
        status="failed",
        workload_family=workload.family,
        workload_title=workload.title,
        artifact=planned.artifact,
        accuracy=accuracy,
        trials=trials,
    )
    if planned.status is not None:
        status = cast(MeasurementStatus, planned.status)
        return Assembled(replace(base, status=status, reason=planned.reason), blobs)
    timing = [(trial, outcome) for trial, outcome in ran if trial.job.kind == "timing"]
    good = [outcome for _, outcome in timing if outcome.status == "ok"]
    bad = [outcome for _, outcome in timing if outcome.status != "ok"]
    if bad or not good:
        return Assembled(_unusable(base, good, bad), blobs)
    unlike = _unlike(good)
    if unlike is not None:
        return Assembled(replace(base, status="invalid", reason=unlike), blobs)
    effective = _effective(planned, good, [o for t, o in ran if t.job.kind == "placement" and o.status == "ok"])
    single = planned.intent.scenario == "single_stream"
    latencies = [samples_of(outcome, "latency_ns") for outcome in good]
    latency = summarise_latency(latencies) if single else None
    stages = (
        Stages(
            decode=median_ms([samples_of(outcome, "decode_ns") for outcome in good]),
            preprocess=median_ms([samples_of(outcome, "preprocess_ns") for outcome in good]),
            inference=median_ms(latencies),
            postprocess=median_ms([samples_of(outcome, "postprocess_ns") for outcome in good]),
        )
        if single and planned.intent.batch == 1
        else None
    )
    energy, energy_flags = _energy(planned, ran)
    measurement = replace(
        base,
        status="ok",
        effective=effective,
        latency_ms=latency,
        throughput_per_s=float(np.median([float(outcome.document["throughput_per_s"]) for outcome in good])),
        stages_ms=stages,
        cold_start_ms=_cold_start(good),
        memory_mb=_memory(good),
        energy=energy,
        flags=(
            *_flags(planned, ran, effective, processors),
            *(stability_flags(latencies) if single else ()),
            *energy_flags,
        ),
    )
    return Assembled(_judge(measurement, source), blobs)


def samples_of(outcome: Outcome, what: str) -> npt.NDArray[np.int64]:
    """Return the raw nanoseconds of one kind, empty where the trial has none. A cut-off last value is left out."""
    data = outcome.files.get(what, b"")
    return np.frombuffer(data[: len(data) // 8 * 8], dtype="<i8").astype(np.int64)


def _unusable(base: Measurement, good: Sequence[Outcome], bad: Sequence[Outcome]) -> Measurement:
    """No figure comes out of a case of which a trial failed: what is left may be the lucky part."""
    if not bad:
        return replace(base, status="skipped", reason="The run was interrupted before a trial of this case ended.")
    reason = bad[0].reason or "The worker gave no reason."
    if good:
        reason = f"{len(bad)} of {len(good) + len(bad)} timing trials failed: {reason}"
    unsupported = not good and all(outcome.status == "unsupported" for outcome in bad)
    return replace(base, status="unsupported" if unsupported else "failed", reason=reason)


def _unlike(good: Sequence[Outcome]) -> str | None:
    """Say what differed between the trials of a case: a runtime that chooses may choose anew in each process."""
    for name in ("target", "precision", "devices"):
        told = [(outcome.document.get("report") or {}).get(name) for outcome in good]
        different = dict.fromkeys(
            ", ".join(map(str, value)) if isinstance(value, list) else str(value or "unknown") for value in told
        )
        if len(different) > 1:
            return f"The trials did not run alike, so their times do not belong together: {name} {' and '.join(different)}."
    return None


def _judge(measurement: Measurement, source: Source) -> Measurement:
    """Hold the measurement to the house's one validity rule."""
    status, reason = judged(measurement, source)
    return replace(measurement, status=status, reason=reason)


def _effective(planned: PlannedCase, good: Sequence[Outcome], placements: Sequence[Outcome]) -> Effective:
    report: Mapping[str, Any] = good[0].document.get("report") or {}
    placed: Mapping[str, Any] = (placements[0].document.get("report") if placements else None) or report
    nodes = placed.get("placement_nodes")
    target = report.get("target")
    details = {
        **(report.get("details") or {}),
        "slots": good[0].document.get("slots"),
        "python": good[0].document["python"],
    }
    return Effective(
        target=target,
        compute_unit=compute_unit_of(str(target), planned.intent.device_index) if target else None,
        precision=report.get("precision"),
        threads=report.get("threads"),
        streams=report.get("streams"),
        runtime=report.get("runtime"),
        runtime_version=report.get("runtime_version"),
        devices=tuple(report.get("devices") or ()),
        placement=Placement(dict(nodes), placed.get("placement_time"), placed.get("placement_method"))
        if nodes
        else None,
        details=details,
    )


def _cold_start(good: Sequence[Outcome]) -> ColdStart | None:
    return summarise_cold_start([outcome.document.get("cold_start_ms") or {} for outcome in good], dict(CACHES))


def _memory(good: Sequence[Outcome]) -> Memory:
    resident = [outcome.document["peak_rss_bytes"] for outcome in good if outcome.document.get("peak_rss_bytes")]
    reports = [outcome.document.get("report") or {} for outcome in good]
    device = [report["device_memory_mb"] for report in reports if report.get("device_memory_mb") is not None]
    return Memory(max(resident) / 1e6 if resident else None, max(device) if device else None)


def _energy(planned: PlannedCase, ran: Ran) -> tuple[Energy, tuple[Flag, ...]]:
    outcome = next((outcome for trial, outcome in ran if trial.job.kind == "energy"), None)
    if outcome is not None and outcome.status == "ok" and "energy" in outcome.document:
        return energy_of(outcome.document)
    if outcome is not None and outcome.status != "ok":
        return Energy(None, reason=f"The energy trial failed: {outcome.reason}"), ()
    return Energy(None, reason=planned.energy_reason or "Not measured: the run was interrupted before."), ()


def _flags(planned: PlannedCase, ran: Ran, effective: Effective, processors: int) -> tuple[Flag, ...]:
    intent = planned.intent
    found = []
    if effective.precision is None:
        found.append(Flag(flags.PRECISION_UNKNOWN, f"{intent.backend} does not tell the precision that ran."))
    threads = effective.threads if effective.threads is not None else intent.threads
    if threads is not None and intent.target in CPU_TARGETS and threads > processors:
        found.append(Flag(flags.THREADS_OVERSUBSCRIBED, f"{threads} threads ran on {processors} available processors."))
    if intent.threads is not None and effective.threads is not None and effective.threads != intent.threads:
        found.append(Flag(flags.THREADS_DIFFER, f"{intent.threads} threads were asked for, {effective.threads} ran."))
    if effective.placement is not None and len(effective.placement.nodes) > 1:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in effective.placement.nodes.items())
        message = f"The network's nodes ran on several processors or delegates: {shares}."
        found.append(Flag(flags.MIXED_PLACEMENT, message))
    if planned.input_note:
        found.append(Flag(flags.RANDOM_INPUTS, planned.input_note))
    expected = sum(1 for trial in planned.trials if trial.job.kind == "timing")
    finished = sum(1 for trial, _ in ran if trial.job.kind == "timing")
    if finished < expected:
        found.append(
            Flag(flags.FEWER_TRIALS, f"{finished} of {expected} timing trials ended before the run was interrupted.")
        )
    notes = {note for _, outcome in ran for note in outcome.notes}
    found += [Flag(flags.WORKER_ENDED_BADLY, note) for note in sorted(notes)]
    return tuple(found)


def _trial(trial: PlannedTrial, outcome: Outcome, blobs: dict[str, bytes]) -> Trial:
    samples = []
    for what, data in sorted(outcome.files.items()):
        packed = zlib.compress(data, 6)
        digest = sha256_hex(packed)
        blobs[digest] = packed
        count = len(data) // 8 if what in OFF_THE_CLOCK else data.count(b"\n")
        samples.append(SampleBlob(what, digest, count, len(packed)))
    document = outcome.document
    return Trial(
        trial_id=trial.job.trial_id,
        kind=cast(TrialKind, trial.job.kind),
        status=cast(MeasurementStatus, outcome.status),
        reason=outcome.reason,
        window_start_ns=document.get("window_start_ns"),
        window_end_ns=document.get("window_end_ns"),
        discarded_warmup=document.get("discarded_warmup"),
        throughput_per_s=document.get("throughput_per_s"),
        samples=tuple(samples),
        last_words=outcome.last_words,
    )
