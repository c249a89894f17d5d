"""Load patterns with the meanings of MLPerf's LoadGen, and three of our own. One door to all of them.

Each scenario is a module of its own with one timed loop. What it needs beside the window's limits comes in `parameters`,
the same that stand in the case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from backends.base import Session
from harness.scenarios import offline, single_stream
from harness.scenarios.window import Carry, Limits, Pool, Window

# Scenarios that keep several requests in flight; the others ask for one after the other.
SLOT_SCENARIOS = ("offline",)


@dataclass(frozen=True)
class Played:
    """What a scenario left: its window, raw samples by the name of their file, and facts for the trial file.

    Samples are nanoseconds in the order of time. `latency_ns` holds what counts as a latency; `query_ns` holds times that
    contain waiting in a runtime's queue and are none.
    """

    window: Window
    samples: dict[str, npt.NDArray[np.int64]]
    facts: dict[str, Any] = field(default_factory=dict)  # JSON: document["scenario"]


def run(
    name: str,
    session: Session,
    pool: Pool,
    limits: Limits,
    parameters: Mapping[str, Any],
    carry: Carry = (),
    slots: int = 1,
) -> Played:
    """Play one scenario on a session that is prepared for `slots` requests. Raises ValueError for an unknown name."""
    if name == "single_stream":
        window = single_stream.run(session, pool, limits, carry)
        return Played(window, {"latency_ns": window.query_ns})
    if name == "offline":
        window = offline.run(session, pool, limits, slots)
        return Played(window, {"query_ns": window.query_ns})
    raise ValueError(f"there is no scenario {name!r}")
