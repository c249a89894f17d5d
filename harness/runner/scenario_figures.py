"""From the good trials of a case to the figures that its scenario stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.judgement.intervals import CONFIDENCE
from harness.judgement.summary import over_trials, summarise_cold_start, summarise_latency
from harness.records import ColdStart, Flag, Latency, OverTime, Quantile, RateCurve
from harness.runner.steadiness import LATENCY, samples_of
from harness.runner.trial_process import Outcome

CACHES = {"compile": "off", "page": "not controlled"}  # the operating system may hold the model file in memory
NO_LATENCY = ("offline",)  # its times hold the wait in the runtime's queue


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
) -> ScenarioFigures:
    """Return the figures of a case from its good trials, at least one.

    `steady[i]` leading samples of trial i are left out. `confidence` is that of one look, where the number of trials was
    decided by looking.
    """
    left_out = tuple(steady) or (0,) * len(outcomes)
    latencies = [samples_of(outcome, LATENCY)[skip:] for outcome, skip in zip(outcomes, left_out, strict=True)]
    throughput = over_trials([float(outcome.document["throughput_per_s"]) for outcome in outcomes], confidence)
    return ScenarioFigures(
        latency_ms=None if scenario in NO_LATENCY else summarise_latency(latencies, confidence),
        throughput_per_s=throughput.value,
        throughput=throughput,
        cold_start_ms=summarise_cold_start(
            [outcome.document.get("cold_start_ms") or {} for outcome in outcomes], dict(CACHES)
        ),
    )
