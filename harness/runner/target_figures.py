"""The one figure of a trial that decides how often its case is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.judgement.first_answer import first_answer_ms
from harness.judgement.intervals import MEDIAN, median_unbiased
from harness.judgement.summary import loadgen_percentile, speaks
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


@dataclass(frozen=True)
class OwnFigure:
    """A trial's own target figure, in milliseconds or samples per second.

    `centre` is what the bounds over trials come from (`harness.judgement.intervals.percentile_over_trials`): the
    median-unbiased percentile where the value is LoadGen's, else the value; None where the trial is too short for it.
    """

    value: float
    centre: float | None


def values_of(figures: Sequence[OwnFigure]) -> list[float]:
    """Return the figures that a median is taken of."""
    return [figure.value for figure in figures]


def centres_of(figures: Sequence[OwnFigure]) -> list[float | None]:
    """Return what that median's bounds come from."""
    return [figure.centre for figure in figures]


def target_figure(scenario: str, outcome: Outcome) -> OwnFigure | None:
    """Return a trial's own target figure; None where the trial has none, as one of the server, which is a curve.

    Over all trials it has the interval that the record shows, so that what is decided is what is shown.
    """
    if outcome.status != "ok":
        return None
    if scenario == "server":
        return None
    if scenario == "offline":
        rate = outcome.document.get("throughput_per_s")
        return _plain(float(rate) if rate is not None else None)
    if scenario == "cold_start":
        return _plain(first_answer_ms(outcome.document.get("cold_start_ms") or {}))
    samples = np.sort(samples_of(outcome, LATENCY)[discarded(steadiness_of(scenario, outcome)) :])
    if not len(samples):
        return None
    centre = median_unbiased(samples, MEDIAN) / 1e6 if speaks(samples, MEDIAN) else None
    return OwnFigure(loadgen_percentile(samples, MEDIAN) / 1e6, centre)


def _plain(value: float | None) -> OwnFigure | None:
    return OwnFigure(value, value) if value is not None else None
