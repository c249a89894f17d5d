"""Where the steady part of a trial begins. Pure.

MSER-5: of all cuts, take the one that makes the standard error of what is left smallest, over means of five samples (White,
"An effective truncation heuristic for bias reduction in simulation output", Simulation 69, 1997; White, Cobb and Spratt, "A
comparison of five steady-state truncation heuristics", Winter Simulation Conference 2000). Two things differ here. Ranks
stand for the samples, so that a single very slow query, which is no warm-up, does not decide. And a long trial is cut into
about `PIECES` means instead of means of five, because neighbouring queries resemble each other.

When the best cut lies beyond the middle, or what is left changes its pace near the end, there is no steady state to report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.judgement.flags import NOT_STEADY
from harness.judgement.flags import SLOW_START as SLOW_START_FLAG
from harness.records import Flag

LEAST_BATCH = 5
PIECES = 100
LEAST_SAMPLES = 200  # with fewer than forty means, chance alone finds a late cut too often
ROUNDING = 1e-12  # ranks are at most a half: what scatters less is all equal
LATEST_CUT = 0.75  # of the pieces; what is left after a later one is too short to be judged
# The same search from the end finds a late change of pace. Chance finds something there too, but does not halve the error.
LATE_GAIN = 0.5
# In simulation (lognormal, AR(1) up to 0.9, from 400 samples on) fewer than one steady trial in twenty loses as much.
SLOW_START = 0.10


@dataclass(frozen=True)
class SteadyState:
    """The samples from `start` on are steady; `start` is how many are discarded. None with the reason why there are none."""

    start: int | None
    count: int
    reason: str | None = None
    judged: bool = True  # False: too few samples to say anything, which speaks neither for nor against a steady state

    @property
    def share_discarded(self) -> float | None:
        """From 0 to 0.5; None without a steady state."""
        return None if self.start is None else self.start / self.count


def steadiness_flags(trials: Sequence[SteadyState]) -> tuple[Flag, ...]:
    """Return flags for trials that start slowly or do not settle; `trials` are all of one case.

    Half of the judged trials must show it: with a long memory, chance alone makes one steady trial of ten look unsteady
    near the least number of samples, and lets one of ten lose more than `SLOW_START` of them.
    """
    judged = [trial for trial in trials if trial.judged]
    lost = [trial for trial in judged if trial.start is None]
    late = [trial for trial in judged if (trial.share_discarded or 0) > SLOW_START]
    found = []
    if lost and 2 * len(lost) >= len(judged):
        why = f"{len(lost)} of {len(trials)} trials found no steady state: {lost[0].reason}."
        found.append(Flag(NOT_STEADY, f"{why} Nothing was left out of them; a longer warm-up may help."))
    if late and 2 * len(late) >= len(judged):
        shares = sorted(trial.share_discarded or 0 for trial in late)
        middle = shares[len(shares) // 2]
        found.append(
            Flag(
                SLOW_START_FLAG,
                f"{len(late)} of {len(trials)} trials started slowly: about {middle:.0%} of their samples were left out, "
                f"more than {SLOW_START:.0%}.",
            )
        )
    return tuple(found)


def find_steady_state(samples: npt.ArrayLike) -> SteadyState:
    """Return where the steady part of one trial begins. `samples` are latencies in the order of time, of any unit."""
    values = np.asarray(samples)
    count = len(values)
    if count < LEAST_SAMPLES:
        return SteadyState(None, count, f"{count} samples are too few to tell, it takes {LEAST_SAMPLES}", False)
    batch = max(LEAST_BATCH, count // PIECES)
    pieces = count // batch
    means = _mid_ranks(values)[: pieces * batch].reshape(pieces, batch).mean(axis=1)
    cut, _ = _best_cut(means)
    if cut > pieces / 2:
        return SteadyState(None, count, "no steady state: more than half of the samples would have to go")
    late, gain = _best_cut(means[cut:][::-1])
    if late and gain < LATE_GAIN:
        return SteadyState(None, count, f"no steady state: about the last {late * batch} samples are of another pace")
    return SteadyState(cut * batch, count)


def _best_cut(means: npt.NDArray[np.float64]) -> tuple[int, float]:
    """Return how many means to discard in front, and what is left of the squared standard error by that."""
    number = len(means)
    left = number - np.arange(number)
    total = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum(means[::-1] ** 2)[::-1]
    scatter = squares - total**2 / left
    scatter[scatter < ROUNDING] = 0.0
    # Variance over number: the square of the standard error of the mean of what is left.
    error = (scatter / left**2)[: int(LATEST_CUT * number) + 1]
    cut = int(np.argmin(error))
    return cut, float(error[cut] / error[0]) if error[0] > 0 else 1.0


def _mid_ranks(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """Return each sample's rank from -0.5 to 0.5; equal samples share the middle of theirs."""
    ordered = np.sort(values)
    first = np.searchsorted(ordered, values, side="left")
    after = np.searchsorted(ordered, values, side="right")
    ranked: npt.NDArray[np.float64] = (first + after) / (2.0 * len(values)) - 0.5
    return ranked
