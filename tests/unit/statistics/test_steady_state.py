"""Where the steady part of a trial begins, in trials of which it is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.judgement.steady_state import SteadyState, find_steady_state, steadiness_flags


def latencies(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(0.0, 0.1, count)


@pytest.mark.parametrize("count", [500, 3000])
def test_a_steady_trial_keeps_almost_everything(count: int) -> None:
    shares = [find_steady_state(latencies(count, seed)).share_discarded for seed in range(40)]
    assert None not in shares
    assert np.mean(shares) < 0.03  # type: ignore[arg-type]


@pytest.mark.parametrize("slow", [50, 200, 400])
def test_a_slow_start_is_cut_off(slow: int) -> None:
    values = latencies(1000, seed=1)
    values[:slow] *= 2
    found = find_steady_state(values)
    assert found.start is not None
    assert slow <= found.start <= slow + 60
    assert found.share_discarded == found.start / 1000


def test_a_start_that_fades_is_cut_where_it_no_longer_shows() -> None:
    values = latencies(2000, seed=2) * (1 + 3 * np.exp(-np.arange(2000) / 60))
    found = find_steady_state(values)
    assert found.start is not None
    assert 120 <= found.start <= 500  # at 120 it is 40 % slower, at 300 2 %


def test_single_slow_queries_are_no_warm_up() -> None:
    values = latencies(1000, seed=3)
    values[700] = 1e6
    values[20] = 1e6
    assert find_steady_state(values).share_discarded == pytest.approx(0, abs=0.03)


def test_more_than_half_to_discard_is_no_steady_state() -> None:
    values = latencies(1000, seed=4)
    values[:600] *= 1.5
    found = find_steady_state(values)
    assert (found.start, found.share_discarded) == (None, None)
    assert found.reason == "no steady state: more than half of the samples would have to go"


def test_a_drift_is_no_steady_state() -> None:
    drifting = latencies(3000, seed=5) * np.linspace(1, 1.5, 3000)
    assert find_steady_state(drifting).start is None


def test_slowing_down_near_the_end_is_no_steady_state() -> None:
    values = latencies(1000, seed=6)
    values[850:] *= 1.4
    found = find_steady_state(values)
    assert found.start is None
    assert found.reason is not None and found.reason.endswith("samples are of another pace")


def test_few_samples_tell_nothing() -> None:
    found = find_steady_state(latencies(199, seed=7))
    assert found.reason == "199 samples are too few to tell, it takes 200"


# On a busy machine an example may wait for its turn; how long it takes is not what is tested.
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(1, 50), min_size=200, max_size=600), st.integers(2, 1000))
def test_it_does_not_depend_on_the_unit_and_never_discards_more_than_half(values: list[int], factor: int) -> None:
    found = find_steady_state(np.array(values))
    assert find_steady_state(np.array(values) * factor) == found
    assert found.start is None or 0 <= found.start <= len(values) / 2
    assert (found.start is None) == (found.reason is not None)


def test_equal_samples_are_steady_from_the_start() -> None:
    assert find_steady_state(np.full(300, 5)).start == 0


def judged(start: int | None, count: int = 1000) -> SteadyState:
    return SteadyState(start, count, None if start is not None else "no steady state: it rises")


def test_flags_take_half_of_the_trials_because_chance_makes_a_few() -> None:
    steady = judged(0)
    assert steadiness_flags([judged(200), steady, steady]) == ()  # one of three
    (slow,) = steadiness_flags([judged(200), judged(300), steady, steady])
    assert slow.code == "slow_start"
    assert slow.message == ("2 of 4 trials started slowly: about 30% of their samples were left out, more than 10%.")
    assert steadiness_flags([judged(100)] * 2) == ()  # a tenth is not more than a tenth
    (lost,) = steadiness_flags([judged(None), steady])
    assert (
        lost.code == "not_steady" and "1 of 2 trials found no steady state: no steady state: it rises." in lost.message
    )


def test_too_few_samples_speak_neither_for_nor_against() -> None:
    few = find_steady_state([1.0] * 199)
    assert (few.start, few.judged) == (None, False)
    assert steadiness_flags([few, few]) == ()
    (flag,) = steadiness_flags([few, judged(None)])  # one of the one that could be judged
    assert flag.code == "not_steady"


def test_steady_trials_seldom_raise_a_flag_together() -> None:
    # Eight trials of 400 samples with a memory of ten, two hundred times over.
    rng = np.random.default_rng(5)
    raised = 0
    for _ in range(200):
        noise = rng.normal(0, np.sqrt(1 - 0.81), (8, 400))
        for index in range(1, 400):
            noise[:, index] += 0.9 * noise[:, index - 1]
        raised += bool(steadiness_flags([find_steady_state(trial) for trial in np.exp(0.3 * noise)]))
    assert raised / 200 <= 0.01


def test_a_slow_start_before_equal_latencies_is_cut_off_where_it_ends() -> None:
    """A coarse clock, or a device without jitter: what is left has no scatter at all, and every later cut is as good."""
    found = find_steady_state(np.r_[np.full(100, 20_000), np.full(2000, 2_000)])
    assert found.start is not None and 100 <= found.start <= 150
