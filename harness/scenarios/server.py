"""Server: queries arrive by themselves, as a Poisson process, whether or not the system keeps up. An open loop.

A latency counts from the *scheduled* arrival. Counted from when we got round to it, a stall would hide the queries that
waited behind it (coordinated omission). Each trial first finds what the system can do when it always has work, then offers
preferred rates around that, and offers more where the limit lies.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from backends.base import Session
from harness.scenarios import offline
from harness.scenarios.rates import BASE_SHARE, Offer, after_ramp, arrivals, first_offers, further_offers
from harness.scenarios.window import Limits, Played, Pool, Window, no_collector, touched

Times = npt.NDArray[np.int64]

CAPACITY_S = 2.0  # of the closed loop, at most
CAPACITY_SHARE = 0.15  # of the duration
CAPACITY_QUERIES = 10
LEAD_NS = 2_000_000  # between making a schedule and its start
SPIN_NS = (
    200_000  # a sleep ends late by up to so much; the rest of the way to an arrival is waited awake, where nothing runs
)
# Of the time that the arrivals took: with so much work left over after the last of them, higher rates need not be tried.
HOPELESS_SHARE = 0.3
# Of the time that is left after all rates were offered once: one rate's first few hundred queries may mislead.
FURTHER = (0.5, 1.0)


@dataclass(frozen=True)
class Stretch:
    """What one rate gave. `latency_ns` counts from the scheduled arrivals; `wait_ns` is the part before the start."""

    offer: Offer
    due_ns: Times
    latency_ns: Times
    wait_ns: Times

    @property
    def answered(self) -> int:
        return len(self.latency_ns)

    @property
    def span_ns(self) -> int:
        """From the schedule's start to the last answer."""
        return int((self.due_ns[: self.answered] + self.latency_ns).max()) if self.answered else 0

    @property
    def hopeless(self) -> bool:
        last = int(self.due_ns[-1])
        return self.answered < self.offer.queries or self.span_ns > last * (1 + HOPELESS_SHARE)


def run(session: Session, pool: Pool, limits: Limits, parameters: Mapping[str, Any], slots: int) -> Played:
    """Warm up, find the capacity, then offer rate after rate. `seed` makes the arrivals.

    Samples are those of all stretches, one after the other in the order of arrival; file `stretches` says whose they are.
    """
    seed = int(parameters.get("seed", 0))
    asked = parameters.get("limit_ms")
    limit_ns = None if asked is None else float(asked) * 1e6
    percentile = float(parameters.get("percentile", 99))
    warm = offline.keep_busy(session, pool, limits.warmup_s, limits.warmup_s, slots, np.zeros(1_000_000, np.int64), 1)
    capacity = _capacity(session, pool, limits, slots)
    generator = np.random.Generator(np.random.PCG64(seed))
    stretches: list[Stretch] = []
    with no_collector():
        start = time.monotonic_ns()
        begin = time.perf_counter_ns()
        hard_end = begin + int(limits.hard_s * 1e9)

        def play(offers: list[Offer]) -> None:
            for offer in offers:
                if time.perf_counter_ns() >= hard_end:
                    return
                stretches.append(_stretch(session, pool, offer, generator, slots, hard_end))
                if stretches[-1].hopeless:
                    return

        share = 1.0 if limit_ns is None else BASE_SHARE
        play(first_offers(capacity, limits.duration_s * share))
        for part in FURTHER:
            left_s = part * (limits.duration_s - (time.perf_counter_ns() - begin) / 1e9)
            seen = _seen(stretches, percentile)
            if limit_ns is not None and seen and left_s > 0:
                play(further_offers(seen, limit_ns, left_s))
        end = time.monotonic_ns()
    latency = _joined([stretch.latency_ns for stretch in stretches])
    return Played(
        Window(start, end, warm, latency),
        {
            "server_latency_ns": latency,
            "server_wait_ns": _joined([stretch.wait_ns for stretch in stretches]),
            "scheduled_ns": _joined([stretch.due_ns[: stretch.answered] for stretch in stretches]),
        },
        requests=len(latency),
        requests_per_s=capacity,
        facts={"capacity_per_s": capacity, "slots": slots, "seed": seed, "ramp_share": after_ramp(1000) / 1000},
        lines={"stretches": [_told(stretch) for stretch in stretches]},
    )


def _capacity(session: Session, pool: Pool, limits: Limits, slots: int) -> float:
    """Return the queries per second of a closed loop: as many requests in flight as there are slots, always."""
    seconds = min(CAPACITY_S, CAPACITY_SHARE * limits.duration_s)
    times = touched(1_000_000)
    with no_collector():
        start = time.perf_counter_ns()
        done = offline.keep_busy(session, pool, seconds, limits.hard_s, slots, times, CAPACITY_QUERIES)
        return done / ((time.perf_counter_ns() - start) / 1e9)


def _stretch(
    session: Session, pool: Pool, offer: Offer, generator: np.random.Generator, slots: int, hard_end: int
) -> Stretch:
    due = arrivals(offer, generator)
    latency, wait = touched(offer.queries), touched(offer.queries)
    begin = time.perf_counter_ns() + LEAD_NS
    play = _one_by_one if slots == 1 else _in_flight
    scheduled = (due + begin).tolist()
    answered = play(session, pool, scheduled, latency.data, wait.data, slots, hard_end)
    return Stretch(offer, due, latency[:answered], wait[:answered])


def _one_by_one(
    session: Session,
    pool: Pool,
    due: list[int],
    latency: memoryview,
    wait: memoryview,
    slots: int,
    hard_end: int,
) -> int:
    """One request at a time, in this thread: queries that arrive meanwhile are a queue by being due already."""
    clock, sleep = time.perf_counter_ns, time.sleep
    infer = session.infer
    different = len(pool)
    for number, at in enumerate(due):
        now = clock()
        if now < at:
            if at - now > SPIN_NS:
                sleep((at - now - SPIN_NS) / 1e9)
            now = clock()
            while now < at:
                now = clock()
        if now >= hard_end:
            return number
        wait[number] = now - at
        infer(0, pool[number % different])
        latency[number] = clock() - at
    return len(due)


def _in_flight(
    session: Session,
    pool: Pool,
    due: list[int],
    latency: memoryview,
    wait: memoryview,
    slots: int,
    hard_end: int,
) -> int:
    """Up to `slots` requests in flight, started in the order of arrival; the loop sleeps for an answer or the next arrival.

    It never spins while a request runs: that would take a processor from it.
    """
    clock, sleep = time.perf_counter_ns, time.sleep
    submit, next_done, done_within, collect = session.submit, session.next_done, session.done_within, session.wait
    different = len(pool)
    free = list(range(slots))
    owner = [0] * slots
    count = len(due)
    asked = running = 0
    while True:
        now = clock()
        if now >= hard_end:
            count = asked
        while running < slots and asked < count and due[asked] <= now:
            slot = free.pop()
            owner[slot] = asked
            wait[asked] = now - due[asked]
            submit(slot, pool[asked % different])
            asked += 1
            running += 1
            now = clock()
        ended: int | None
        if running == slots or (running and asked == count):
            ended = next_done()
        elif running:
            ended = done_within((due[asked] - now) / 1e9)
        elif asked < count:
            if due[asked] - now > SPIN_NS:
                sleep((due[asked] - now - SPIN_NS) / 1e9)
            while now < due[asked]:
                now = clock()
            continue
        else:
            return asked
        if ended is not None:
            collect(ended)
            latency[owner[ended]] = clock() - due[owner[ended]]
            free.append(ended)
            running -= 1


def _seen(stretches: list[Stretch], percentile: float) -> list[tuple[float, float]]:
    """Each rate with its percentile so far, in nanoseconds, LoadGen's rule; only to decide where to look again."""
    found = []
    for rate in sorted({one.offer.per_s for one in stretches}):
        parts = [one.latency_ns[after_ramp(one.answered) :] for one in stretches if one.offer.per_s == rate]
        counted = np.sort(np.concatenate(parts))
        if len(counted):
            found.append((rate, float(counted[min(len(counted) - 1, int(len(counted) * percentile / 100))])))
    return found


def _told(stretch: Stretch) -> dict[str, Any]:
    return {
        "offered_per_s": stretch.offer.per_s,
        "planned": stretch.offer.queries,
        "answered": stretch.answered,
        "ramp": after_ramp(stretch.answered),
        "span_ns": stretch.span_ns,
    }


def _joined(parts: list[Times]) -> Times:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
