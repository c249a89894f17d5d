"""Which rates a server trial offers, and how many queries at each. Pure.

Rates are preferred numbers, the R20 series of ISO 3: twenty to a decade, each about 12 % above the one before. Whatever the
capacity of a device, its rates are among those of every other device and month, so that curves share their points. R10
and R5 are every second and every fourth of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

R20 = ("1.00", "1.12", "1.25", "1.40", "1.60", "1.80", "2.00", "2.24", "2.50", "2.80",
       "3.15", "3.55", "4.00", "4.50", "5.00", "5.60", "6.30", "7.10", "8.00", "9.00")  # fmt: skip
LOWEST, HIGHEST = 0.3, 1.1  # of the capacity that a closed loop shows
STEPS = (1, 2, 4)  # R20, R10, R5
ENOUGH = 100  # queries at each rate; where the time does not hold them, the rates stand further apart
LEAST = 10
BASE_SHARE = 0.4  # of the time for all rates alike, the rest goes to where the limit lies
RAMP_SHARE = 0.1  # of the queries at one rate: the queue begins empty, so the first ones say nothing of the load


@dataclass(frozen=True)
class Offer:
    """So many queries at one rate."""

    per_s: float
    queries: int

    @property
    def expected_s(self) -> float:
        return self.queries / self.per_s


def preferred(low: float, high: float, step: int = 1) -> list[float]:
    """Return every `step`-th number of the R20 series from `low` (above zero) to `high`, ascending."""
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    numbers = [float(f"{mantissa}e{decade}") for decade in range(first, last) for mantissa in R20[::step]]
    return [number for number in numbers if low <= number <= high]


def first_offers(capacity_per_s: float, seconds: float) -> list[Offer]:
    """Return the rates from 0.3 to 1.1 of the capacity, ascending, with as many queries at each as `seconds` hold."""
    for step in STEPS:
        rates = preferred(LOWEST * capacity_per_s, HIGHEST * capacity_per_s, step)
        queries = int(seconds / sum(1 / rate for rate in rates))
        if queries >= ENOUGH:
            break
    return [Offer(rate, max(LEAST, queries)) for rate in rates]


def further_offers(seen: Sequence[tuple[float, float]], limit: float, seconds: float) -> list[Offer]:
    """Return where to look again. `seen` are (rate, its percentile so far), ascending; `limit` is in the same unit.

    From the highest rate that keeps below the limit to the lowest above it that does not, and one between them. Where
    all keep below it, or none does, the last or first one.
    """
    missed = next((number for number, (_, value) in enumerate(seen) if value > limit), len(seen))
    if missed in (0, len(seen)):
        chosen = [seen[0][0] if missed == 0 else seen[-1][0]]
    else:
        between = preferred(seen[missed - 1][0], seen[missed][0])
        chosen = sorted({between[0], between[len(between) // 2], between[-1]})
    queries = int(seconds / sum(1 / rate for rate in chosen))
    return [Offer(rate, queries) for rate in chosen] if queries >= LEAST else []


def arrivals(offer: Offer, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return when each query of a Poisson process arrives, in nanoseconds from its start: exponential gaps add up."""
    gaps = generator.exponential(1e9 / offer.per_s, offer.queries)
    return np.cumsum(gaps).astype(np.int64)


def after_ramp(queries: int) -> int:
    """Return the number of the first query that counts."""
    return math.ceil(queries * RAMP_SHARE)
