"""What stands beside a stored number: an interval over trials, a range, an interval of one process, or nothing. Pure.

A record keeps a `Quantile` with `low`, `high` and a `method` in words; what those words promise is read here and nowhere
else. Only an interval over trials (fresh processes) may be compared with another measurement: an interval inside one trial
says nothing about the next process, and a range has no probability.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from harness.judgement.intervals import Interval

Kind = Literal["interval", "range", "within_one", "none"]

_OVER_TRIALS = re.compile(r"interval of the median over (\d{1,9}) trials")
_RANGE = re.compile(r"range of (\d{1,9}) trials")
_WITHIN = re.compile(r"interval within one trial")
_ONE = re.compile(r"\bone trial\b")


@dataclass(frozen=True)
class Spread:
    """A number with what its record says about its sureness. `trials` is None where the method does not tell."""

    value: float | None
    low: float | None
    high: float | None
    kind: Kind
    trials: int | None = None

    @property
    def interval(self) -> Interval | None:
        """As an `Interval` for arithmetic; only an interval over trials is one there. None without a value."""
        if self.value is None:
            return None
        from harness.judgement.intervals import (
            CONFIDENCE,
            Interval,
        )  # numpy, which a command must not load to say --help

        count = self.trials or 1
        if self.kind == "interval":
            return Interval(self.value, self.low, self.high, "interval", count, CONFIDENCE, count)
        if self.kind == "range":
            return Interval(self.value, self.low, self.high, "range", count, reason=f"a range of {count} trials")
        reason = "one trial" if self.kind == "within_one" else "no interval is recorded"
        return Interval(self.value, None, None, "none", count, reason=reason)

    @property
    def half_width(self) -> float | None:
        """The farther bound's distance from the value as a share of it; None without bounds."""
        if self.value is None or self.low is None or self.high is None or self.value <= 0:
            return None
        return max(self.high - self.value, self.value - self.low) / self.value

    def scaled(self, factor: float) -> Spread:
        """In another unit."""
        value, low, high = (None if part is None else part * factor for part in (self.value, self.low, self.high))
        return Spread(value, low, high, self.kind, self.trials)


def open_spread(document: object) -> Spread | None:
    """Read a `Quantile` in a part of a record that promises no shape; None where it is no such thing."""
    if not isinstance(document, Mapping):
        return None
    value, low, high = (open_number(document.get(name)) for name in ("value", "low", "high"))
    if value is None:
        return None
    if low is None or high is None or not low <= value <= high:
        low = high = None
    return spread_of({"value": value, "low": low, "high": high, "method": document.get("method")})


def open_number(value: object) -> float | None:
    """Read a number in such a part; None where it is none, or none that can be reckoned with."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:  # whole numbers have no end
        return None
    return number if math.isfinite(number) else None


def spread_of(quantile: Mapping[str, Any] | None, value: float | None = None) -> Spread:
    """Read a stored `records.Quantile`. `value` is what stands in its column, for records that have no document."""
    document = quantile or {}
    point = document.get("value", value)
    low, high, method = document.get("low"), document.get("high"), str(document.get("method") or "")
    if point is None or low is None or high is None:
        kind: Kind = "within_one" if point is not None and _ONE.search(method) else "none"
        return Spread(value if point is None else float(point), None, None, kind, 1 if kind == "within_one" else None)
    point, low, high = float(point), float(low), float(high)
    over, ranged = _OVER_TRIALS.search(method), _RANGE.search(method)
    if over is not None:
        return Spread(point, low, high, "interval", int(over.group(1)))
    if ranged is not None and int(ranged.group(1)) > 1:
        return Spread(point, low, high, "range", int(ranged.group(1)))
    if ranged is not None or _WITHIN.search(method) is not None:  # a range of one trial: bounds inside it
        return Spread(point, low, high, "within_one", 1)
    return Spread(point, None, None, "none")
