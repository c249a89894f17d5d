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
    samples_needed,
    stability_flags,
    summarise_cold_start,
    summarise_latency,
)

MS = 1_000_000


def nanoseconds(*milliseconds: float) -> np.ndarray:
    return np.array([round(value * MS) for value in milliseconds], dtype=np.int64)


def test_percentiles_of_one_to_thousand_are_the_samples_that_loadgen_takes() -> None:
    latency = summarise_latency([nanoseconds(*range(1000, 0, -1))])
    assert latency is not None
    # Zero-based index floor(1000 p): 500, 900, 950, 990, 999; the value there is one more.
    found = [getattr(latency, name).value for name in ("p50", "p90", "p95", "p99", "p99_9")]
    assert found == [501, 901, 951, 991, 1000]
    assert (latency.count, latency.mean, latency.min, latency.max) == (1000, 500.5, 1, 1000)


@pytest.mark.parametrize(("name", "least"), [("p50", 2), ("p90", 10), ("p95", 20), ("p99", 100), ("p99_9", 1000)])
def test_a_percentile_needs_one_expected_sample_above_it(name: str, least: int) -> None:
    assert samples_needed(PER_MILLE[name]) == least
    enough = summarise_latency([nanoseconds(*range(1, least + 1))])
    few = summarise_latency([nanoseconds(*range(1, least))])
    assert enough is not None and few is not None
    assert getattr(enough, name).value == least  # floor(n p) is the last sample when n (1 - p) = 1, or n/2 for two
    assert getattr(few, name).value is None
    assert getattr(few, name).reason == f"too few samples: {least - 1} of at least {least}"


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
    assert latency.p50.method == "floor(n p), range of 3 trials"


def test_one_trial_has_no_range() -> None:
    latency = summarise_latency([nanoseconds(1, 2, 3)])
    assert latency is not None
    assert (latency.p50.value, latency.p50.low, latency.p50.high) == (2, None, None)


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
