"""What watching costs: stretches of one trial with looks and without, in turns. Case 8: polling has made latency spikes.

In a run every trial is watched, five looks a second from the parent process. Here the parent looks during every other half
second of one long window, and each query belongs to the stretch that it began in; so neighbours differ in nothing but the
looks. With one thread the parent may have a processor to itself; with all of them it takes its moments from the worker, and
the tail would show it first.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.rounds import Figures, Goal, compare, header, line, load
from benchmarks.trials import model_file, percentiles, trial
from harness.artifacts import ModelFile
from harness.conditions import INTERVAL_S, Watch, watch
from harness.errors import NotDone
from harness.runner.processors import available_processors

WORKLOAD = "silero-vad"  # the shortest queries, and so the greatest share of whatever falls between
SECONDS = 40.0
STRETCH_NS = 500_000_000
FEWEST = 100  # queries in a stretch, below which its p99 says nothing
GOAL = Goal(within=0.01)
LOOKS = 200


def main(seconds: float = SECONDS) -> None:
    """Print the ratio watched to unwatched of p50, p99 and mean, and what one look costs."""
    print(f"watching: half seconds with looks (each {INTERVAL_S:g} s) and without, in turns, {seconds:g} s; {load()}")
    cost_us = look_us()
    print(f"  one look: {cost_us:.0f} us of the parent's time, {cost_us / INTERVAL_S / 1e6:.2%} of one processor")
    model = model_file(WORKLOAD, "onnx")
    for threads in dict.fromkeys((1, available_processors())):
        pairs = stretches(model, threads, seconds)
        print(f"  {WORKLOAD} on onnxruntime, {threads} thread{'s' if threads > 1 else ''}, {len(pairs)} pairs:")
        print(header("unwatched").replace("   ours", "watched").replace("rounds", "pairs"))
        for figure in ("p50", "p99", "mean"):
            print(line(figure, "us", compare(pairs, figure), GOAL))


def stretches(model: ModelFile, threads: int, seconds: float) -> list[tuple[Figures, Figures]]:
    """Run one trial and return the figures of its (watched, unwatched) neighbours. Raises NotDone where it was too short."""
    limits = {
        "duration_s": seconds,
        "warmup_s": 1.0,
        "min_queries": 20,
        "max_queries": 100_000_000,
        "limit_s": seconds + 60,
    }
    with watch(interval_s=3600) as watching, _Looking(watching) as looking:
        found = trial("onnxruntime", model, "single_stream", {"threads": threads}, limits, looking.begin)
    return paired(found, looking.origin_ns)


def paired(found: Mapping[str, Any], origin_ns: int) -> list[tuple[Figures, Figures]]:
    """Cut a trial's latencies into stretches and pair neighbours; even ones, counted from `origin_ns`, are watched.

    A query begins where those before it end: what lies between two queries is far below a stretch.
    """
    latencies = found["latency_ns"]
    began = found["window_start_ns"] + np.concatenate(([0], np.cumsum(latencies)[:-1]))
    number = (began - origin_ns) // STRETCH_NS
    figures = {int(n): percentiles(latencies[number == n]) for n in np.unique(number) if (number == n).sum() >= FEWEST}
    whole = sorted(figures)[1:-1]  # the window's ends fall inside a stretch
    pairs: list[tuple[Figures, Figures]] = [
        (figures[n], figures[n + 1]) for n in whole if n % 2 == 0 and n + 1 in whole
    ]
    if not pairs:
        raise NotDone("The trial had too few queries in half a second to compare stretches of it.")
    return pairs


class _Looking:
    """A thread that looks as a run's watch does, during even stretches only."""

    def __init__(self, watching: Watch) -> None:
        self._watching = watching
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="look", daemon=True)
        self.origin_ns = 0

    def begin(self, pid: int) -> None:
        """Follow the worker that has just started."""
        self._watching.follow(pid)
        self.origin_ns = time.monotonic_ns()
        self._thread.start()

    def _go_on(self) -> None:
        number = 0
        while not self._stop.wait(INTERVAL_S):
            if (time.monotonic_ns() - self.origin_ns) // STRETCH_NS % 2 == 0:
                number += 1
                self._watching.look(slowly=number % 5 == 0)

    def __enter__(self) -> _Looking:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()


def look_us(looks: int = LOOKS) -> float:
    """Processor time of one look at this process, in microseconds, the mean over many."""
    with watch(interval_s=3600) as watching:
        watching.follow(os.getpid())
        start = time.process_time()
        for number in range(looks):
            watching.look(slowly=number % 5 == 0)
        return (time.process_time() - start) / looks * 1e6
