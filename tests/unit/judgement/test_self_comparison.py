"""Simulation: through the whole way from trials to a verdict's difference, a system does not differ from itself.

Rows are made as a run makes them: fresh processes are drawn from a law, each trial has its samples, `summarise_latency`
gives the quantile with its words, and `side_by_side` reads those words back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pytest

from db.queries import ResultRow
from harness.judgement.side_by_side import side_by_side
from harness.judgement.summary import summarise_latency

MakeRow = Callable[..., ResultRow]
COMPARISONS = 250
SAMPLES = 40
MOST_FALSE_ALARMS = 0.05


def skewed(rng: np.random.Generator, trials: int) -> np.ndarray:
    """Lognormal latencies with a factor of each process."""
    return rng.lognormal(0.0, 0.6, (trials, SAMPLES)) * rng.lognormal(0.0, 0.1, (trials, 1))


def two_speeds(rng: np.random.Generator, trials: int) -> np.ndarray:
    """A process is slow or fast as a whole: the median over trials has a gap in its distribution."""
    return rng.lognormal(0.0, 0.05, (trials, SAMPLES)) * np.where(rng.random((trials, 1)) < 0.5, 1.0, 1.5)


def clustered(rng: np.random.Generator, trials: int) -> np.ndarray:
    """Slow stretches inside a trial."""
    slow = np.repeat(rng.random((trials, SAMPLES // 10)) < 0.3, 10, axis=1)
    return rng.lognormal(0.0, 0.1, (trials, SAMPLES)) * np.where(slow, 1.8, 1.0) * rng.lognormal(0, 0.05, (trials, 1))


def row_of(make_row: MakeRow, samples_ms: np.ndarray) -> ResultRow:
    latency = summarise_latency([(trial * 1e6).astype(np.int64) for trial in samples_ms])
    assert latency is not None and latency.p50.value is not None
    return make_row(p50_ms=latency.p50.value, quantiles={"p50": asdict(latency.p50)}, p90_ms=None, p99_ms=None)


@pytest.mark.parametrize("law", [skewed, two_speeds, clustered])
@pytest.mark.parametrize("trials", [(6, 6), (9, 9), (6, 20)])
def test_a_system_differs_from_itself_in_at_most_one_case_of_twenty(
    make_row: MakeRow, law: Callable[[np.random.Generator, int], np.ndarray], trials: tuple[int, int]
) -> None:
    rng = np.random.default_rng(trials[0] * 1000 + trials[1])
    alarms = 0
    for _ in range(COMPARISONS):
        a, b = (row_of(make_row, law(rng, count)) for count in trials)
        compared = side_by_side(a, b, "p50")
        assert compared.verdict.kind == "like_for_like"
        assert compared.difference != "unknown"
        alarms += compared.difference == "shown"
    assert alarms / COMPARISONS <= MOST_FALSE_ALARMS


def test_two_laws_of_one_median_are_not_called_different_too_often(make_row: MakeRow) -> None:
    """The worst case for the argument in `side_by_side`: one side's trials lie near the median, the other's far from it."""
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(COMPARISONS):
        near = np.full((9, SAMPLES), 1.0) * rng.uniform(0.999, 1.001, (9, 1))
        far = np.full((9, SAMPLES), 1.0) * np.where(rng.random((9, 1)) < 0.5, 0.5, 2.0)
        alarms += side_by_side(row_of(make_row, near), row_of(make_row, far), "p50").difference == "shown"
    assert alarms / COMPARISONS <= 0.07  # 0.039 by the binomial law for nine trials; 250 draws of 0.05 reach 0.07


def test_a_real_difference_is_found(make_row: MakeRow) -> None:
    rng = np.random.default_rng(11)
    found = 0
    for _ in range(100):
        a, b = row_of(make_row, skewed(rng, 9) * 1.6), row_of(make_row, skewed(rng, 9))
        found += side_by_side(a, b, "p50").difference == "shown"
    assert found >= 90
