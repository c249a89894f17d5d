"""From a case's outcomes to its measurement: what the figures rest on, how sure they are, and whether they may stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from harness.energy import energy_of
from harness.judgement import disturbance, flags, what_ran
from harness.judgement.intervals import CONFIDENCE
from harness.judgement.steady_state import SteadyState, steadiness_flags
from harness.judgement.summary import median_ms, sample_flags, stability_flags
from harness.judgement.validity import judged
from harness.records import (
    Effective,
    Energy,
    Flag,
    Measurement,
    MeasurementStatus,
    Source,
    Stages,
)
from harness.runner.cases import PlannedCase, PlannedTrial
from harness.runner.qualities import Quality
from harness.runner.sampling import Sampled, sampled
from harness.runner.scenario_figures import figures
from harness.runner.steadiness import LATENCY, STEADY_SCENARIOS, discarded, samples_of, steadiness_of
from harness.runner.target_figures import MEASURING_KINDS, figure_name, target_figure
from harness.runner.trial_process import Outcome
from harness.runner.trial_records import trial_of
from harness.runner.what_ran import effective_of, memory_of, unlike

Ran = Sequence[tuple[PlannedTrial, Outcome]]


@dataclass(frozen=True)
class Assembled:
    """A measurement and the blobs that it names by digest."""

    measurement: Measurement
    blobs: dict[str, bytes]


def assemble(
    planned: PlannedCase,
    ran: Ran,
    quality: Quality | None,
    processors: int,
    source: Source,
    interrupted: bool = False,
) -> Assembled:
    """Summarise all finished trials of one case. Without a usable measuring trial the figures stay None."""
    blobs: dict[str, bytes] = {}
    intent = planned.intent
    steady = [_steadiness(intent.scenario, trial, outcome) for trial, outcome in ran]
    base = Measurement(
        measurement_id=planned.measurement_id,
        case=planned.case,
        case_key=planned.case.key,
        status="failed",
        workload_family=intent.workload.family,
        workload_title=intent.workload.title,
        artifact=planned.artifact,
        accuracy=quality.accuracy if quality is not None else None,
        fidelity=quality.fidelity if quality is not None else None,
        trials=tuple(trial_of(trial, outcome, one, blobs) for (trial, outcome), one in zip(ran, steady, strict=True)),
    )
    if planned.status is not None:
        status = cast(MeasurementStatus, planned.status)
        return Assembled(replace(base, status=status, reason=planned.reason), blobs)
    measured = [outcome for trial, outcome in ran if trial.job.kind in MEASURING_KINDS]
    good = [outcome for outcome in measured if outcome.status == "ok"]
    bad = [outcome for outcome in measured if outcome.status != "ok"]
    if bad or not good:
        return Assembled(_unusable(base, good, bad), blobs)
    differing = unlike(good)
    if differing is not None:
        return Assembled(replace(base, status="invalid", reason=differing), blobs)
    effective = effective_of(
        intent.device_index, good, [o for t, o in ran if t.job.kind == "placement" and o.status == "ok"]
    )
    found = [one for (trial, _), one in zip(ran, steady, strict=True) if trial.job.kind in MEASURING_KINDS]
    measurement = replace(base, status="ok", effective=effective, memory_mb=memory_of(good))
    measurement = _with_figures(measurement, planned, good, found, interrupted)
    energy, energy_flags = _energy(planned, ran)
    more = (*_flags(planned, ran, good, effective, processors, interrupted), *energy_flags)
    more = (*(quality.flags if quality is not None else ()), *more)
    measurement = replace(measurement, energy=energy, flags=(*more, *measurement.flags))
    status, reason = judged(measurement, source)
    return Assembled(replace(measurement, status=status, reason=reason), blobs)


def _steadiness(scenario: str, trial: PlannedTrial, outcome: Outcome) -> SteadyState | None:
    return steadiness_of(scenario, outcome) if trial.job.kind == "timing" else None


def _unusable(base: Measurement, good: Sequence[Outcome], bad: Sequence[Outcome]) -> Measurement:
    """No figure comes out of a case of which a trial failed: what is left may be the lucky part."""
    if not bad:
        return replace(base, status="skipped", reason="The run was interrupted before a trial of this case ended.")
    reason = bad[0].reason or "The worker gave no reason."
    if good:
        reason = f"{len(bad)} of {len(good) + len(bad)} timing trials failed: {reason}"
    unsupported = not good and all(outcome.status == "unsupported" for outcome in bad)
    return replace(base, status="unsupported" if unsupported else "failed", reason=reason)


def _with_figures(
    measurement: Measurement,
    planned: PlannedCase,
    good: Sequence[Outcome],
    steady: Sequence[SteadyState | None],
    interrupted: bool,
) -> Measurement:
    """Put in the scenario's figures over the steady parts of all trials, and how sure they are."""
    intent = planned.intent
    once = _sampled(planned, good, interrupted)
    leading = [discarded(one) for one in steady]
    confidence = once.confidence if once is not None else CONFIDENCE
    made = figures(intent.scenario, intent.parameters, good, leading, confidence, intent.batch)
    latencies = [samples_of(outcome, LATENCY)[start:] for outcome, start in zip(good, leading, strict=True)]
    pooled = intent.scenario in STEADY_SCENARIOS
    return replace(
        measurement,
        latency_ms=made.latency_ms,
        throughput_per_s=made.throughput_per_s,
        throughput=made.throughput,
        rate_curve=made.rate_curve,
        over_time=made.over_time,
        cold_start_ms=made.cold_start_ms,
        thermal=made.thermal,
        stages_ms=_stages(good, latencies) if intent.scenario == "single_stream" and intent.batch == 1 else None,
        sampling=once.sampling if once is not None else None,
        flags=(
            *made.flags,
            *(sample_flags(made.latency_ms) if pooled else ()),
            *(stability_flags(latencies) if pooled else ()),
            *steadiness_flags([one for one in steady if one is not None]),
            *(once.flags if once is not None else ()),
        ),
    )


def _sampled(planned: PlannedCase, good: Sequence[Outcome], interrupted: bool) -> Sampled | None:
    scenario = planned.intent.scenario
    values = [target_figure(scenario, outcome) for outcome in good]
    return sampled(planned.intent.group, figure_name(scenario), values, interrupted)


def _stages(good: Sequence[Outcome], latencies: Sequence[object]) -> Stages:
    return Stages(
        decode=median_ms([samples_of(outcome, "decode_ns") for outcome in good]),
        preprocess=median_ms([samples_of(outcome, "preprocess_ns") for outcome in good]),
        inference=median_ms(latencies),  # type: ignore[arg-type]
        postprocess=median_ms([samples_of(outcome, "postprocess_ns") for outcome in good]),
    )


def _energy(planned: PlannedCase, ran: Ran) -> tuple[Energy, tuple[Flag, ...]]:
    outcome = next((outcome for trial, outcome in ran if trial.job.kind == "energy"), None)
    if outcome is not None and outcome.status == "ok" and "energy" in outcome.document:
        return energy_of(outcome.document)
    if outcome is not None and outcome.status != "ok":
        return Energy(None, reason=f"The energy trial failed: {outcome.reason}"), ()
    return Energy(None, reason=planned.energy_reason or "Not measured: the run was interrupted before."), ()


def _flags(
    planned: PlannedCase,
    ran: Ran,
    good: Sequence[Outcome],
    effective: Effective,
    processors: int,
    interrupted: bool,
) -> tuple[Flag, ...]:
    """Return what a reader must know of what ran, of what was given to it, and of what went on meanwhile."""
    found = list(what_ran.flags_of(effective, planned.case, processors))
    if planned.input_note:
        found.append(Flag(flags.RANDOM_INPUTS, planned.input_note))
    expected = planned.intent.group.trials
    if len(good) < expected:
        why = "the run was interrupted" if interrupted else "the run's budget was spent"
        message = f"{len(good)} of {expected} {good_kind(planned)} trials ended before {why}."
        found.append(Flag(flags.FEWER_TRIALS, message))
    notes = {note for _, outcome in ran for note in outcome.notes}
    found += [Flag(flags.WORKER_ENDED_BADLY, note) for note in sorted(notes)]
    found += disturbance.flags_of([outcome.document.get("conditions") or {} for outcome in good])
    return tuple(found)


def good_kind(planned: PlannedCase) -> str:
    """Return what the case's measuring trials are called."""
    return "cold" if planned.intent.scenario == "cold_start" else "timing"
