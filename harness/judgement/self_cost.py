"""How much of a latency is the harness's own. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from harness.records import SelfCost

# Above this share of a median the harness's own cost is worth a word beside the number.
WORTH_SAYING = 0.01


@dataclass(frozen=True)
class Share:
    """The harness's own cost as shares of a latency: what stands inside it, and what the loop takes per query in all."""

    recorded: float
    wall: float

    @property
    def worth_saying(self) -> bool:
        """Whether the recorded part could be mistaken for a difference between systems."""
        return self.recorded >= WORTH_SAYING

    def __str__(self) -> str:
        return f"{_percent(self.recorded)} of this latency is the harness's own call and clock"


def share_of(cost: SelfCost | None, p50_ms: float | None) -> Share | None:
    """Return the share of a median latency in milliseconds; None where either is not known.

    The cost comes from a tight loop. Behind a real query its few instructions have to be fetched from memory again: 0.2 us
    instead of 0.06 behind a network of 70 us, 2.4 us behind one of 6 ms (benchmarks/overhead.py). So the true share is
    larger, and still small; nothing is subtracted by it.
    """
    if cost is None or cost.recorded_us is None or cost.wall_us is None or not p50_ms or p50_ms <= 0:
        return None
    latency_us = p50_ms * 1e3
    return Share(cost.recorded_us / latency_us, cost.wall_us / latency_us)


def _percent(share: float) -> str:
    return "below 0.01 %" if share < 0.0001 else f"{share * 100:.2g} %"
