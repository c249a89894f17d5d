"""Reading a task's parameters strictly: a misspelt or ill-typed one is an error, never silently a default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.errors import UsageError


def check_names(task: str, parameters: Mapping[str, Any], allowed: Iterable[str]) -> None:
    """Refuse parameters that the task does not know. Raises UsageError."""
    names = tuple(allowed)
    for name in parameters:
        if name not in names:
            raise UsageError(f"The task {task} has no parameter {name!r}.", f"Allowed: {', '.join(names)}.")


def whole(task: str, parameters: Mapping[str, Any], name: str, default: int, minimum: int = 1) -> int:
    """Return an integer parameter of at least `minimum`. Raises UsageError."""
    value = parameters.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise UsageError(f"The parameter {name} of {task} must be a whole number of at least {minimum}, not {value!r}.")
    return value


def real(task: str, parameters: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    """Return a number between `low` and `high`, both included. Raises UsageError."""
    value = parameters.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise UsageError(f"The parameter {name} of {task} must be a number from {low:g} to {high:g}, not {value!r}.")
    return float(value)


def triple(task: str, parameters: Mapping[str, Any], name: str, default: float) -> tuple[float, float, float]:
    """Return three numbers; one number stands for all three colour channels. Raises UsageError."""
    value = parameters.get(name, default)
    values = value if isinstance(value, (list, tuple)) else [value] * 3
    if len(values) != 3 or any(isinstance(part, bool) or not isinstance(part, (int, float)) for part in values):
        raise UsageError(f"The parameter {name} of {task} must be one number or three, not {value!r}.")
    return (float(values[0]), float(values[1]), float(values[2]))


def choice(task: str, parameters: Mapping[str, Any], name: str, default: str, allowed: Iterable[str]) -> str:
    """Return one of the allowed words. Raises UsageError."""
    value = parameters.get(name, default)
    words = tuple(allowed)
    if value not in words:
        raise UsageError(f"The parameter {name} of {task} cannot be {value!r}.", f"Allowed: {', '.join(words)}.")
    return str(value)
