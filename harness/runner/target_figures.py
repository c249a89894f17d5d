"""The one figure of a trial that decides how often its case is repeated."""

from __future__ import annotations

import numpy as np

from harness.judgement.first_answer import first_answer_ms
from harness.judgement.summary import PER_MILLE, loadgen_percentile
from harness.runner.steadiness import LATENCY, discarded, samples_of, steadiness_of
from harness.runner.trial_process import Outcome

FIGURES = {
    "single_stream": "p50",
    "multi_stream": "p50",
    "duty_cycle": "p50",
    "sustained": "p50",
    "offline": "throughput",
    "server": "capacity",
    "cold_start": "cold start",
}
# Which trials of a case come in rounds, because they are what its figures are made of.
MEASURING_KINDS = ("timing", "cold")


def figure_name(scenario: str) -> str:
    """Return what a case of this scenario is repeated for."""
    return FIGURES.get(scenario, "p50")


def target_figure(scenario: str, outcome: Outcome) -> float | None:
    """Return a trial's own target figure (milliseconds, or samples per second); None where the trial has none.

    Percentiles are LoadGen's, of the trial's steady samples.
    """
    if outcome.status != "ok":
        return None
    if scenario in ("offline", "server"):  # of the server: what a closed loop showed; the rest of it is a curve
        rate = outcome.document.get("throughput_per_s")
        return float(rate) if rate is not None else None
    if scenario == "cold_start":
        return first_answer_ms(outcome.document.get("cold_start_ms") or {})
    samples = samples_of(outcome, LATENCY)[discarded(steadiness_of(scenario, outcome)) :]
    return loadgen_percentile(np.sort(samples), PER_MILLE["p50"]) / 1e6 if len(samples) else None
