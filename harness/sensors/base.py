"""What a meter is: something in this machine that tells energy or power, with how far to trust it.

A reading that failed is None with a reason, never zero. Every meter takes its root path or its library as an argument, so
that recorded trees and stand-ins replay in tests. Meters are read in the parent process, never in the one that is timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from harness.errors import WeighbridgeError

Scope = Literal["gpu_board", "cpu_package", "soc_estimate", "board_rails", "wall"]
Method = Literal["counter_diff", "trapezoid"]
Quality = Literal["metered", "sensor", "estimated"]


class MeterError(WeighbridgeError):
    """A meter cannot be opened."""


@dataclass(frozen=True)
class Reading:
    """One look at a meter. `energy_j` counts from the meter's opening; either value is None where there is none."""

    at_ns: int  # CLOCK_MONOTONIC, the same clock as the worker's windows
    source: str  # "rapl:package-0", "nvml:0"
    scope: Scope
    method: Method  # what a window's energy is made from: the counter where there is one
    quality: Quality
    energy_j: float | None = None
    power_w: float | None = None
    reason: str | None = None  # why a value is None

    @property
    def good(self) -> bool:
        """Whether the value that the method needs is there."""
        return (self.energy_j if self.method == "counter_diff" else self.power_w) is not None


class Meter(Protocol):
    """A source of readings. `read` never raises; it is called from one thread, between `open` and `close`."""

    source: str
    scope: Scope
    quality: Quality

    def open(self) -> None:
        """Get ready and set the counter's zero. Raises MeterError."""
        ...

    def read(self) -> Reading:
        """Look once. A failure is a reading with a reason."""
        ...

    def close(self) -> None:
        """Release files and libraries. Harmless twice."""
        ...


@dataclass(frozen=True)
class MeterStatus:
    """Whether a meter can be read here, seen by really reading it once; `meter` is closed again."""

    name: str  # "rapl", "nvml:0"
    works: bool
    text: str  # what it measures, or "not measured: why"
    fix: str | None = None
    verified: bool = False  # False: follows the vendor's documentation, not verified on hardware
    scope: Scope | None = None
    quality: Quality | None = None
    meter: Meter | None = None


def not_measured(name: str, why: str, fix: str | None = None, scope: Scope | None = None) -> MeterStatus:
    """The status of a meter that is not there, in the one wording."""
    return MeterStatus(name, False, f"not measured: {why}", fix, scope=scope)
