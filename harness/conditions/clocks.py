"""Clocks: was the wall clock set, did the machine sleep? Both show as a jump against CLOCK_MONOTONIC.

NTP's slewing moves both clocks alike and does not show; only a step does (clock_settime, a leap second). A suspended machine
stands still in CLOCK_MONOTONIC and goes on in CLOCK_BOOTTIME (Linux) or in the continuous clock (macOS has no such name in
Python, so that only the step of the wall clock shows it there).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.conditions.looks import Values

TRIES = 5
CLOSE_NS = 20_000  # between the two looks at the monotonic clock; more means that we were interrupted between them


class Clocks:
    """Offsets of the other clocks to the monotonic one. The clocks are arguments so that tests can step them."""

    def __init__(
        self,
        monotonic: Callable[[], int] = time.monotonic_ns,
        wall: Callable[[], int] = time.time_ns,
        boot: Callable[[], int] | None = None,
    ) -> None:
        self.absent: dict[str, str] = {}
        self._monotonic = monotonic
        self._wall = wall
        self._boot = boot or _boottime()
        if self._boot is None:
            self.absent["suspended"] = "this system has no clock that goes on while it sleeps"

    def look(self, pid: int, slowly: bool) -> Values:
        """Return the offsets in seconds."""
        values = Values(counters={"wall_offset_s": self._offset(self._wall) / 1e9})
        if self._boot is not None:
            values.counters["suspended_s"] = self._offset(self._boot) / 1e9
        return values

    def _offset(self, clock: Callable[[], int]) -> float:
        """Read `clock` between two looks at the monotonic one, as close as a few tries give."""
        best, offset = float("inf"), 0.0
        for _ in range(TRIES):
            before = self._monotonic()
            other = clock()
            after = self._monotonic()
            if after - before < best:
                best, offset = after - before, other - (before + after) / 2
            if best <= CLOSE_NS:
                break
        return offset


def _boottime() -> Callable[[], int] | None:
    number = getattr(time, "CLOCK_BOOTTIME", None)
    return None if number is None else lambda: time.clock_gettime_ns(number)
