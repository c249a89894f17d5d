"""What stands beside a percentile in a record: an interval, a range, or nothing, and its method says which."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from harness.judgement.intervals import percentile_over_trials
from harness.judgement.summary import summarise_latency

MS = 1_000_000
Law = Callable[[np.random.RandomState, tuple[int, int]], npt.NDArray[np.float64]]


def trial(scale: float, seed: int, count: int = 100) -> np.ndarray:
    return np.rint(np.random.default_rng(seed).lognormal(0, 0.01, count) * scale * MS).astype(np.int64)


def test_one_trial_has_an_interval_where_its_samples_carry_one() -> None:
    # A permutation without any order in time, so nearly all samples count; p90 takes 36, p99 368.
    values = np.random.default_rng(8).permutation(np.arange(1, 201)) * MS
    latency = summarise_latency([values])
    assert latency is not None
    assert latency.p50.value == 101
    assert latency.p50.low is not None and latency.p50.high is not None
    # All 200 as independent would be the ranks 86 and 115, 100.5 -+ 1.96 sqrt(50) rounded outwards; fewer widen it.
    assert 70 < latency.p50.low <= 86 and 115 <= latency.p50.high < 131
    assert latency.p50.method is not None
    assert latency.p50.method.startswith("floor(n p), 95 % interval within one trial, ")
    assert latency.p50.method.endswith(" of 200 samples count as independent, 1 unit measured")
    assert latency.p90.low is not None
    assert (latency.p99.value, latency.p99.reason) == (None, "too few samples: 200 of at least 368")


@pytest.mark.parametrize("count", [2, 5])
def test_two_to_five_trials_have_a_range(count: int) -> None:
    latency = summarise_latency([trial(1 + number, number) for number in range(count)])
    assert latency is not None
    assert latency.p50.method == f"floor(n p) of all trials together, range of {count} trials, 1 unit measured"
    assert (latency.p50.low, latency.p50.high) == (pytest.approx(1, rel=0.02), pytest.approx(count, rel=0.02))


def test_nine_trials_have_an_interval_of_their_median() -> None:
    latency = summarise_latency([trial(1 + number, number) for number in range(9)])
    assert latency is not None
    assert latency.p50.method == "floor(n p) of each trial, 95 % interval of the median over 9 trials, 1 unit measured"
    # The second and the eighth of nine.
    assert (latency.p50.low, latency.p50.high) == (pytest.approx(2, rel=0.02), pytest.approx(8, rel=0.02))


def test_a_range_that_misses_the_value_of_all_together_is_widened_to_it() -> None:
    # One long slow trial outweighs two short ones in the pool; p50 of all is then near its own.
    latency = summarise_latency([trial(1, 1), trial(2, 2), trial(5, 9, 5000)])
    assert latency is not None and latency.p50.value is not None
    assert latency.p50.value == pytest.approx(5, rel=0.02)
    assert latency.p50.low == pytest.approx(1, rel=0.02)
    assert latency.p50.high is not None and latency.p50.high >= latency.p50.value


def test_one_long_slow_trial_does_not_outweigh_eight_short_ones_where_there_is_an_interval() -> None:
    latency = summarise_latency([*(trial(1, number) for number in range(8)), trial(5, 9, 5000)])
    assert latency is not None
    assert latency.p50.value == pytest.approx(1, rel=0.02)
    assert latency.p50.high == pytest.approx(1, rel=0.02)


def skewed(random: np.random.RandomState, shape: tuple[int, int]) -> npt.NDArray[np.float64]:
    return random.lognormal(0.0, 0.8, shape)


def two_paces(random: np.random.RandomState, shape: tuple[int, int]) -> npt.NDArray[np.float64]:
    return np.where(random.random_sample(shape) < 0.3, 2.0, 1.0) * random.lognormal(0.0, 0.1, shape)


@pytest.mark.parametrize("law", [skewed, two_paces])
@pytest.mark.parametrize(("per_mille", "count"), [(990, 100), (990, 120), (900, 10), (500, 4), (500, 10)])
def test_short_trials_lead_no_interval_over_trials_astray(law: Law, per_mille: int, count: int) -> None:
    """24 trials whose own percentile, LoadGen's, lies off: taken as it is, these intervals cover 64 to 88 %."""
    random = np.random.RandomState(3)
    many = np.sort(law(random, (1, 400_000))[0])
    truth = float(many[len(many) * per_mille // 1000]) * MS
    repetitions, covered = 400, 0
    for _ in range(repetitions):
        drawn = law(random, (24, count)) * random.lognormal(0.0, 0.03, (24, 1))
        found = percentile_over_trials(list(np.sort((drawn * MS).astype(np.int64), axis=1)), per_mille)
        assert found.low is not None and found.high is not None and found.low <= found.value <= found.high
        covered += found.low <= truth <= found.high
    assert covered / repetitions >= 0.915  # 93 % less two standard errors of 400 repetitions
