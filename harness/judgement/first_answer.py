"""The time from the start of a process to its first answer: one rule for records, rows and decisions. Pure.

Over trials it is the median of each start's own sum, with an interval, where the record holds that; medians of the parts,
which an older record gives alone, need not add up to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.judgement.spread import Spread, open_spread, spread_of

NEEDED = ("process", "import", "load", "first_inference")  # without one of them the sum would be too small


def first_answer_ms(parts: Mapping[str, Any]) -> float | None:
    """Return the sum of a cold start's parts in milliseconds; None where one is missing. `compile` may be part of `load`."""
    known = [parts.get(name) for name in NEEDED]
    if not all(isinstance(value, (int, float)) for value in known):
        return None
    compiled = parts.get("compile")
    return float(sum(known)) + (float(compiled) if isinstance(compiled, (int, float)) else 0.0)  # type: ignore[arg-type]


def first_answer_spread(cold_start_ms: Mapping[str, Any] | None) -> Spread:
    """Return what a stored cold start says of its first answer: the recorded median of sums, or the sum of the parts."""
    document = cold_start_ms or {}
    intervals = document.get("intervals")
    recorded = open_spread(intervals.get("first_answer")) if isinstance(intervals, Mapping) else None
    return recorded if recorded is not None else spread_of(None, first_answer_ms(document))
