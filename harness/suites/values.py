"""Single values of a suite file, read strictly: a wrong one is an error that names file, line and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.suites.definition import LIMITS
from harness.toml_files import TomlFile

Key = tuple[str | int, ...]

TEXT_CHARACTERS = 200


def text(document: TomlFile, key: Key, value: Any) -> str:
    """Return one printable line. Raises SuiteError."""
    if not isinstance(value, str) or not value.strip():
        raise document.error(key, f"{key[-1]} must be a text that is not empty.")
    if not value.isprintable() or len(value) > TEXT_CHARACTERS:
        raise document.error(
            key, f"{key[-1]} must be one line of at most {TEXT_CHARACTERS} characters without control characters."
        )
    return value


def whole(document: TomlFile, key: Key, value: Any, low: int, high: int) -> int:
    """Return a whole number within the limits. Raises SuiteError."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise document.error(key, f"{key[-1]} must be a whole number from {low} to {high}, not {value!r}.")
    return value


def number(document: TomlFile, key: Key, value: Any, low: float, high: float) -> float:
    """Return a number within the limits. Raises SuiteError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise document.error(key, f"{key[-1]} must be a number from {low:g} to {high:g}, not {value!r}.")
    return float(value)


def truth(document: TomlFile, key: Key, value: Any) -> bool:
    """Return true or false. Raises SuiteError."""
    if not isinstance(value, bool):
        raise document.error(key, f"{key[-1]} cannot be {value!r}.", ("true", "false"))
    return value


def strings(document: TomlFile, key: Key, value: Any, empty: bool = False) -> tuple[str, ...]:
    """Return a list of texts, each once. Raises SuiteError."""
    if not isinstance(value, list) or not (value or empty) or not all(isinstance(item, str) for item in value):
        raise document.error(key, f"{key[-1]} must be a list of texts{'' if empty else ' that is not empty'}.")
    return tuple(dict.fromkeys(value))


def words(document: TomlFile, key: Key, value: Any, allowed: tuple[str, ...], empty: bool = False) -> tuple[str, ...]:
    """Return a list of texts out of `allowed`, each once. Raises SuiteError."""
    spelled = strings(document, key, value, empty)
    for name in spelled:
        if name not in allowed:
            raise document.error(key, f"{name!r} is not known in {key[-1]}.", allowed)
    return spelled


def sweep(document: TomlFile, key: Key, value: Any, valid: Callable[[Any], str | None]) -> tuple[Any, ...]:
    """Return one value or a list of them as a tuple, each once. `valid` says what is wrong with one. Raises SuiteError."""
    items = value if isinstance(value, list) else [value]
    if not items:
        raise document.error(key, f"{key[-1]} must be a list that is not empty.")
    for item in items:
        wrong = valid(item)
        if wrong:
            raise document.error(key, wrong)
    return tuple(dict.fromkeys(items))


def several(document: TomlFile, key: Key, value: Any, valid: Callable[[Any], str | None]) -> tuple[Any, ...]:
    """Return a list as a tuple, each value once. Raises SuiteError."""
    if not isinstance(value, list):
        raise document.error(key, f"{key[-1]} must be a list that is not empty.")
    return sweep(document, key, value, valid)


def wholes(name: str, low: int, high: int) -> Callable[[Any], str | None]:
    """Return what says why a value is not a whole number within the limits, None where it is."""

    def valid(value: Any) -> str | None:
        good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return None if good else f"{name} must be a whole number from {low} to {high}, not {value!r}."

    return valid


def numbers(name: str, low: float, high: float) -> Callable[[Any], str | None]:
    """Return what says why a value is not a number within the limits, None where it is."""

    def valid(value: Any) -> str | None:
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
        return None if good else f"{name} must be a number from {low:g} to {high:g}, not {value!r}."

    return valid


def choices(name: str, allowed: tuple[str, ...]) -> Callable[[Any], str | None]:
    """Return what says why a value is none of `allowed`, None where it is one."""

    def valid(value: Any) -> str | None:
        spelled = ", ".join(allowed)
        return None if value in allowed else f"{name} cannot be {value!r}. Allowed: {spelled}."

    return valid


def within(name: str, value: float) -> bool:
    """Say whether a value keeps the limits that the command line shares with suite files."""
    low, high = LIMITS[name]
    return low <= value <= high
