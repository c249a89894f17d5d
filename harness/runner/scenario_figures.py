"""From the good trials of a case to the figures that its scenario stands for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from harness.judgement import flags
from harness.judgement.first_answer import first_answer_ms
from harness.judgement.intervals import CONFIDENCE
from harness.judgement.over_time import Course, over_time, throttled
from harness.judgement.rate_curve import RateTrial, curve_of, highest_rate, latency_at, trial_from
from harness.judgement.summary import COLD_PARTS, PER_MILLE, over_trials, summarise_cold_start, summarise_latency
from harness.records import ColdStart, Flag, Latency, OverTime, Quantile, RateCurve
from harness.runner.steadiness import LATENCY, samples_of
from harness.runner.trial_process import Outcome

# Of a trial that only begins with a start, and controls nothing of it.
CACHES = {
    "file": "not controlled: the system may hold it in memory",
    "compile": "off",
    "libraries": "not controlled: other processes may hold the runtime's libraries in memory",
}
NO_LATENCY = ("offline",)  # its times hold the wait in the runtime's queue
DEFAULT_PERCENTILE = 99


@dataclass(frozen=True)
class ScenarioFigures:
    """What a scenario says; what it does not speak of is None."""

    latency_ms: Latency | None = None
    throughput_per_s: float | None = None
    throughput: Quantile | None = None
    rate_curve: RateCurve | None = None
    over_time: OverTime | None = None
    cold_start_ms: ColdStart | None = None
    thermal: dict[str, Any] | None = None
    flags: tuple[Flag, ...] = ()


def figures(
    scenario: str,
    parameters: Mapping[str, Any],
    outcomes: Sequence[Outcome],
    steady: Sequence[int] = (),
    confidence: float = CONFIDENCE,
    batch: int = 1,
) -> ScenarioFigures:
    """Return the figures of a case from its good trials, at least one.

    `steady[i]` leading samples of trial i are left out. `confidence` is that of one look, where the number of trials was
    decided by looking. `batch` samples make one query of the server.
    """
    start = _cold_start(outcomes, confidence)
    if scenario == "cold_start":
        return ScenarioFigures(cold_start_ms=start)
    if scenario == "server":
        return replace(_server(parameters, outcomes, confidence, batch), cold_start_ms=start)
    left_out = tuple(steady) or (0,) * len(outcomes)
    latencies = [samples_of(outcome, LATENCY)[skip:] for outcome, skip in zip(outcomes, left_out, strict=True)]
    throughput = _throughput(outcomes, left_out, confidence)
    found = ScenarioFigures(
        latency_ms=None if scenario in NO_LATENCY else summarise_latency(latencies, confidence),
        throughput_per_s=throughput.value,
        throughput=throughput,
        cold_start_ms=start,
    )
    if scenario == "duty_cycle":
        return replace(found, thermal=_idle_penalty(outcomes, confidence))
    if scenario == "sustained":
        course = over_time([_course(outcome) for outcome in outcomes], confidence)
        evidence = throttled(course)
        return replace(found, over_time=course, flags=(evidence,) if evidence is not None else ())
    return found


def _throughput(outcomes: Sequence[Outcome], left_out: Sequence[int], confidence: float) -> Quantile:
    rates = [outcome.document.get("throughput_per_s") for outcome in outcomes]
    known = [
        float(rate) * _steady_share(outcome, skip)
        for outcome, skip, rate in zip(outcomes, left_out, rates, strict=True)
        if rate is not None
    ]
    if len(known) < len(rates):
        return Quantile(None, reason="the scenario sets the pace itself, so its rate says nothing about the system")
    return over_trials(known, confidence)


def _steady_share(outcome: Outcome, skip: int) -> float:
    """Return the rate of the steady part over that of the whole window; the time between two queries is the same in both."""
    samples = samples_of(outcome, LATENCY)
    window_ns = int(outcome.document.get("window_end_ns", 0)) - int(outcome.document.get("window_start_ns", 0))
    if not skip or skip >= len(samples) or window_ns <= 0:
        return 1.0
    between_ns = max(0.0, window_ns - float(samples.sum())) / len(samples)
    left = samples[skip:]
    return (window_ns / len(samples)) / (float(left.mean()) + between_ns)


def _cold_start(outcomes: Sequence[Outcome], confidence: float) -> ColdStart | None:
    parts = [outcome.document.get("cold_start_ms") or {} for outcome in outcomes]
    told = [outcome.document.get("caches") or CACHES for outcome in outcomes]
    caches = {name: _state([states.get(name, "not told") for states in told]) for name in told[0]}
    summary = summarise_cold_start(parts, caches)
    if summary is None:
        return None
    intervals: dict[str, dict[str, Any]] = {}
    for name in COLD_PARTS:
        values = [float(part[name]) for part in parts if isinstance(part.get(name), (int, float))]
        if values:
            intervals[name] = asdict(over_trials(values, confidence))
    totals = [total for part in parts if (total := first_answer_ms(part)) is not None]
    if len(totals) == len(parts):
        intervals["first_answer"] = asdict(over_trials(totals, confidence, "sum of the parts"))
    return replace(summary, intervals=intervals)


def _state(states: Sequence[str]) -> str:
    """Return what the trials saw of a cache; where they differ, each state with how many saw it."""
    different = dict.fromkeys(states)
    if len(different) == 1:
        return states[0]
    return "; ".join(f"{states.count(state)} of {len(states)} trials: {state}" for state in different)


def _server(
    parameters: Mapping[str, Any], outcomes: Sequence[Outcome], confidence: float, batch: int
) -> ScenarioFigures:
    trials = [_rate_trial(outcome) for outcome in outcomes]
    limit = parameters.get("limit_ms")
    percentile = f"p{float(parameters.get('percentile', DEFAULT_PERCENTILE)):g}"
    curve = curve_of(trials, None if limit is None else float(limit), percentile, confidence)
    rates = [point.offered_per_s for point in curve.points]
    rate = curve.highest_met_per_s if curve.highest_met_per_s is not None else min(rates, default=0.0)
    raised: tuple[Flag, ...] = ()
    if curve.points and all(point.keeps_up is False for point in curve.points):
        raised = (Flag(flags.OVERLOAD, f"At all {len(rates)} offered rates the queue grew until the end."),)
    throughput = _met(curve, batch)
    return ScenarioFigures(
        latency_ms=_named(latency_at(trials, rate, confidence), rate),
        throughput_per_s=throughput.value,
        throughput=throughput,
        rate_curve=curve,
        flags=raised,
    )


def _named(latency: Latency | None, rate: float) -> Latency | None:
    """Name the offered rate that the percentiles belong to in their methods, the one place where a record tells how."""
    if latency is None:
        return None
    found = {name: getattr(latency, name) for name in PER_MILLE}
    at = f"at {rate:g} per s offered"
    told = {name: replace(one, method=f"{at}, {one.method}") for name, one in found.items() if one.value is not None}
    return replace(latency, **told)


def _met(curve: RateCurve, batch: int) -> Quantile:
    """The highest rate that meets the limit, in samples per second; the limit lies between its two bounds."""
    if curve.highest_met_per_s is None or curve.limit_ms is None:
        return Quantile(None, reason=curve.reason)
    missed = highest_rate(curve, curve.limit_ms, curve.percentile).missed_per_s
    met = curve.highest_met_per_s * batch
    method = f"highest rate at which {curve.percentile} keeps {curve.limit_ms:g} ms; high is the lowest that misses it"
    return Quantile(met, met, None if missed is None else missed * batch, method)


def _rate_trial(outcome: Outcome) -> RateTrial:
    told = [json.loads(line) for line in outcome.files.get("stretches", b"").splitlines()]
    capacity = float(outcome.document["scenario"]["capacity_per_s"])
    return trial_from(capacity, told, samples_of(outcome, "server_latency_ns"), samples_of(outcome, "server_wait_ns"))


def _course(outcome: Outcome) -> Course:
    document = outcome.document
    return Course(
        latency_ns=samples_of(outcome, LATENCY),
        started_ns=samples_of(outcome, "started_ns"),
        every=int(document["scenario"]["every"]),
        seconds=(document["window_end_ns"] - document["window_start_ns"]) / 1e9,
        series=(document.get("conditions") or {}).get("series"),
    )


def _idle_penalty(outcomes: Sequence[Outcome], confidence: float) -> dict[str, Any]:
    """How many times as long a request takes after idleness as without a pause: medians of one process, over trials."""
    pairs = [(samples_of(outcome, LATENCY), samples_of(outcome, "back_to_back_ns")) for outcome in outcomes]
    ratios = [float(np.median(idle) / np.median(busy)) for idle, busy in pairs if len(idle) and len(busy)]
    late = np.concatenate([samples_of(outcome, "late_ns") for outcome in outcomes])
    found = over_trials(ratios, confidence, "median after idleness over median without a pause")
    return {
        "idle_penalty": {
            **asdict(found),
            "trials": len(ratios),
            "back_to_back_p50_ms": float(np.median(np.concatenate([busy for _, busy in pairs]))) / 1e6,
            "late_p50_ms": float(np.median(late)) / 1e6,
            "late_max_ms": float(late.max()) / 1e6,
        }
    }
