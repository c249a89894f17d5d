"""What every scenario takes and gives: limits of the timed window, the window as it was, and the raw samples."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from backends.base import Array

Inputs = tuple[Array, ...]
Pool = Sequence[Inputs]  # real, preprocessed inputs in the session's order; they rotate
Carry = Sequence[tuple[int, int]]  # (input position, output position) of each state that goes on


@dataclass(frozen=True)
class Limits:
    """When a window ends: after `duration_s` and `min_queries`, at `max_queries`, and at `limit_s` in any case."""

    duration_s: float = 5.0
    min_queries: int = 100
    max_queries: int = 1_000_000
    warmup_s: float = 1.0
    limit_s: float = 60.0  # a slow model gets fewer queries rather than an endless trial

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Limits:
        """Read the scenario's parameters; `slots` and others that are not limits are left to their scenario."""
        return cls(**{name: document[name] for name in cls.__dataclass_fields__ if name in document})

    @property
    def hard_s(self) -> float:
        """The seconds after which the window ends, however few queries it had."""
        return max(self.limit_s, self.duration_s)


@dataclass(frozen=True)
class Window:
    """A timed window. Times are nanoseconds of the monotonic clock."""

    start_ns: int
    end_ns: int
    warmup_queries: int
    query_ns: npt.NDArray[np.int64]

    @property
    def queries_per_s(self) -> float:
        return len(self.query_ns) / ((self.end_ns - self.start_ns) / 1e9)


@dataclass(frozen=True)
class Played:
    """What a scenario left: its window, raw samples by the name of their file, and facts for the trial file.

    Samples are nanoseconds in the order of time. `latency_ns` holds what counts as a latency; `query_ns` holds times that
    contain waiting in a runtime's queue and are none. `requests` is how often the runtime was asked, always for one batch.
    """

    window: Window
    samples: dict[str, npt.NDArray[np.int64]]
    requests: int
    requests_per_s: float | None  # what the system can do; None where the scenario itself sets the pace
    facts: dict[str, Any] = field(default_factory=dict)  # JSON: document["scenario"]
    lines: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # JSON lines by the name of their file


def room_for(limits: Limits, queries: int, elapsed_ns: int) -> npt.NDArray[np.int64]:
    """Return an array, its pages touched, for as many queries as the window can hold.

    The warm-up tells the pace; four times that many fit, so that a model that gets faster is not cut short.
    """
    expected = expected_queries(limits, queries, elapsed_ns)
    return touched(min(limits.max_queries, max(limits.min_queries, expected)))


def expected_queries(limits: Limits, queries: int, elapsed_ns: int) -> int:
    """Return four times as many queries as the window holds at the pace of `queries` in `elapsed_ns`, and some."""
    pace = max(elapsed_ns / max(queries, 1), 100.0)
    return int(4 * limits.duration_s * 1e9 / pace) + 1000


def touched(count: int) -> npt.NDArray[np.int64]:
    """Return zeros whose memory is really there: a page that is first written in the loop would cost the loop its fault."""
    values = np.empty(count, dtype=np.int64)
    values.fill(0)
    return values


@contextmanager
def no_collector() -> Iterator[None]:
    """Keep Python's garbage collector out of the window; what is alive now is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
