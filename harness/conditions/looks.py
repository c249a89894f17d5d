"""What a look at the machine is: counters that only grow, levels of this moment, and named signs of throttling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass
class Values:
    """What one source saw. Counters are since some fixed moment; only their differences mean something."""

    counters: dict[str, float] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    signs: set[str] = field(default_factory=set)

    def add(self, other: Values) -> None:
        """Take in what another source saw."""
        self.counters.update(other.counters)
        self.levels.update(other.levels)
        self.signs |= other.signs


@dataclass(frozen=True)
class Look:
    """All sources at one moment of CLOCK_MONOTONIC, the clock of the worker's windows."""

    at_ns: int
    counters: Mapping[str, float]
    levels: Mapping[str, float]
    signs: frozenset[str]


class Source(Protocol):
    """Something in the machine that tells what else goes on. Never raises; what it cannot read is in `absent`, with why."""

    absent: dict[str, str]

    def look(self, pid: int, slowly: bool) -> Values:
        """Look once. `slowly` marks the looks, about one a second, in which dearer files may be read."""
        ...
