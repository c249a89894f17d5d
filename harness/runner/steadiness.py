"""Which leading samples of a trial are left out, because it had not settled yet."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.judgement.steady_state import SteadyState, find_steady_state
from harness.runner.trial_process import Outcome

# Where queries follow each other under one and the same load. In `sustained` the change over time is the result; in `server`
# the load itself changes, and in `offline` the times hold the wait in a queue.
STEADY_SCENARIOS = ("single_stream", "multi_stream", "duty_cycle")
LATENCY = "latency_ns"


def samples_of(outcome: Outcome, what: str) -> npt.NDArray[np.int64]:
    """Return the raw nanoseconds of one kind, empty where the trial has none. A cut-off last value is left out."""
    data = outcome.files.get(what, b"")
    return np.frombuffer(data[: len(data) // 8 * 8], dtype="<i8").astype(np.int64)


def steadiness_of(scenario: str, outcome: Outcome) -> SteadyState | None:
    """Return where the steady part of a timing trial begins; None where the scenario knows no such thing."""
    if scenario not in STEADY_SCENARIOS or outcome.status != "ok":
        return None
    samples = samples_of(outcome, LATENCY)
    return find_steady_state(samples) if len(samples) else None


def discarded(steady: SteadyState | None) -> int:
    """Return how many leading samples are left out of every figure; none where no steady part was found."""
    return steady.start or 0 if steady is not None else 0
