"""How a system is read: files below a root, and commands, so that recorded trees and outputs replay in tests."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

COMMAND_S = 10.0
Command = Callable[[Sequence[str]], str | None]


def text(path: Path) -> str:
    """Return the stripped content of a small file; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0\n \t")
    except (OSError, ValueError):
        return ""


def integer(path: Path) -> int | None:
    """Return the whole number in a file; None where there is none."""
    try:
        return int(text(path), 0)
    except ValueError:
        return None


def pairs(path: Path, separator: str = ":") -> dict[str, str]:
    """Return a file of lines "key separator value"; the first of several equal keys counts."""
    found: dict[str, str] = {}
    for line in text(path).splitlines():
        key, mark, value = line.partition(separator)
        if mark and key.strip() not in found:
            found[key.strip()] = value.strip()
    return found


def chosen(path: Path) -> str | None:
    """Return the word in brackets of a file like "always [madvise] never"; its whole text where nothing is in brackets."""
    words = text(path)
    start, end = words.find("["), words.find("]")
    return (words[start + 1 : end] if 0 <= start < end else words) or None


def run_command(arguments: Sequence[str]) -> str | None:
    """Return what a command of the system prints; None where it is not there, fails or takes too long."""
    try:
        done = subprocess.run(
            list(arguments), capture_output=True, text=True, errors="replace", timeout=COMMAND_S, check=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


@dataclass(frozen=True)
class System:
    """A system to read: this one, or a recorded one."""

    root: Path = Path("/")
    kind: str = "Linux"  # as platform.system() says
    run: Command = run_command
    variables: Mapping[str, str] = field(default_factory=dict)  # its environment variables
    live: bool = True  # False: a recorded one, about which this Python knows nothing

    @classmethod
    def here(cls) -> System:
        """Return the system that this process runs on."""
        import os

        return cls(kind=platform.system(), variables=os.environ)

    @classmethod
    def recorded(
        cls,
        root: Path,
        kind: str = "Linux",
        outputs: Mapping[tuple[str, ...], str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> System:
        """Return a recorded system: files below `root`, and what commands printed, by their arguments."""
        known = dict(outputs or {})
        return cls(root, kind, lambda arguments: known.get(tuple(arguments)), variables or {}, live=False)

    def path(self, name: str) -> Path:
        """Return a file of this system, named without the leading slash."""
        return self.root / name

    def text(self, name: str) -> str:
        """Return a file's stripped content; empty where it cannot be read."""
        return text(self.root / name)

    def integer(self, name: str) -> int | None:
        """Return the whole number in a file."""
        return integer(self.root / name)


def without_nothing(found: Mapping[str, object]) -> dict[str, object]:
    """Return `found` without what is not known or empty: what a system does not tell is absent."""
    return {key: value for key, value in found.items() if value is not None and value != "" and value not in ({}, [])}


def processor_list(words: str) -> tuple[int, ...]:
    """Return the numbers of a kernel list like "0-3,8"; empty for anything else."""
    found: list[int] = []
    try:
        for part in words.strip().split(","):
            first, dash, last = part.partition("-")
            found += range(int(first), int(last) + 1) if dash else [int(first)]
    except ValueError:
        return ()
    return tuple(found)
