"""TOML files that people write: read with the standard parser, and errors that name file and line.

tomllib keeps no line numbers, so `line_of` asks it again: the first line that mentions the key, and after which the
text up to there parses and holds that key. No second TOML grammar is needed for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import SuiteError, UsageError

MAX_BYTES = 256 * 1024  # files written by hand; larger is a mistake or an attack


@dataclass(frozen=True)
class TomlFile:
    """A parsed file, its text, and where each key stands."""

    path: Path
    text: str
    data: dict[str, Any]

    def line_of(self, *key: str | int) -> int | None:
        """Return the one-based line of `key`, e.g. ("workload", 0, "model"); its parent's line if unknown."""
        while key:
            names = [part for part in key if isinstance(part, str)]
            line = self._first_line_with(key, names[-1]) if names else None
            if line is not None:
                return line
            key = key[:-1]
        return None

    def _first_line_with(self, key: tuple[str | int, ...], name: str) -> int | None:
        lines = self.text.splitlines(keepends=True)
        for position, line in enumerate(lines):
            if name not in line:
                continue
            for end in range(position + 1, len(lines) + 1):  # a value may go on over several lines
                try:
                    document = tomllib.loads("".join(lines[:end]))
                except (ValueError, RecursionError):  # not complete up to here
                    continue
                if _holds(document, key):
                    return position + 1
                break
        return None

    def error(self, key: tuple[str | int, ...], what: str, allowed: Iterable[str] | None = None) -> SuiteError:
        """Return an error that names this file and the line of `key`, and lists the allowed values, if any."""
        line = self.line_of(*key)
        where = f"{self.path}, line {line}" if line else str(self.path)
        fix = f"Allowed: {', '.join(allowed)}." if allowed is not None else ""
        return SuiteError(f"{where}: {what}", fix)

    def check_keys(self, key: tuple[str | int, ...], table: Any, allowed: Iterable[str]) -> None:
        """Refuse what is not a table, and every key in it that is not allowed. Raises SuiteError."""
        names = tuple(allowed)
        if not isinstance(table, dict):
            raise self.error(key, f"{_spelled(key)} must be a table.")
        for name in table:
            if name not in names:
                raise self.error((*key, name), f"{name!r} is not known{f' in {_spelled(key)}' if key else ''}.", names)


def read_toml(path: Path) -> TomlFile:
    """Read a TOML file. Raises SuiteError for a syntax error (with its line), UsageError for an unreadable file."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES // 1024} KiB.", "Is it really the file that you meant?")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a text file in UTF-8.") from error
    try:
        return TomlFile(path, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{path} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise SuiteError(f"{path} is nested too deeply.") from error
    except ValueError as error:  # a date that does not exist, a number of thousands of digits
        raise SuiteError(f"{path} holds a value that cannot be read: {error}.") from error


def _holds(document: Any, key: tuple[str | int, ...]) -> bool:
    for part in key:
        named = isinstance(part, str) and isinstance(document, dict) and part in document
        counted = isinstance(part, int) and isinstance(document, list) and part < len(document)
        if not named and not counted:
            return False
        document = document[part]
    return True


def _spelled(key: tuple[str | int, ...]) -> str:
    """Return the key as a person would write it: scenario[1].name, counted from one."""
    text = ""
    for part in key:
        text += f"[{part + 1}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text
