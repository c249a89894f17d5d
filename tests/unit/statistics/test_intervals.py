"""Intervals between order statistics: published values, the definition by exact fractions, and what must always hold."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.judgement.intervals import (
    coverage,
    least_count,
    median_over_trials,
    percentile_interval,
    ranks,
    ratio_of_medians,
)

# On a busy machine an example may wait for its turn; how long it takes is not what is tested.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
latencies = st.lists(st.integers(1, 10**10), min_size=1, max_size=400)
trials = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=40)
per_milles = st.sampled_from([500, 900, 950, 990, 999])


@pytest.mark.parametrize(("per_mille", "least"), [(500, 6), (900, 36), (950, 72), (990, 368), (999, 3688)])
def test_the_least_number_of_samples_is_where_the_largest_one_is_high_enough(per_mille: int, least: int) -> None:
    # By hand: n = ceil(ln 0.025 / ln p), so ln 0.025 = -3.68888 over -0.0100503 is 367.04, over -0.00100050 is 3687.04.
    assert least_count(per_mille) == least
    assert ranks(least, per_mille) is not None
    assert ranks(least - 1, per_mille) is None


@pytest.mark.parametrize(
    ("count", "lower", "upper", "confidence"),
    [(6, 1, 6, 0.96875), (9, 2, 8, 0.9609), (10, 2, 9, 0.9785), (15, 4, 12, 0.9648), (20, 6, 15, 0.9586)],
)
def test_the_median_has_the_ranks_of_the_published_tables(
    count: int, lower: int, upper: int, confidence: float
) -> None:
    # Tables of the sign test's interval for the median, e.g. Conover, Practical Nonparametric Statistics.
    assert ranks(count, 500) == (lower, upper)
    assert coverage(count, 500, lower, upper) == pytest.approx(confidence, abs=5e-5)


@unhurried
@given(st.integers(1, 500), per_milles, st.sampled_from([0.9, 0.95, 0.99]))
def test_ranks_are_those_of_the_definition_in_exact_fractions(count: int, per_mille: int, confidence: float) -> None:
    p = Fraction(per_mille, 1000)
    tail = Fraction((1 - confidence) / 2)
    mass = [comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(count + 1)]
    below, lower = Fraction(0), 0
    while below + mass[lower] <= tail:  # the largest l with P(B <= l - 1) <= tail
        below += mass[lower]
        lower += 1
    above, upper = Fraction(0), count + 1
    while above + mass[upper - 1] <= tail:  # the smallest u with P(B >= u) <= tail
        upper -= 1
        above += mass[upper]
    exists = lower >= 1 and upper <= count
    assert ranks(count, per_mille, confidence) == ((lower, upper) if exists else None)
    if exists:
        assert coverage(count, per_mille, lower, upper) == pytest.approx(float(1 - below - above), abs=1e-12)
        assert 1 - below - above >= confidence


def test_a_million_samples_follow_the_normal_approximation() -> None:
    found = ranks(1_000_000, 990)
    assert found is not None
    # n p -+ 1.95996 sqrt(n p q) = 990000 -+ 195.0
    assert found == (pytest.approx(989_805, abs=2), pytest.approx(990_196, abs=2))
    assert coverage(1_000_000, 990, *found) == pytest.approx(0.95, abs=0.001)


def test_percentile_of_one_trial_takes_loadgens_point_and_the_ranks_around_it() -> None:
    values = np.random.default_rng(3).permutation(np.arange(1, 11)) * 1_000_000
    found = percentile_interval(values, 500, independent=10)
    assert (found.value, found.low, found.high) == (6e6, 2e6, 9e6)  # zero-based floor(10 / 2) is the sixth
    assert (found.kind, found.count, found.independent) == ("interval", 10, 10)


def test_dependent_samples_widen_the_interval_and_at_last_take_it_away() -> None:
    values = np.arange(1, 1001)
    whole = percentile_interval(values, 500, independent=1000)
    tenth = percentile_interval(values, 500, independent=100)
    # The published ranks of 100 are 40 and 61, so zero-based 39/100 and 61/100 of a thousand.
    assert (tenth.low, tenth.high) == (391, 610)
    assert whole.low is not None and whole.high is not None
    assert 391 < whole.low < whole.high < 610
    none = percentile_interval(values, 500, independent=5)
    assert (none.low, none.high, none.kind) == (None, None, "none")
    assert none.reason == "1000 samples are worth 5 independent ones; an interval takes 6"


@unhurried
@given(latencies, per_milles)
def test_a_percentiles_interval_holds_the_point(values: list[int], per_mille: int) -> None:
    found = percentile_interval(np.array(values, np.int64), per_mille)
    assert found.value == sorted(values)[len(values) * per_mille // 1000]
    assert (found.low is None) == (found.high is None) == (found.reason is not None)
    if found.low is not None and found.high is not None:
        assert min(values) <= found.low <= found.value <= found.high <= max(values)
        assert found.confidence is not None and found.confidence >= 0.95


@unhurried
@given(st.integers(6, 2000), st.data())
def test_fewer_independent_samples_never_narrow_it(count: int, data: st.DataObject) -> None:
    values = np.arange(count)
    more = data.draw(st.integers(6, count))
    wide = percentile_interval(values, 500, independent=6)
    found = percentile_interval(values, 500, independent=more)
    assert wide.low == 0 and wide.high == count - 1
    assert found.low is not None and found.high is not None and found.low <= found.value <= found.high


@unhurried
@given(latencies, per_milles, st.integers(2, 1000))
def test_it_scales_with_the_unit(values: list[int], per_mille: int, factor: int) -> None:
    found = percentile_interval(np.array(values, np.int64), per_mille)
    scaled = percentile_interval(np.array(values, np.int64) * factor, per_mille)
    assert scaled.value == found.value * factor
    assert scaled.low == (None if found.low is None else found.low * factor)
    assert scaled.high == (None if found.high is None else found.high * factor)


@unhurried
@given(trials, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_more_confidence_never_narrows(values: list[float], confidence: float) -> None:
    sure = median_over_trials(values, confidence)
    less = median_over_trials(values, confidence - 0.1)
    assert None not in (sure.low, sure.high, less.low, less.high)
    assert sure.low <= less.low <= less.value == sure.value <= less.high <= sure.high  # type: ignore[operator]


@unhurried
@given(trials)
def test_a_slower_trial_never_lowers_the_interval(values: list[float]) -> None:
    before = median_over_trials(values)
    after = median_over_trials([*values[1:], values[0] * 2])
    assert after.value >= before.value
    assert after.low >= before.low and after.high >= before.high  # type: ignore[operator]


def test_six_trials_have_an_interval_and_five_a_range() -> None:
    six = median_over_trials([3.0, 1.0, 6.0, 2.0, 5.0, 4.0])
    assert (six.value, six.low, six.high, six.kind) == (3.5, 1.0, 6.0, "interval")
    assert six.confidence == pytest.approx(1 - 2 / 64)
    assert six.relative_half_width == pytest.approx(2.5 / 3.5)
    five = median_over_trials([3.0, 1.0, 2.0, 5.0, 4.0])
    assert (five.value, five.low, five.high, five.kind, five.confidence) == (3.0, 1.0, 5.0, "range", None)
    assert five.reason == "5 trials; an interval takes 6"
    assert five.relative_half_width is None


def test_a_ratio_puts_the_one_end_over_the_others_other_end() -> None:
    # Seven trials at 97.5 % each: smallest to largest, 1 - 2 / 128 each, so at least 1 - 4 / 128 together.
    ratio = ratio_of_medians([20, 21, 22, 23, 24, 25, 26], [10, 11, 12, 13, 14, 15, 16])
    assert ratio.value == pytest.approx(23 / 13)
    assert (ratio.low, ratio.high) == (20 / 16, 26 / 10)
    assert ratio.confidence == pytest.approx(1 - 4 / 128)


def test_a_ratio_of_too_few_trials_says_so_and_gives_no_bounds() -> None:
    ratio = ratio_of_medians([2.0] * 6, [1.0] * 7)
    assert (ratio.value, ratio.low, ratio.high, ratio.kind) == (2.0, None, None, "none")
    assert ratio.reason == "6 trials; an interval takes 7"


@unhurried
@given(st.lists(st.floats(0.1, 1e3), min_size=7, max_size=20), st.lists(st.floats(0.1, 1e3), min_size=7, max_size=20))
def test_a_ratio_the_other_way_round_is_its_inverse(one: list[float], other: list[float]) -> None:
    there, back = ratio_of_medians(one, other), ratio_of_medians(other, one)
    assert there.low is not None and there.high is not None and back.low is not None and back.high is not None
    assert there.low <= there.value <= there.high
    assert (1 / back.high, 1 / back.low) == (pytest.approx(there.low), pytest.approx(there.high))
