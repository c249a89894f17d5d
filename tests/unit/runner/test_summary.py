"""Percentiles by LoadGen's rule, nulls where samples are too few, medians of cold starts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judgement.summary import (
    PER_MILLE,
    loadgen_percentile,
    median_ms,
    over_trials,
    samples_needed,
    stability_flags,
    summarise_cold_start,
    summarise_latency,
)

MS = 1_000_000


def mixed(count: int) -> np.ndarray:
    """1 to `count` milliseconds in an order that tells nothing: each is the one before plus a fixed stride, modulo `count`.

    The stride is near the golden section of the count and prime to it, which spreads neighbours as evenly as can be.
    """
    stride = next(step for step in range(round(count * 0.618), 2 * count) if np.gcd(step, count) == 1)
    return np.array([(number * stride) % count + 1 for number in range(count)], dtype=np.int64) * MS


def nanoseconds(*milliseconds: float) -> np.ndarray:
    return np.array([round(value * MS) for value in milliseconds], dtype=np.int64)


def test_percentiles_of_one_to_thousand_are_the_samples_that_loadgen_takes() -> None:
    latency = summarise_latency([mixed(4000)])
    assert latency is not None
    # Zero-based index floor(4000 p): 2000, 3600, 3800, 3960, 3996; the value there is one more.
    found = [getattr(latency, name).value for name in ("p50", "p90", "p95", "p99", "p99_9")]
    assert found == [2001, 3601, 3801, 3961, 3997]
    assert (latency.count, latency.mean, latency.min, latency.max) == (4000, 2000.5, 1, 4000)


@pytest.mark.parametrize(("name", "least"), [("p50", 6), ("p90", 36), ("p95", 72), ("p99", 368), ("p99_9", 3688)])
def test_a_percentile_needs_the_samples_of_a_two_sided_interval(name: str, least: int) -> None:
    # By hand: p^n <= 0.025, so n >= ln 0.025 / ln p; for the median 0.5^6 = 1 / 64 is the first below 1 / 40.
    assert samples_needed(PER_MILLE[name]) == least
    # Two trials whose samples alternate around the percentile: none of them tells anything about the next.
    enough = summarise_latency([mixed(4 * least), mixed(4 * least)])
    few = summarise_latency([mixed(least - 1)])
    assert enough is not None and few is not None
    assert getattr(enough, name).value is not None
    assert getattr(few, name).value is None
    assert getattr(few, name).reason == f"too few samples: {least - 1} of at least {least}"


def test_samples_that_resemble_their_neighbours_count_for_fewer() -> None:
    # 4000 samples in order: to be at most the percentile is one long run, which is worth next to nothing.
    latency = summarise_latency([nanoseconds(*range(1, 4001))])
    assert latency is not None and latency.p99.value is None
    assert "too few samples: 4000 samples are worth " in (latency.p99.reason or "")
    assert (latency.p99.reason or "").endswith(" independent ones, of at least 368")


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=2500), st.sampled_from(sorted(PER_MILLE.values())))
def test_the_index_is_exact_where_binary_fractions_are_not(values: list[int], per_mille: int) -> None:
    exact = int(Fraction(per_mille, 1000) * len(values))
    assert loadgen_percentile(np.sort(np.array(values, np.int64)), per_mille) == sorted(values)[exact]


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=300))
def test_it_agrees_with_numpy_for_mean_and_extremes_and_percentiles_are_in_order(values: list[int]) -> None:
    latency = summarise_latency([np.array(values, np.int64)])
    assert latency is not None and latency.mean is not None
    assert latency.mean == pytest.approx(np.mean(values) / 1e6)
    known = [
        q.value for q in (latency.p50, latency.p90, latency.p95, latency.p99, latency.p99_9) if q.value is not None
    ]
    assert [latency.min, *known, latency.max] == sorted([latency.min, *known, latency.max])  # type: ignore[type-var]


def test_trials_are_pooled_and_their_own_percentiles_are_the_range() -> None:
    latency = summarise_latency([nanoseconds(*[1.0] * 10), nanoseconds(*[3.0] * 10), nanoseconds(*[2.0] * 10)])
    assert latency is not None
    assert (latency.count, latency.p50.value, latency.p50.low, latency.p50.high) == (30, 2.0, 1.0, 3.0)
    assert latency.p50.method == "floor(n p) of all trials together, range of 3 trials, 1 unit measured"


def test_from_six_trials_on_the_value_is_the_median_of_the_trials_own_like_its_interval() -> None:
    # By hand: p50 of each trial is its one value; sorted 1 2 3 4 5 9, the middle is 3.5, and at 95 % the interval is all.
    # All samples together would have said 9: the last trial holds as many as the others twice over.
    trials = [nanoseconds(*[value] * 10) for value in (3.0, 1.0, 5.0, 2.0, 4.0)] + [nanoseconds(*[9.0] * 100)]
    latency = summarise_latency(trials)
    assert latency is not None
    assert (latency.p50.value, latency.p50.low, latency.p50.high) == (3.5, 1.0, 9.0)
    assert latency.p50.method == "floor(n p) of each trial, 95 % interval of the median over 6 trials, 1 unit measured"


def test_a_look_among_several_claims_more_confidence_and_is_wider() -> None:
    trials = [nanoseconds(*[float(value)] * 10) for value in range(1, 13)]
    alone, look = summarise_latency(trials), summarise_latency(trials, 0.9875)
    assert alone is not None and look is not None
    # Of 12: P(B <= 2) = 79 / 4096 = 1.93 %, within a tail of 2.5 % but not of 0.625 %; P(B <= 1) = 13 / 4096 = 0.32 %.
    assert (alone.p50.low, alone.p50.high) == (3.0, 10.0)
    assert (look.p50.low, look.p50.high) == (2.0, 11.0)
    assert "over 12 trials, 98.75 % at this look, 1 unit" in (look.p50.method or "")


def test_trials_too_short_for_their_own_percentile_give_it_together_without_bounds() -> None:
    latency = summarise_latency([mixed(60) for _ in range(8)])
    assert latency is not None
    assert (latency.count, latency.p99.value, latency.p99.low) == (480, 60.0, None)  # floor(480 x 0.99) = 475 of 480
    assert "each too short for its own" in (latency.p99.method or "")


def test_throughput_has_the_same_rules_over_trials() -> None:
    assert over_trials([5.0]).low is None
    assert "one trial" in (over_trials([5.0]).method or "")
    two = over_trials([4.0, 6.0])
    assert (two.value, two.low, two.high, two.method) == (5.0, 4.0, 6.0, "median, range of 2 trials, 1 unit measured")
    nine = over_trials([float(value) for value in range(1, 10)])  # the second and the eighth of nine
    assert (nine.value, nine.low, nine.high) == (5.0, 2.0, 8.0)
    assert nine.method == "95 % interval of the median over 9 trials, 1 unit measured"


def test_one_trial_has_no_range() -> None:
    latency = summarise_latency([mixed(20)])
    assert latency is not None
    assert latency.p50.value == 11
    assert "one trial" in (latency.p50.method or "")


def test_no_samples_are_no_latency_and_no_median() -> None:
    assert summarise_latency([]) is None
    assert summarise_latency([nanoseconds()]) is None
    assert median_ms([nanoseconds()]) is None
    assert median_ms([nanoseconds(1, 9), nanoseconds(2)]) == 2.0


def test_cold_start_is_the_median_of_what_each_trial_knows() -> None:
    parts = [
        {"process": 80, "import": 40, "load": 10, "compile": None, "first_inference": 3},
        {"process": 90, "import": 60, "load": 14, "compile": None, "first_inference": 5},
        {"process": None, "import": 50, "load": 11, "compile": None, "first_inference": 4},
    ]
    cold = summarise_cold_start(parts, {"compile": "off"})
    assert cold is not None
    assert (cold.process, cold.import_, cold.load, cold.compile, cold.first_inference) == (85, 50, 11, None, 4)
    assert summarise_cold_start([], {}) is None


def test_trials_that_tell_different_stories_are_flagged() -> None:
    steady = [nanoseconds(10, 10, 10), nanoseconds(10.5, 10.5, 10.5)]
    apart = [nanoseconds(10, 10, 10), nanoseconds(20, 20, 20)]
    assert stability_flags(steady) == ()
    (flag,) = stability_flags(apart)
    assert flag.code == "trials_disagree"
    assert "67%" in flag.message  # (20 - 10) / 15


def test_of_many_trials_the_middle_half_must_agree() -> None:
    one_apart = [nanoseconds(10.0 + 0.1 * number) for number in range(7)] + [nanoseconds(20.0)]
    assert stability_flags(one_apart) == ()
    half_apart = [nanoseconds(10.0)] * 4 + [nanoseconds(20.0)] * 4
    (flag,) = stability_flags(half_apart)
    assert "Half of the medians of 8 trials lie 67% apart" in flag.message


def test_where_the_middle_is_not_carried_the_tail_is_not_given_either() -> None:
    """One slow change of pace: the middle is as good as four samples, though single slow queries come at random."""
    rng = np.random.default_rng(7)
    pace = np.repeat([3_000_000, 10_000_000], 4000)
    samples = (pace + rng.integers(0, 1000, len(pace))).astype(np.int64)
    samples[rng.choice(len(samples), 80, replace=False)] += 50_000_000
    latency = summarise_latency([samples])
    assert latency is not None
    assert latency.p50.value is None and "independent" in (latency.p50.reason or "")
    assert latency.p99.value is None and latency.p99_9.value is None
