"""The worth of dependent samples, against closed forms of autoregressive series."""

from __future__ import annotations

from math import asin, pi

import numpy as np
import pytest

from harness.judgement.effective_size import autocorrelation_time, effective_size


def autoregressive(coefficient: float, count: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=count)
    values = np.empty(count)
    values[0] = noise[0] / np.sqrt(1 - coefficient**2)
    for index in range(1, count):
        values[index] = coefficient * values[index - 1] + noise[index]
    return values


@pytest.mark.parametrize("coefficient", [0.5, 0.8, 0.9])
def test_autocorrelation_time_of_an_autoregressive_series(coefficient: float) -> None:
    found = autocorrelation_time(autoregressive(coefficient, 50_000, seed=4))
    assert found == pytest.approx((1 + coefficient) / (1 - coefficient), rel=0.12)


@pytest.mark.parametrize("coefficient", [0.5, 0.9])
def test_at_the_median_it_follows_the_arcsine_law(coefficient: float) -> None:
    # Signs of two normal variables with correlation r correlate with 2 / pi asin(r) (Sheppard 1899).
    tau = 1 + 2 * sum(2 / pi * asin(coefficient**lag) for lag in range(1, 500))
    latencies = np.exp(autoregressive(coefficient, 50_000, seed=5))  # a monotone change of scale changes no rank
    assert effective_size(latencies, 1.0) == pytest.approx(50_000 / tau, rel=0.12)


def test_independent_samples_count_nearly_whole() -> None:
    values = np.random.default_rng(6).lognormal(size=20_000)
    assert 0.9 * 20_000 < effective_size(values, 1.0) <= 20_000


def test_the_most_dependent_threshold_counts() -> None:
    values = np.exp(autoregressive(0.9, 20_000, seed=7))
    tail = float(np.quantile(values, 0.99))
    assert effective_size(values, tail, 1.0) == effective_size(values, 1.0) < effective_size(values, tail)


def test_samples_that_alternate_get_no_credit_and_equal_ones_no_penalty() -> None:
    assert autocorrelation_time([1, 9] * 500) == 1.0
    assert effective_size(np.full(100, 7), 7.0) == 100
    assert effective_size(np.array([5]), 5.0) == 1
    assert effective_size(np.array([]), 5.0) == 0


def test_one_step_in_the_middle_is_worth_only_a_few_samples() -> None:
    values = np.r_[np.full(500, 10), np.full(500, 20)]
    assert effective_size(values, 10.0) == 4  # a quarter of the series is the longest memory that it can tell
