"""Interleaved rounds of two sides, and their ratio. Other load changes over seconds, so sides are compared within a round.

Each round measures both sides one after the other, the first side alternating. A ratio is taken within each round, and its
median over the rounds is what is shown, with the middle half of the rounds beside it: on a busy machine single rounds differ
by tens of percent, while slow drift falls out of the ratio.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Figures = Mapping[str, float]  # name of a figure -> value of one round


@dataclass(frozen=True)
class Goal:
    """What the ratio of a figure is wanted to be; None for the plain difference where only the ratio counts."""

    within: float | None = None  # ratio between 1 - within and 1 + within
    or_difference: float | None = None  # or the difference at most this, in the figure's unit
    times_less: float | None = None  # or rather: ours at least this many times below the peer's

    def met(self, ratio: float, difference: float) -> bool:
        """Whether a median ratio and a median difference (ours minus the peer's) are as wanted."""
        if self.times_less is not None:
            return ratio * self.times_less <= 1
        near = self.within is not None and abs(ratio - 1) <= self.within
        return near or (self.or_difference is not None and abs(difference) <= self.or_difference)

    def __str__(self) -> str:
        if self.times_less is not None:
            return f"at least {self.times_less:g} times less"
        words = [f"within {self.within:.0%}"] if self.within is not None else []
        return " or ".join([*words, *([f"{self.or_difference:g}"] if self.or_difference is not None else [])])


@dataclass(frozen=True)
class Comparison:
    """One figure of both sides over all rounds."""

    ours: float  # median over rounds
    peer: float
    ratio: float  # median of the rounds' ratios, ours / peer
    low: float  # quartiles of the rounds' ratios
    high: float
    difference: float  # median of the rounds' differences, ours - peer
    rounds: int


def interleave(rounds: int, ours: Callable[[], Figures], peer: Callable[[], Figures]) -> list[tuple[Figures, Figures]]:
    """Measure both sides `rounds` times, in turns; return (ours, peer) of each round."""
    found: list[tuple[Figures, Figures]] = []
    for number in range(rounds):
        if number % 2:
            second = peer()
            found.append((ours(), second))
        else:
            first = ours()
            found.append((first, peer()))
    return found


def compare(rounds: Sequence[tuple[Figures, Figures]], figure: str) -> Comparison:
    """Compare one figure. Rounds need at least one pair with a peer's value above zero."""
    pairs = [(ours[figure], peer[figure]) for ours, peer in rounds]
    ratios = sorted(ours / peer for ours, peer in pairs)
    low, high = ratios[0], ratios[-1]
    if len(ratios) > 1:
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Comparison(
        ours=statistics.median(ours for ours, _ in pairs),
        peer=statistics.median(peer for _, peer in pairs),
        ratio=statistics.median(ratios),
        low=low,
        high=high,
        difference=statistics.median(ours - peer for ours, peer in pairs),
        rounds=len(pairs),
    )


def line(name: str, unit: str, found: Comparison, goal: Goal | None = None) -> str:
    """One line of a table. The goal is said to hold in this run or not; it is no test."""
    said = ""
    if goal is not None:
        said = f"  goal {goal}{'' if goal.or_difference is None else ' ' + unit}: "
        said += "met in this run" if goal.met(found.ratio, found.difference) else "not met in this run"
    return (
        f"  {name:<22}{found.ours:>10.3f}{found.peer:>11.3f} {unit:<5}{found.ratio:>8.3f}"
        f"  ({found.low:.3f} to {found.high:.3f}){said}"
    )


def header(peer: str) -> str:
    """The names of the columns of `line`."""
    return f"  {'median over rounds':<22}{'ours':>10} {'peer':>10} {'':<5}{'ratio':>8}  (middle half)  peer: {peer}"


def load() -> str:
    """What else this machine was doing, for the heading of a table."""
    if not hasattr(os, "getloadavg"):
        return f"{os.cpu_count()} processors"
    return f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}"
