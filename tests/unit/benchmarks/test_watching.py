"""Latencies of one trial are cut into watched and unwatched stretches by when each query began."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.watching import FEWEST, STRETCH_NS, paired
from harness.errors import NotDone


def test_each_query_belongs_to_the_stretch_that_it_began_in() -> None:
    origin, start = 7_000_000_000, 7_000_000_000 + STRETCH_NS // 2
    slow, fast = 2_000_000, 1_000_000  # 250 and 500 in a stretch
    latencies: list[int] = []
    at = start
    while at < origin + 9 * STRETCH_NS:
        latencies.append(slow if (at - origin) // STRETCH_NS % 2 == 0 else fast)
        at += latencies[-1]
    found = {"latency_ns": np.array(latencies, np.int64), "window_start_ns": start}
    pairs = paired(found, origin)
    # Of the stretches 0 to 8 the first and last are cut off; 2, 4 and 6 are watched and have a neighbour.
    assert [(watched["p50"], unwatched["p50"]) for watched, unwatched in pairs] == [(2000.0, 1000.0)] * 3


def test_too_few_queries_are_said() -> None:
    few = {"latency_ns": np.full(FEWEST, STRETCH_NS // 10, np.int64), "window_start_ns": 0}
    with pytest.raises(NotDone, match="too few"):
        paired(few, 0)
