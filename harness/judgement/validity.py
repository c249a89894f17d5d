"""The one rule of what may stand as a valid measurement. Used where records are made, stored and shown.

A measurement that calls itself ok and breaks the rule is shown as invalid with the reasons; its record stays as received.
"""

from __future__ import annotations

from itertools import pairwise

from harness.records import Effective, Latency, Measurement, MeasurementStatus, Source

# Targets that leave the choice of processors to the runtime: what ran may bear another name, but must be known.
CHOOSING_TARGETS = frozenset({"auto", "multi", "hetero", "all", "cpu_and_gpu", "cpu_and_ne"})
# Scenarios whose times hold the wait in a queue of everything at once: no latency can come out of them.
QUEUE_SCENARIOS = frozenset({"offline"})
# What we time query by query must have come out as a latency; a throughput alone is not what was asked for.
LATENCY_SCENARIOS = frozenset({"single_stream", "multi_stream", "duty_cycle", "sustained"})
# A request for one of these is a promise about the arithmetic; "default" leaves it to the vendor.
NO_PROMISE = frozenset({"default", "unknown"})


def faults(measurement: Measurement, source: Source) -> tuple[str, ...]:
    """Why `measurement` must not stand as ok: sentences without a full stop; empty when nothing speaks against it.

    Imported results are held to what their source publishes: no effective target is asked of them.
    """
    found: list[str] = []
    scenario = measurement.case.scenario
    latency = measurement.latency_ms
    if scenario in QUEUE_SCENARIOS:
        if latency is not None:
            found.append(f"times of the scenario {scenario} are queue times, not latency")
        if measurement.throughput_per_s is None:
            found.append(f"the scenario {scenario} has no throughput")
    elif source.kind == "measured" and (lacking := _lacking(measurement)) is not None:
        found.append(lacking)
    elif (
        not _has_latency(latency)
        and measurement.throughput_per_s is None
        and measurement.official is None
        and measurement.cold_start_ms is None
        and measurement.rate_curve is None
    ):
        found.append("there is neither a latency nor a throughput")
    if measurement.throughput_per_s is not None and measurement.throughput_per_s <= 0:
        found.append(f"a throughput of {measurement.throughput_per_s:g} per second is impossible")
    if latency is not None:
        found += _latency_faults(latency)
    accuracy = measurement.accuracy.value if measurement.accuracy is not None else None
    if accuracy is not None and not 0 <= accuracy <= 1:
        found.append(f"an accuracy of {accuracy:g} is outside 0 to 1")
    energy_j = measurement.energy.per_inference_j if measurement.energy is not None else None
    if energy_j is not None and energy_j <= 0:
        found.append("an energy of zero or less is no measurement")
    if source.kind == "measured":
        found += _target_faults(measurement.case.target, measurement.effective)
        found += _precision_faults(measurement)
    return tuple(found)


def judged(measurement: Measurement, source: Source) -> tuple[MeasurementStatus, str | None]:
    """Status and reason under which `measurement` is stored and shown: its own, or invalid when it is wrongly called ok."""
    if measurement.status != "ok":
        return measurement.status, measurement.reason or "The record gives no reason."
    found = faults(measurement, source)
    if not found:
        return "ok", measurement.reason
    return "invalid", f"Not valid: {'; '.join(found)}."


def _lacking(measurement: Measurement) -> str | None:
    """What a scenario is about and this measurement of it does not have; only what we measured is held to it."""
    scenario = measurement.case.scenario
    if scenario == "server" and (measurement.rate_curve is None or not measurement.rate_curve.points):
        return "the scenario server has no latency at any offered rate"
    start = measurement.cold_start_ms
    if scenario == "cold_start" and (start is None or start.first_inference is None):
        return "the scenario cold_start has no time of a first inference"
    if scenario == "sustained" and (measurement.over_time is None or not measurement.over_time.slices):
        return "the scenario sustained has no course over time"
    if scenario not in LATENCY_SCENARIOS or _has_latency(measurement.latency_ms):
        return None
    if measurement.throughput_per_s is None:
        return "there is neither a latency nor a throughput"
    return f"the scenario {scenario} has no latency"


def _has_latency(latency: Latency | None) -> bool:
    return latency is not None and any(
        value is not None for value in (latency.mean, latency.p50.value, latency.p90.value)
    )


def _latency_faults(latency: Latency) -> list[str]:
    """Times are positive, and an order statistic never falls as its rank grows (a small margin for rounding in print)."""
    quantiles = (latency.p50, latency.p90, latency.p95, latency.p99, latency.p99_9)
    ordered = [latency.min, *(quantile.value for quantile in quantiles), latency.max]
    known = [value for value in ordered if value is not None]
    found = []
    if any(value <= 0 for value in known) or (latency.mean is not None and latency.mean <= 0):
        found.append("a latency of zero or less is impossible")
    if any(high < low * (1 - 1e-9) for low, high in pairwise(known)):
        found.append("the latency percentiles are not in order")
    return found


def _target_faults(requested: str, effective: Effective | None) -> list[str]:
    """The number belongs to the processor that was asked for, or to nothing (a silent fallback to the CPU, most of all)."""
    if effective is None or effective.target is None:
        return ["the runtime did not say which target really ran"]
    if requested.lower() in CHOOSING_TARGETS or requested.lower().split(":")[0] in CHOOSING_TARGETS:
        return []
    if effective.target.lower() != requested.lower():
        return [f"{requested} was asked for, but {effective.target} ran"]
    return []


def _precision_faults(measurement: Measurement) -> list[str]:
    """What was asked for by name is what must have computed: bf16 or tf32 under the name fp32 is another measurement."""
    ran = measurement.effective.precision if measurement.effective is not None else None
    asked = measurement.case.requested_precision
    if ran is None or asked in NO_PROMISE or ran == asked or _of_the_file(measurement, ran):
        return []
    return [f"{asked} was asked for, but {ran} is what ran"]


def _of_the_file(measurement: Measurement, ran: str) -> bool:
    """Whether the file is of the precision that ran: then what was asked for holds for its other layers.

    "int8-float-ends" is an int8 file; a runtime calls what such a file does int8, or mixed. Weights in int4 have no
    arithmetic of their own: OpenVINO multiplies them with activations that it makes int8 as they come.
    """
    artifact = (
        measurement.artifact.precision if measurement.artifact is not None else measurement.case.artifact_precision
    )
    kind = artifact.partition("-")[0]
    computed = "int8" if kind == "int4" else kind
    return kind not in ("fp32", "unknown") and ran in (artifact, kind, computed, "mixed")
