"""Rows 5 to 7 of the cases that people reported: what is timed, from when, and until when.

5. The first, slow calls were inside the mean.
6. Copies were counted for one runtime only, and queueing was left out of percentiles.
7. Asynchronous work was timed without waiting for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from backends.base import Array
from harness.records import Case
from harness.runner.scenario_figures import figures
from harness.runner.steadiness import discarded, steadiness_of
from harness.runner.trial_process import Outcome
from harness.scenarios import Played, run
from harness.scenarios.window import Limits

MS = 1_000_000
SCENARIOS = ("single_stream", "multi_stream", "server", "offline", "duty_cycle", "sustained")
Pool = list[tuple[Array, ...]]
Make = Callable[..., Any]  # see `scripted`


def outcome_of(played: Played, first_inference_ms: float | None = None) -> Outcome:
    """What the parent reads of a worker that played this."""
    lines = {name: "".join(f"{_json(line)}\n" for line in some).encode() for name, some in played.lines.items()}
    document = {
        "window_start_ns": played.window.start_ns,
        "window_end_ns": played.window.end_ns,
        "throughput_per_s": played.requests_per_s,
        "scenario": played.facts,
        "cold_start_ms": {"first_inference": first_inference_ms},
    }
    return Outcome("ok", None, document, {**lines, **{n: v.astype("<i8").tobytes() for n, v in played.samples.items()}})


def _json(line: dict[str, Any]) -> str:
    import json

    return json.dumps(line)


def test_row_5_slow_first_calls_are_in_the_cold_start_and_in_no_percentile(
    clock: Any, scripted: Make, pool: Pool
) -> None:
    """The first call takes 900 ms, the hundred after it 20 ms, all others 2 ms; nobody said how long to warm up."""
    noise = np.random.RandomState(1).lognormal(0, 0.05, 10_000)
    session = scripted([900 * MS, *[20 * MS] * 100, *(2 * MS * noise).astype(int)])
    start = clock.now
    session.infer(0, pool[0])
    first_ms = (clock.now - start) / 1e6
    limits = Limits(duration_s=6, min_queries=10, warmup_s=0)
    outcome = outcome_of(run("single_stream", session, pool, limits, {}), first_ms)
    left_out = discarded(steadiness_of("single_stream", outcome))
    assert 100 - 1 <= left_out <= 150  # one of the hundred was the warm-up's own
    made = figures("single_stream", {}, [outcome], [left_out])
    assert made.cold_start_ms is not None and made.cold_start_ms.first_inference == pytest.approx(900, rel=1e-3)
    assert made.latency_ms is not None
    assert made.latency_ms.mean == pytest.approx(2, rel=0.02)
    assert made.latency_ms.max is not None and made.latency_ms.max < 3


@pytest.mark.parametrize("name", SCENARIOS)
def test_row_6_one_boundary_for_every_scenario_and_runtime(clock: Any, pool: Pool, name: str) -> None:
    """A loop hands the caller's own arrays to one call of the session and takes what it returns; whatever a runtime copies
    is inside that call or nowhere. Here the copying in takes 3 ms and the copying out 2 ms of 10."""

    class Copying:
        preferred_slots = 1
        submit = next_done = done_within = wait = None  # one request at a time needs none of them

        def __init__(self) -> None:
            self.asked: Pool = []

        def infer(self, slot: int, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
            assert any(inputs is one for one in pool)  # not a copy that was made before the clock started
            self.asked.append(inputs)
            for part_ms in (3, 5, 2):
                clock.pass_by(part_ms * MS)
            return inputs

    limits = Limits(duration_s=1.0, min_queries=1, warmup_s=0)
    parameters = {"samples_per_query": 1, "period_s": 0.02, "seed": 1}
    session = Copying()
    played = run(name, session, pool, limits, parameters)  # type: ignore[arg-type]
    times = next(
        played.samples[what] for what in ("latency_ns", "query_ns", "server_latency_ns") if what in played.samples
    )
    assert times.min() == pytest.approx(10 * MS, rel=1e-3)
    assert {id(one) for one in session.asked} == {id(one) for one in pool}  # and the inputs rotate
    assert Case("w", None, None, "fp32", "fp32", "any", "cpu", None, name).boundary == "host_to_host"


def test_row_6_the_wait_in_the_queue_is_inside_the_stored_percentiles(scripted: Make, pool: Pool) -> None:
    """10 ms each, one after another, while on average 8 ms lie between two arrivals: the queue alone sets the latency."""
    limits = Limits(duration_s=60, min_queries=1, warmup_s=0.1)
    played = run("server", scripted([10 * MS]), pool, limits, {"limit_ms": None, "percentile": 99, "seed": 4})
    made = figures("server", {"limit_ms": 50.0, "percentile": 99}, [outcome_of(played)])
    assert made.rate_curve is not None
    low, high = made.rate_curve.points[0], made.rate_curve.points[-1]
    assert low.offered_per_s < 35 and high.offered_per_s >= 90
    assert low.p50.value == pytest.approx(10, abs=1)
    # M/D/1 at a load of 0.9: half of the queries wait for more than three services (its mean wait is 4.5).
    assert high.p50.value is None or high.p50.value > 25
    assert high.meets_limit == "missed" or high.p99.value is None


@pytest.mark.parametrize(("name", "slots"), [("multi_stream", 2), ("server", 2), ("server", 3), ("offline", 2)])
def test_row_7_the_clock_stops_when_the_outputs_are_readable(clock: Any, pool: Pool, name: str, slots: int) -> None:
    """A device takes work at once and says at once that it was taken; the outputs are there 20 ms later, for who waits."""

    class Lazy:
        preferred_slots = 2

        def __init__(self) -> None:
            self.taken: list[int] = []

        def infer(self, slot: int, inputs: object) -> tuple[()]:
            clock.pass_by(20 * MS)
            return ()

        def submit(self, slot: int, inputs: object) -> None:
            self.taken.append(slot)

        def next_done(self) -> int:
            return self.taken.pop(0)

        def done_within(self, timeout_s: float) -> int | None:
            return self.taken.pop(0) if self.taken else None

        def wait(self, slot: int) -> tuple[()]:
            clock.pass_by(20 * MS)
            return ()

    limits = Limits(duration_s=2.0, min_queries=1, warmup_s=0)
    played = run(name, Lazy(), pool, limits, {"samples_per_query": 4, "seed": 2}, (), slots)  # type: ignore[arg-type]
    times = next(
        played.samples[what] for what in ("latency_ns", "query_ns", "server_latency_ns") if what in played.samples
    )
    assert len(times) > 5
    assert (times >= 20 * MS).all()
    if name == "multi_stream":
        assert (times >= 4 * 20 * MS).all()  # until the last sample of the query


def test_row_7_throughput_waits_for_the_last_answers_too(clock: Any, scripted: Make, pool: Pool) -> None:
    session = scripted([100 * MS])
    played = run("offline", session, pool, Limits(duration_s=1.0, min_queries=1, warmup_s=0), {}, (), 4)
    window_ns = played.window.end_ns - played.window.start_ns
    assert played.requests == pytest.approx(40, abs=4)
    assert played.requests_per_s == pytest.approx(played.requests / (window_ns / 1e9))
    assert window_ns >= 100 * MS * played.requests / 4


def test_a_record_without_samples_of_a_trial_is_no_crash() -> None:
    """A trial that its limit ended before any answer leaves empty files; the figures then have reasons, no exception."""
    empty = Outcome("ok", None, {"throughput_per_s": 1.0, "scenario": {"capacity_per_s": 5.0, "every": 1}}, {})
    assert figures("single_stream", {}, [empty]).latency_ms is None
    curve = figures("server", {"limit_ms": 15.0, "percentile": 99}, [empty]).rate_curve
    assert curve is not None and curve.reason == "No rate was offered."
    windowed = replace(empty, document={**empty.document, "window_start_ns": 0, "window_end_ns": 10**9})
    course = figures("sustained", {}, [windowed]).over_time
    assert course is not None and course.verdict == "undecided"
    assert np.isfinite(sum(one.count for one in course.slices))
