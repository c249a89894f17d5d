"""Load patterns with the meanings of MLPerf's LoadGen, and three of our own. One door to all of them.

Each scenario is a module of its own with one timed loop. What it needs beside the window's limits comes in `parameters`,
the same that stand in the case, and `batch` and `seed`. A cold start is no load pattern: see harness.worker.cold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backends.base import Session
from harness.scenarios import duty_cycle, multi_stream, offline, server, single_stream, sustained
from harness.scenarios.window import Carry, Limits, Played, Pool

__all__ = ["SLOT_SCENARIOS", "Played", "run", "slots_for"]

# Scenarios that may keep several requests in flight, whose number a suite may sweep; the others ask for one after the other.
SLOT_SCENARIOS = ("offline", "multi_stream", "server")


def slots_for(name: str, session: Session, parameters: Mapping[str, Any]) -> int:
    """Return how many requests the session is prepared for: as many as were asked for, or as the runtime prefers."""
    if name not in SLOT_SCENARIOS:
        return 1
    slots = int(parameters.get("slots") or max(1, session.preferred_slots))
    return min(slots, multi_stream.requests_per_query(parameters)) if name == "multi_stream" else slots


def run(
    name: str,
    session: Session,
    pool: Pool,
    limits: Limits,
    parameters: Mapping[str, Any],
    carry: Carry = (),
    slots: int = 1,
) -> Played:
    """Play one scenario on a session that is prepared for `slots` requests.

    Raises ValueError for an unknown name, OptionUnsupported for parameters that do not fit each other.
    """
    if name == "single_stream":
        window = single_stream.run(session, pool, limits, carry)
        return Played(window, {"latency_ns": window.query_ns}, len(window.query_ns), window.queries_per_s)
    if name == "multi_stream":
        return multi_stream.run(session, pool, limits, parameters, slots)
    if name == "server":
        return server.run(session, pool, limits, parameters, slots)
    if name == "offline":
        window = offline.run(session, pool, limits, slots)
        return Played(window, {"query_ns": window.query_ns}, len(window.query_ns), window.queries_per_s)
    if name == "duty_cycle":
        return duty_cycle.run(session, pool, limits, parameters, carry)
    if name == "sustained":
        return sustained.run(session, pool, limits, carry)
    raise ValueError(f"there is no scenario {name!r}")
