"""How often the bounds of a simulated queue's p99 hold its true p99, and how often a limit is judged wrongly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from harness.judgement.rate_curve import RateTrial, Stretch, answer_at, curve_of

pytestmark = pytest.mark.slow

MS = 1_000_000
CAPACITY = 250.0
Law = Callable[[np.random.RandomState, int], np.ndarray]
LAWS: dict[str, Law] = {
    "even": lambda random, count: np.full(count, 4.0 * MS),
    "exponential": lambda random, count: random.exponential(4.0 * MS, count),
    "lognormal": lambda random, count: 4.0 * MS * random.lognormal(-0.125, 0.5, count),
}


def stretch(load: float, law: Law, count: int, random: np.random.RandomState) -> Stretch:
    """Queries of one stretch, by the Lindley recursion."""
    rate = load * CAPACITY
    gaps, service = random.exponential(1e9 / rate, count), law(random, count)
    due, wait = np.cumsum(gaps), np.zeros(count)
    for n in range(count - 1):
        wait[n + 1] = max(0.0, wait[n] + service[n] - gaps[n + 1])
    latency = wait + service
    span = int((due + latency).max())
    return Stretch(rate, count, latency.astype(np.int64), wait.astype(np.int64), span, count // 10)


@pytest.mark.parametrize(("load", "count"), [(0.4, 1500), (0.7, 6000)])
@pytest.mark.parametrize("law", LAWS)
def test_bounds_hold_the_truth_and_limits_are_rarely_judged_wrongly(law: str, load: float, count: int) -> None:
    long = stretch(load, LAWS[law], 300_000, np.random.RandomState(99)).latency_ns[5000:]
    truth = float(np.sort(long)[len(long) * 99 // 100]) / 1e6
    given = held = wrong = asked = 0
    for seed in range(100):
        random = np.random.RandomState(seed)
        trials = [RateTrial(CAPACITY, (stretch(load, LAWS[law], count, random),)) for _ in range(3)]
        point = curve_of(trials, None).points[0]
        assert point.keeps_up
        if point.p99.low is not None and point.p99.high is not None:
            given += 1
            held += point.p99.low <= truth <= point.p99.high
        for limit, right in ((1.1 * truth, "met"), (0.9 * truth, "missed")):
            asked += 1
            wrong += answer_at(point, limit) not in ("undecided", right)
    assert given >= 50
    assert held / given >= 0.93
    assert wrong / asked <= 0.025  # each limit is missed on one side only
