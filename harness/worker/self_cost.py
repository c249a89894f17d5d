"""A self trial: the harness's own cost per query, from the scenarios' own loop around a session that does nothing.

Two costs count. The recorded one is part of every latency: the call of the session and the reading of the clock. The wall
time per query is what the loop takes from the machine, most of it between two queries, where no latency contains it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from backends.base import Array, Report, TensorInfo
from harness.scenarios import single_stream
from harness.scenarios.window import Inputs, Limits
from harness.worker.job import Job
from harness.worker.memory import peak_rss_bytes

QUERIES = 100_000
POOL = 16
LIMIT_S = 5.0


class NullSession:
    """A session that answers at once with its inputs. See backends.base.Session."""

    inputs: tuple[TensorInfo, ...] = (TensorInfo("x", "float32", (1, 4)),)
    outputs: tuple[TensorInfo, ...] = (TensorInfo("x", "float32", (1, 4)),)
    load_ms: float | None = 0.0
    compile_ms: float | None = None
    preferred_slots = 1

    def __init__(self) -> None:
        self._answers: dict[int, Sequence[Array]] = {}
        self._ended: deque[int] = deque()

    def prepare(self, slots: int) -> None:
        """Nothing to allocate."""

    def infer(self, slot: int, inputs: Sequence[Array]) -> Sequence[Array]:
        """Answer at once."""
        return inputs

    def submit(self, slot: int, inputs: Sequence[Array]) -> None:
        """Keep the answer for `wait`."""
        self._answers[slot] = inputs
        self._ended.append(slot)

    def next_done(self) -> int:
        """The slot that was submitted first."""
        return self._ended.popleft()

    def done_within(self, timeout_s: float) -> int | None:
        """As `next_done`; None where nothing was submitted."""
        return self._ended.popleft() if self._ended else None

    def wait(self, slot: int) -> Sequence[Array]:
        """The answer, which was there from the start."""
        return self._answers.pop(slot)

    def report(self) -> Report:
        """Nothing ran."""
        return Report("null", "0", "cpu")

    def close(self) -> None:
        """Nothing to release."""


def pool() -> list[Inputs]:
    """Tiny inputs that rotate as real ones do."""
    return [(np.zeros((1, 4), np.float32),) for _ in range(POOL)]


def limits(queries: int) -> Limits:
    """A window of exactly so many queries, unless this machine is slow beyond measure."""
    return Limits(duration_s=0, min_queries=queries, max_queries=queries, warmup_s=0.02, limit_s=LIMIT_S)


def run_self_cost(job: Job) -> dict[str, Any]:
    """Run the loop of single_stream once. `recorded_us` is the median of the recorded latencies."""
    queries = int(job.scenario_parameters.get("queries", QUERIES))
    window = single_stream.run(NullSession(), pool(), limits(queries))
    return {
        "window_start_ns": window.start_ns,
        "window_end_ns": window.end_ns,
        "queries": len(window.query_ns),
        "recorded_us": float(np.median(window.query_ns)) / 1e3,
        "wall_us": 1e6 / window.queries_per_s,
        "files": [],
        "peak_rss_bytes": peak_rss_bytes(),
    }
