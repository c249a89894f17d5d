"""A load of minutes: slices, drift, and when the device is said to have throttled."""

from __future__ import annotations

import numpy as np
import pytest

from harness.judgement.over_time import SLICES, Course, over_time, throttled, verdict_of

MS = 1_000_000


def course(
    factor_at_end: float = 1.0,
    seed: int = 0,
    seconds: float = 60.0,
    noise: float = 0.05,
    series: dict[str, list[float | None]] | None = None,
    stall: tuple[float, float] | None = None,
) -> Course:
    """10 ms with noise that rises evenly to `factor_at_end`; ten times as long between the seconds of `stall`."""
    random = np.random.RandomState(seed)
    started, times, now = [], [], 0.0
    while now < seconds * 1e9:
        each = 10 * MS * (1 + (factor_at_end - 1) * now / (seconds * 1e9)) * random.lognormal(0, noise)
        if stall is not None and stall[0] <= now / 1e9 < stall[1]:
            each *= 10
        started.append(now)
        times.append(each)
        now += each
    return Course(np.array(times, np.int64), np.array(started, np.int64), 1, seconds, series)


def test_an_even_load_is_steady_and_its_slices_add_up() -> None:
    one = course()
    found = over_time([one])
    assert found.verdict == "steady"
    assert found.drift == pytest.approx(1.0, abs=0.02)
    assert len(found.slices) == SLICES
    assert sum(part.count for part in found.slices) == len(one.latency_ns)
    assert all(part.p50_ms == pytest.approx(10, rel=0.05) for part in found.slices)
    assert all(part.throughput_per_s == pytest.approx(100, rel=0.05) for part in found.slices)
    assert all(part.p99_ms is None for part in found.slices)  # a hundred samples carry no p99
    assert found.slices[-1].end_s == pytest.approx(60)


def test_what_gets_slower_evenly_is_called_so_with_its_size() -> None:
    """Over the first fifth the mean factor is 1.03, over the last 1.27: their ratio is 1.233."""
    found = over_time([course(1.3)])
    assert found.verdict == "slower"
    assert found.drift == pytest.approx(1.27 / 1.03, rel=0.02)
    assert found.drift_low is not None and found.drift_high is not None
    assert found.drift_low < 1.27 / 1.03 < found.drift_high
    assert over_time([course(0.7)]).verdict == "faster"


def test_a_stall_of_a_few_seconds_is_no_drift() -> None:
    assert over_time([course(stall=(55.0, 58.0))]).verdict in ("steady", "undecided")


def test_few_queries_leave_it_undecided_with_the_reason() -> None:
    found = over_time([course(seconds=0.3)])
    assert found.verdict == "undecided"
    assert found.drift is None
    assert "fewer than 10 queries" in (found.reason or "")


def test_six_trials_are_judged_over_trials() -> None:
    """Trials that disagree about their drift give a wide interval, however many samples each has."""
    found = over_time([course(factor, seed) for seed, factor in enumerate((0.8, 1.3, 0.85, 1.25, 1.0, 1.1))])
    assert found.verdict == "undecided"
    assert found.drift_low is not None and found.drift_low < 0.9
    assert over_time([course(1.3, seed) for seed in range(6)]).verdict == "slower"


def test_slices_have_the_clock_and_the_temperature_of_their_time() -> None:
    series: dict[str, list[float | None]] = {
        "at_s": [float(second) for second in range(60)],
        "frequency_mhz": [2400.0 - 10 * second for second in range(60)],
        "temperature_c": [50.0 + second / 2 if second != 1 else None for second in range(60)],
    }
    found = over_time([course(1.3, series=series)])
    assert (found.slices[10].cpu_mhz, found.slices[10].temperature_c) == (2300.0, 55.0)
    assert found.slices[1].temperature_c is None
    flag = throttled(found)
    assert flag is not None and flag.code == "throttled"
    assert "the processor's clock fell from 2345 to 1865 MHz, at 53 and 77 C" in flag.message


def test_slower_without_evidence_is_no_throttling() -> None:
    even: dict[str, list[float | None]] = {"at_s": [0.0, 30.0, 59.0], "frequency_mhz": [2400.0, 2400.0, 2395.0]}
    assert throttled(over_time([course(1.3)])) is None
    assert throttled(over_time([course(1.3, series=even)])) is None
    falling: dict[str, list[float | None]] = {"at_s": [0.0, 59.0], "frequency_mhz": [2400.0, 1200.0]}
    assert throttled(over_time([course(1.0, series=falling)])) is None


def test_thinned_samples_stand_for_all_queries() -> None:
    one = course()
    thinned = Course(one.latency_ns[::4], one.started_ns[::4], 4, one.seconds)
    found = over_time([thinned])
    assert sum(part.count for part in found.slices) == pytest.approx(len(one.latency_ns), abs=4)


@pytest.mark.parametrize(
    ("drift", "low", "high", "verdict"),
    [
        (1.0, 0.98, 1.02, "steady"),
        (1.02, 1.01, 1.029, "steady"),  # sure, and of no consequence
        (1.1, 1.05, 1.2, "slower"),
        (1.1, 0.99, 1.2, "undecided"),
        (0.9, 0.8, 0.95, "faster"),
        (1.02, 1.01, 1.05, "undecided"),
        (1.5, None, None, "undecided"),
    ],
)
def test_the_word_for_a_drift(drift: float, low: float | None, high: float | None, verdict: str) -> None:
    assert verdict_of(drift, low, high) == verdict
