"""The time from the start of a process to its first answer: one rule for records, rows and decisions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NEEDED = ("process", "import", "load", "first_inference")  # without one of them the sum would be too small


def first_answer_ms(parts: Mapping[str, Any]) -> float | None:
    """Return the sum of a cold start's parts in milliseconds; None where one is missing. `compile` may be part of `load`."""
    known = [parts.get(name) for name in NEEDED]
    if not all(isinstance(value, (int, float)) for value in known):
        return None
    compiled = parts.get("compile")
    return float(sum(known)) + (float(compiled) if isinstance(compiled, (int, float)) else 0.0)  # type: ignore[arg-type]
