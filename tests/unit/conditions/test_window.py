"""Only what belongs to the timed window counts; flags follow by thresholds that stand in one place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.conditions.looks import Look
from harness.conditions.window import conditions_of
from harness.judgement.disturbance import flags_of
from harness.judgement.flags import KINDS

S = 1_000_000_000


def _looks(count: int = 21, **rates: float) -> list[Look]:
    """A look each 0.5 s from 0 to 10 s; each counter grows at its rate per second."""
    return [
        Look(number * S // 2, {name: rate * number / 2 for name, rate in rates.items()}, {}, frozenset())
        for number in range(count)
    ]


def test_shares_are_of_the_processors_that_the_worker_may_use() -> None:
    found = conditions_of(_looks(busy_s=1.6, worker_s=1.0, harness_s=0.1, steal_s=0.08), (3 * S, 7 * S), 2, None, {})
    assert found["other_load"] == pytest.approx(0.25)  # (1.6 - 1.0 - 0.1) of 2
    assert found["worker_load"] == pytest.approx(0.5)
    assert found["steal"] == pytest.approx(0.04)
    assert (found["scope"], found["seconds"], found["processors"]) == ("window", 4.0, 2)


def test_load_outside_the_window_does_not_count() -> None:
    def busy(at: float) -> float:
        return min(at, 3.0) + max(0.0, at - 7.0)  # a hog until second 3 and from second 7 on

    looks = [
        Look(n * S // 2, {"busy_s": busy(n / 2), "worker_s": 0.0, "harness_s": 0.0}, {}, frozenset()) for n in range(21)
    ]
    assert conditions_of(looks, (3 * S, 7 * S), 1, None, {})["other_load"] == 0.0
    assert conditions_of(looks, (int(2.25 * S), int(3.25 * S)), 1, None, {})["other_load"] == pytest.approx(0.75)
    assert conditions_of(looks, None, 1, None, {})["other_load"] == pytest.approx(0.6)


def test_events_count_from_the_look_before_to_the_look_after() -> None:
    looks = _looks(worker_periods=10, worker_throttled_periods=5, worker_throttled_s=0.2, pswpin=100, pswpout=0)
    found = conditions_of(looks, (int(3.1 * S), int(3.4 * S)), 2, None, {})  # inside one step of looks
    assert found["cgroup"] == {"periods": 5, "throttled": 2.5, "throttled_s": pytest.approx(0.1)}
    assert found["swap"]["pages_in"] == 50
    assert found["resolution_s"] == 0.5


def test_a_clock_step_is_the_largest_jump_between_two_looks() -> None:
    looks = [
        Look(n * S, {"wall_offset_s": 100.0 + (2.5 if n > 4 else 0.0) - (4.0 if n > 6 else 0.0)}, {}, frozenset())
        for n in range(10)
    ]
    assert conditions_of(looks, None, 1, None, {})["clock"]["largest_step_s"] == -4.0
    assert conditions_of(looks, (0, 3 * S), 1, None, {})["clock"]["largest_step_s"] == 0.0


def test_one_odd_look_of_twenty_makes_no_spread() -> None:
    looks = [Look(n * S, {}, {"frequency_mhz": 800.0 if n == 7 else 3400.0}, frozenset()) for n in range(20)]
    level = conditions_of(looks, None, 1, None, {})["frequency_mhz"]
    assert (level["low"], level["high"], level["median"]) == (3400.0, 3400.0, 3400.0)


def test_a_long_window_keeps_a_series_of_bounded_length() -> None:
    found = conditions_of(_looks(3001, busy_s=1.0, worker_s=0.5, harness_s=0.0), None, 1, None, {})
    series = found["series"]
    assert len(series["at_s"]) == len(series["other_load"]) <= 300
    assert series["other_load"][5] == pytest.approx(0.5)


def test_a_worker_that_ended_at_once_says_so() -> None:
    assert "ended before" in conditions_of(_looks(1), None, 1, None, {})["unavailable"]["all"]


def _calm() -> dict[str, Any]:
    return {
        "scope": "window", "seconds": 2.0, "processors": 4, "other_load": 0.01, "steal": 0.0,
        "cgroup": {"periods": 20, "throttled": 0, "throttled_s": 0.0},
        "swap": {"pages_in": 0, "pages_out": 0, "major_faults": 0},
        "clock": {"largest_step_s": 0.0001, "suspended_s": 0.0},
        "frequency_mhz": {"first": 3400.0, "last": 3390.0, "low": 3350.0, "high": 3400.0, "median": 3395.0},
        "temperature_c": {"first": 60.0, "last": 66.0, "low": 60.0, "high": 66.0, "median": 64.0, "limit": 100.0},
        "thermal_events": 0,
    }  # fmt: skip


def test_a_quiet_machine_raises_no_flag() -> None:
    assert flags_of([_calm(), _calm()]) == ()


@pytest.mark.parametrize(
    ("change", "code", "numbers"),
    [
        ({"other_load": 0.25}, "other_load", ("1.00 of 4 processors", "25%", "1 of 2 trials")),
        ({"other_load": 0.02, "processors": 64}, "other_load", ("1.28 of 64",)),
        ({"steal": 0.031}, "steal", ("3.1%",)),
        ({"cgroup": {"periods": 20, "throttled": 18, "throttled_s": 1.4}}, "cgroup_throttled", ("18 of 20", "1.40")),
        ({"swap": {"pages_in": 300, "pages_out": 12, "major_faults": 3}}, "swap", ("312 pages", "3 page faults")),
        ({"clock": {"largest_step_s": -1.25, "suspended_s": 0.0}}, "clock_step", ("-1.250 s",)),
        ({"clock": {"largest_step_s": 0.0, "suspended_s": 12.0}}, "clock_step", ("slept for 12.0 s",)),
        ({"frequency_mhz": {"low": 1500.0, "high": 2400.0, "median": 2400.0}}, "frequency_changed", ("1500", "2400 MHz")),
        ({"gpu_clock_mhz": {"low": 900.0, "high": 1410.0, "median": 1400.0}}, "frequency_changed", ("GPU's clock", "900")),
        ({"temperature_c": {"high": 96.0, "limit": 100.0}}, "temperature_high", ("96 °C", "100 °C")),
        ({"thermal_events": 4}, "throttled", ("4 events",)),
        ({"signs": ["under_voltage"]}, "throttled", ("supply voltage",)),
        ({"signs_of_worker": ["throttled"]}, "throttled", ("while the workers ran",)),
    ],
)  # fmt: skip
def test_each_disturbance_raises_its_flag_with_its_numbers(
    change: dict[str, Any], code: str, numbers: tuple[str, ...]
) -> None:
    (flag,) = flags_of([_calm(), {**_calm(), **change}])
    assert flag.code == code
    assert code in KINDS
    for number in numbers:
        assert number in flag.message


def test_trials_at_another_frequency_each_steady_in_itself() -> None:
    slow = {**_calm(), "frequency_mhz": {"low": 2990.0, "high": 3000.0, "median": 3000.0}}
    (flag,) = flags_of([_calm(), slow])
    assert flag.code == "frequency_changed"
    assert "between trials: from 3000 to 3395 MHz" in flag.message


def test_a_gpu_at_its_power_cap_is_its_normal_state() -> None:
    assert flags_of([{**_calm(), "signs": ["gpu_power_cap"]}]) == ()


def test_what_is_not_known_raises_nothing() -> None:
    assert flags_of([]) == flags_of([{}]) == flags_of([{"unavailable": {"all": "why"}}]) == ()


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 256))
def test_more_load_never_takes_a_flag_away(one: float, more: float, processors: int) -> None:
    low, high = sorted((one, more))
    codes = [
        {flag.code for flag in flags_of([{"other_load": load, "steal": load, "processors": processors}])}
        for load in (low, high)
    ]
    assert codes[0] <= codes[1]
