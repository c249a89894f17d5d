"""A clock that only moves when somebody uses it, and sessions whose service times are written down beforehand."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from backends.base import Array, Report, TensorInfo
from harness.scenarios import duty_cycle, multi_stream, offline, server, single_stream, sustained

MODULES = (duty_cycle, multi_stream, offline, server, single_stream, sustained)
MOST_STEP_NS = 5_000


class VirtualTime:
    """Stands in for the module `time`. Reading it costs a nanosecond, and ever more where a loop only spins."""

    def __init__(self) -> None:
        self.now = 1_000_000_000
        self._step = 1
        self.slept_ns = 0

    def perf_counter_ns(self) -> int:
        self.now += self._step
        self._step = min(2 * self._step, MOST_STEP_NS)
        return self.now

    def monotonic_ns(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept_ns += round(seconds * 1e9)
        self.pass_by(round(seconds * 1e9))

    def pass_by(self, nanoseconds: int) -> None:
        self.now += nanoseconds
        self._step = 1


class Scripted:
    """See backends.base.Session: the n-th request takes `service_ns[n]`, over and over; `slots` of them run side by side."""

    inputs: tuple[TensorInfo, ...] = (TensorInfo("x", "float32", (1, 1)),)
    outputs: tuple[TensorInfo, ...] = (TensorInfo("x", "float32", (1, 1)),)
    load_ms: float | None = 0.0
    compile_ms: float | None = None

    def __init__(self, time: VirtualTime, service_ns: Sequence[int], preferred_slots: int = 1) -> None:
        self.time = time
        self.service_ns = service_ns
        self.preferred_slots = preferred_slots
        self.asked = 0
        self.most_in_flight = 0
        self._running: list[tuple[int, int]] = []  # (end, slot)

    def prepare(self, slots: int) -> None:
        """Nothing to allocate."""

    def infer(self, slot: int, inputs: Sequence[Array]) -> Sequence[Array]:
        self.time.pass_by(self._next())
        return inputs

    def submit(self, slot: int, inputs: Sequence[Array]) -> None:
        assert slot not in [other for _, other in self._running]
        heapq.heappush(self._running, (self.time.now + self._next(), slot))
        self.most_in_flight = max(self.most_in_flight, len(self._running))

    def next_done(self) -> int:
        end, slot = heapq.heappop(self._running)
        self.time.pass_by(max(0, end - self.time.now))
        return slot

    def done_within(self, timeout_s: float) -> int | None:
        latest = self.time.now + round(timeout_s * 1e9)
        if self._running and self._running[0][0] <= latest:
            return self.next_done()
        self.time.pass_by(max(0, latest - self.time.now))
        return None

    def wait(self, slot: int) -> Sequence[Array]:
        return ()

    def report(self) -> Report:
        return Report("scripted", "0", "cpu")

    def close(self) -> None:
        """Nothing to release."""

    def _next(self) -> int:
        self.asked += 1
        return int(self.service_ns[(self.asked - 1) % len(self.service_ns)])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    time = VirtualTime()
    for module in MODULES:
        monkeypatch.setattr(module, "time", time)
    return time


@pytest.fixture
def scripted(clock: VirtualTime) -> Callable[..., Scripted]:
    """Make a session on the virtual clock: `scripted(service_ns, preferred_slots=1)`."""
    return lambda *arguments, **named: Scripted(clock, *arguments, **named)


@pytest.fixture
def pool() -> list[tuple[Array, ...]]:
    return [(np.full((1, 1), number, np.float32),) for number in range(3)]
