"""How much of a latency is the harness's own. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from harness.records import SelfCost


@dataclass(frozen=True)
class Share:
    """The harness's own cost as shares of a latency: what stands inside it, and what the loop takes per query in all."""

    recorded: float
    wall: float


def share_of(cost: SelfCost | None, p50_ms: float | None) -> Share | None:
    """Return the share of a median latency in milliseconds; None where either is not known.

    The cost comes from a tight loop. Behind a real query its few instructions have to be fetched from memory again: 0.2 us
    instead of 0.06 behind a network of 70 us, 2.4 us behind one of 6 ms (benchmarks/overhead.py). So the true share is
    larger, and still small; nothing is subtracted by it.
    """
    if cost is None or cost.recorded_us is None or cost.wall_us is None or p50_ms is None or p50_ms <= 0:
        return None
    latency_us = p50_ms * 1e3
    return Share(cost.recorded_us / latency_us, cost.wall_us / latency_us)
