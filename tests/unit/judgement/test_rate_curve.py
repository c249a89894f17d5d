"""Latency over offered rate: what is joined, what a limit asks of it, and when no answer is sure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.judgement.rate_curve import RateTrial, Stretch, answer_at, curve_of, highest_rate, trial_from
from harness.records import Quantile, RateCurve, RatePoint

MS = 1_000_000


def queue(rate: float, service_ms: float, count: int, seed: int, ramp_share: float = 0.1) -> Stretch:
    """A queue with one server and one service time, by the Lindley recursion."""
    random = np.random.RandomState(seed)
    due = np.cumsum(random.exponential(1e9 / rate, count))
    wait = np.zeros(count)
    for n in range(count - 1):
        wait[n + 1] = max(0.0, wait[n] + service_ms * MS - (due[n + 1] - due[n]))
    latency = wait + service_ms * MS
    return Stretch(
        rate,
        count,
        latency.astype(np.int64),
        wait.astype(np.int64),
        int((due + latency).max()),
        int(count * ramp_share),
    )


def trials(rates: list[float], count: int = 2000, how_many: int = 3, service_ms: float = 4.0) -> list[RateTrial]:
    return [
        RateTrial(
            1e3 / service_ms, tuple(queue(rate, service_ms, count, 100 * number + n) for n, rate in enumerate(rates))
        )
        for number in range(how_many)
    ]


def point(rate: float, p99: tuple[float, float, float] | None, keeps_up: bool | None = True) -> RatePoint:
    none = Quantile(None, reason="too few samples")
    known = none if p99 is None else Quantile(p99[0], p99[1], p99[2])
    return RatePoint(rate, rate, 1000, none, none, known, keeps_up)


def test_the_highest_rate_of_a_known_queue_is_found() -> None:
    """M/D/1 with 4 ms: p99 of the sojourn is 30 ms at a load of 0.69 (172 per second), by the decay of its wait."""
    curve = curve_of(trials([100, 140, 200, 224], 8000), 30.0)
    assert [one.meets_limit for one in curve.points] == ["met", "met", "missed", "missed"]
    assert curve.highest_met_per_s == 140
    assert curve.reason is None
    assert [one.keeps_up for one in curve.points] == [True] * 4
    assert all(one.completed_per_s == pytest.approx(one.offered_per_s, rel=0.05) for one in curve.points)
    # Any other limit later, of the stored curve alone.
    assert highest_rate(curve, 1000.0).per_s == 200  # at 0.9 of the capacity 24,000 samples do not carry a p99
    assert curve.points[-1].p99.value is None
    assert highest_rate(curve, 1000.0).missed_per_s is None
    assert highest_rate(curve, 4.5).per_s is None
    assert highest_rate(curve, 12.0, "p50").per_s == 200


def test_beyond_the_capacity_the_queue_grows_and_misses_every_limit() -> None:
    curve = curve_of(trials([100, 280], 1500), 1e9)
    assert [one.keeps_up for one in curve.points] == [True, False]
    assert curve.points[1].meets_limit == "missed"
    assert curve.points[1].completed_per_s == pytest.approx(250, rel=0.02)


def test_a_short_stretch_just_above_the_capacity_is_never_called_met() -> None:
    """A tenth of a second at 1.02 of the capacity shows no queue yet; still there is no steady state to speak of."""
    stretch = queue(255, 4.0, 60, 1)
    curve = curve_of([RateTrial(250.0, (stretch,))], 1000.0)
    assert curve.points[0].keeps_up is None
    assert curve.points[0].meets_limit == "undecided"


def test_a_tail_takes_368_independent_samples() -> None:
    few = curve_of(trials([100], 130, 3), 1000.0)
    assert few.points[0].p99.value is None
    assert "of at least 368" in (few.points[0].p99.reason or "")
    assert few.points[0].meets_limit == "undecided"
    assert few.reason is not None and few.reason.startswith("At no rate is it sure that p99 keeps 1000 ms")
    # Near saturation neighbours wait together: two thousand samples are worth far fewer.
    near = curve_of(trials([240], 800, 1), 1000.0)
    assert "are worth" in (near.points[0].p99.reason or "")


def test_the_ramp_counts_in_no_percentile() -> None:
    stretch = queue(100, 4.0, 2000, 3)
    slow = stretch.latency_ns.copy()
    slow[:200] = 900 * MS
    slowed = Stretch(100.0, 2000, slow, stretch.wait_ns, stretch.span_ns, 200)
    found = curve_of([RateTrial(250.0, (slowed,))], None).points[0]
    assert found.count == 1800
    assert found.p99.high is not None and found.p99.high < 100


def cut(stretch: Stretch) -> Stretch:
    return replace(stretch, planned=2 * stretch.planned)


def test_a_stretch_that_was_cut_off_is_no_sample_and_its_grown_queue_a_miss() -> None:
    """Its slowest queries are missing, so what is there looks better than it was."""
    found = curve_of([RateTrial(250.0, (cut(queue(300, 4.0, 1000, 3)),))], 1000.0).points[0]
    assert found.count == 0
    assert found.keeps_up is False
    assert found.meets_limit == "missed"
    assert "did not end in time" in (found.p99.reason or "")


def test_a_slow_device_that_had_no_time_for_all_queries_is_not_said_to_be_overloaded() -> None:
    """At 0.4 of the capacity no queue grows; the trial's time was over, and nothing more is known."""
    found = curve_of([RateTrial(250.0, (cut(queue(100, 4.0, 1000, 3)),))], 1000.0).points[0]
    assert (found.count, found.keeps_up, found.meets_limit) == (0, None, "undecided")
    whole = queue(100, 4.0, 1000, 4)
    beside = curve_of([RateTrial(250.0, (cut(queue(100, 4.0, 1000, 3)),)), RateTrial(250.0, (whole,))], 1000.0)
    assert (beside.points[0].count, beside.points[0].keeps_up) == (900, True)


@pytest.mark.parametrize(
    ("known", "keeps_up", "answer"),
    [
        ((10, 9, 14.9), True, "met"),
        ((10, 9, 15.1), True, "undecided"),  # the interval holds the limit
        ((20, 15.1, 30), True, "missed"),
        (None, True, "undecided"),
        ((10, 9, 11), None, "undecided"),
        ((10, 9, 11), False, "missed"),
    ],
)
def test_what_bounds_say_of_a_limit(
    known: tuple[float, float, float] | None, keeps_up: bool | None, answer: str
) -> None:
    assert answer_at(point(100, known, keeps_up), 15.0) == answer


def test_a_median_above_the_limit_misses_it_though_the_tail_is_unknown() -> None:
    slow = RatePoint(10, 10, 50, Quantile(20, 18, 22), Quantile(None), Quantile(None, reason="too few samples"), True)
    assert answer_at(slow, 15.0) == "missed"


def test_the_search_stops_at_the_first_rate_that_misses() -> None:
    good, bad, unsure = (10.0, 9.0, 11.0), (40.0, 30.0, 50.0), (14.0, 10.0, 20.0)
    curve = RateCurve((point(10, good), point(20, unsure), point(30, good), point(40, bad), point(50, good)))
    found = highest_rate(curve, 15.0)
    assert (found.per_s, found.missed_per_s) == (30, 40)
    assert found.answers == ("met", "undecided", "met", "missed", "met")
    none = highest_rate(RateCurve((point(10, bad),)), 15.0)
    assert none.reason == "Even at the lowest rate, 10 per second, the latency is above the limit of 15 ms (40 ms)."
    with pytest.raises(ValueError, match="not p95"):
        highest_rate(curve, 15.0, "p95")


def test_six_trials_give_an_interval_over_trials() -> None:
    found = curve_of(trials([100], 1000, 6), None).points[0].p99
    assert "95 % interval of the median over 6 trials" in (found.method or "")


def test_without_a_limit_nothing_is_judged() -> None:
    curve = curve_of(trials([100], 500, 1), None)
    assert curve.points[0].meets_limit is None
    assert curve.highest_met_per_s is None
    assert "any can be asked" in (curve.reason or "")


def test_samples_are_cut_as_the_file_of_stretches_tells() -> None:
    told = [
        {"offered_per_s": 10.0, "planned": 2, "answered": 2, "ramp": 1, "span_ns": 7},
        {"offered_per_s": 20.0, "planned": 3, "answered": 1, "ramp": 1, "span_ns": 8},
    ]
    trial = trial_from(30.0, told, np.array([1, 2, 3]), np.array([0, 0, 1]))
    assert [list(one.latency_ns) for one in trial.stretches] == [[1, 2], [3]]
    assert [one.complete for one in trial.stretches] == [True, False]
    with pytest.raises(ValueError, match="hold 3 queries, the samples 2"):
        trial_from(30.0, told, np.array([1, 2]), np.array([0, 0]))
