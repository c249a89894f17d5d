"""The other load patterns on a virtual clock: what is timed, what is not, and when the window ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from backends.base import Array, OptionUnsupported
from harness.scenarios import run, slots_for
from harness.scenarios.window import Limits

MS = 1_000_000
Pool = list[tuple[Array, ...]]
Make = Callable[..., Any]  # see `scripted`


def test_multi_stream_counts_a_query_until_all_its_samples_are_answered(scripted: Make, pool: Pool) -> None:
    session = scripted([MS, 2 * MS, 3 * MS, 4 * MS])  # a query of four takes ten
    limits = Limits(duration_s=1, min_queries=1, warmup_s=0)
    played = run("multi_stream", session, pool, limits, {"samples_per_query": 4, "batch": 1}, (), 1)
    assert played.samples["latency_ns"] == pytest.approx(10 * MS, rel=1e-3)
    assert len(played.window.query_ns) == 100
    assert played.requests == 400
    assert played.requests_per_s == pytest.approx(400, rel=0.01)


def test_multi_stream_keeps_its_slots_busy_and_waits_for_the_slowest(scripted: Make, pool: Pool) -> None:
    """Four requests on two slots: 10 beside 2, 2, 2 ms end after 10, not after 16 or 12."""
    session = scripted([10 * MS, 2 * MS, 2 * MS, 2 * MS])
    limits = Limits(duration_s=0.5, min_queries=1, warmup_s=0)
    played = run("multi_stream", session, pool, limits, {"samples_per_query": 8, "batch": 2}, (), 2)
    assert played.samples["latency_ns"] == pytest.approx(10 * MS, rel=1e-3)
    assert session.most_in_flight == 2


def test_multi_stream_with_the_whole_query_as_a_batch_is_one_call(scripted: Make, pool: Pool) -> None:
    session = scripted([5 * MS])
    parameters = {"samples_per_query": 8, "batch": 8}
    slots = slots_for("multi_stream", session, {**parameters, "slots": 4})
    assert slots == 1
    played = run("multi_stream", session, pool, Limits(duration_s=0.1, min_queries=1), parameters, (), slots)
    assert played.facts["requests_per_query"] == 1
    assert played.samples["latency_ns"] == pytest.approx(5 * MS, rel=1e-3)


def test_a_batch_that_does_not_divide_the_query_is_not_supported(scripted: Make) -> None:
    with pytest.raises(OptionUnsupported, match="8 samples cannot be made of batches of 3"):
        slots_for("multi_stream", scripted([MS]), {"samples_per_query": 8, "batch": 3})


def test_a_duty_cycle_sleeps_between_and_tells_the_price_of_it(clock: Any, scripted: Make, pool: Pool) -> None:
    class Sleepy:
        """Two milliseconds, and six after a pause."""

        def __init__(self) -> None:
            self.last = 0

        def infer(self, slot: int, inputs: object) -> tuple[()]:
            rested = clock.now - self.last > 100 * MS
            clock.pass_by(6 * MS if rested else 2 * MS)
            self.last = clock.now
            return ()

    limits = Limits(duration_s=5, min_queries=1, warmup_s=0.1)
    played = run("duty_cycle", Sleepy(), pool, limits, {"period_s": 0.5})  # type: ignore[arg-type]
    assert len(played.samples["latency_ns"]) == 10
    assert played.samples["latency_ns"] == pytest.approx(6 * MS, rel=1e-3)
    assert np.median(played.samples["back_to_back_ns"]) == pytest.approx(2 * MS, rel=1e-3)
    assert played.requests_per_s is None
    assert (played.samples["late_ns"] < 10_000).all()
    # Ten periods, of which nearly all was slept.
    assert clock.slept_ns == pytest.approx(10 * 494 * MS, rel=0.01)


def test_a_request_longer_than_its_period_moves_the_others(scripted: Make, pool: Pool) -> None:
    session = scripted([30 * MS])
    limits = Limits(duration_s=0.2, min_queries=1, warmup_s=0)
    played = run("duty_cycle", session, pool, limits, {"period_s": 0.02})
    assert played.facts["longer_than_period"] == len(played.samples["latency_ns"]) == 10
    assert (played.samples["late_ns"][2:] < 15 * MS).all()


def test_sustained_keeps_times_and_starts_until_its_duration_is_over(scripted: Make, pool: Pool) -> None:
    session = scripted([10 * MS])
    played = run("sustained", session, pool, Limits(duration_s=3, warmup_s=0.1, limit_s=1), {})
    starts = played.samples["started_ns"]
    assert len(starts) == len(played.samples["latency_ns"]) == played.requests == 300
    assert np.diff(starts) == pytest.approx(10 * MS, rel=1e-3)
    assert played.facts == {"every": 1, "queries": 300}


def test_sustained_thins_out_what_would_not_fit_and_counts_all(scripted: Make, pool: Pool) -> None:
    session = scripted([MS])
    limits = Limits(duration_s=2, max_queries=1000, warmup_s=0.1)
    played = run("sustained", session, pool, limits, {})
    every = played.facts["every"]
    assert every == 9  # room for four times the expected 2000, and a thousand more, in 1000
    assert played.requests == pytest.approx(2000, abs=10)
    assert len(played.samples["latency_ns"]) == pytest.approx(played.requests / every, abs=1)
    assert np.diff(played.samples["started_ns"]) == pytest.approx(every * MS, rel=1e-3)


@pytest.mark.parametrize("name", ["single_stream", "duty_cycle", "sustained"])
def test_a_state_goes_on_from_call_to_call(clock: Any, name: str) -> None:
    seen: list[float] = []

    class Counter:
        def infer(self, slot: int, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
            clock.pass_by(MS)
            seen.append(float(inputs[1][0]))
            return (inputs[0], inputs[1] + 1)

    state = np.zeros(1)
    pool = [(np.zeros(1), state), (np.ones(1), state)]
    limits = Limits(duration_s=0.05, min_queries=3, warmup_s=0.01)
    run(name, Counter(), pool, limits, {"period_s": 0.005}, [(1, 1)])  # type: ignore[arg-type]
    assert seen == list(range(len(seen)))


def test_an_unknown_scenario_is_an_error(scripted: Make, pool: Pool) -> None:
    with pytest.raises(ValueError, match="no scenario 'burst'"):
        run("burst", scripted([MS]), pool, Limits(), {})
