"""From raw samples to the figures of a measurement. Pure: arrays in, records out.

Percentiles follow LoadGen (MLPerf): the zero-based index floor(n p) of the sorted samples. One is given only where all
samples together, counted as independent ones, carry a two-sided 95 % interval of it: 6 for p50, 36 for p90, 72 for p95,
368 for p99, 3688 for p99.9 (`intervals.least_count`); else it is None, and the reason says how many there are and how many
it takes.

What stands beside it as low and high is named in its method, and value and bounds speak of the same thing:
- enough trials for an interval (six at 95 %): the median over trials of each trial's own percentile, with its interval;
- two trials or more, but too few for that: the percentile of all samples together, and the range of the trials' own;
- one trial: the percentile with an interval that speaks of this process only.
All of it is of one unit of the hardware; another unit may differ by more.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.judgement.effective_size import effective_size
from harness.judgement.flags import FEW_SAMPLES, TRIALS_DISAGREE
from harness.judgement.intervals import (
    CONFIDENCE,
    least_count,
    median_over_trials,
    percentile_interval,
    percentile_over_trials,
)
from harness.records import ColdStart, Flag, Latency, Quantile

Samples = npt.NDArray[np.int64]

# In thousandths, so that floor(n p) is exact: 0.999 has no exact binary fraction.
PER_MILLE = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p99_9": 999}
COLD_PARTS = ("process", "import", "load", "compile", "first_inference")
# Trials of one case whose medians lie further apart than this share of their middle do not tell the same story. From six
# trials on only the middle half of them counts: the more trials, the further apart the two extremes are by chance alone.
MOST_DISAGREEMENT = 0.10
MANY_TRIALS = 6
ONE_UNIT = "1 unit measured"
LEAST_OF_A_TRIAL = 3  # with two, not even the median of one trial is centred on the truth


def samples_needed(per_mille: int) -> int:
    """Return the least number of independent samples for a percentile: those of a two-sided 95 % interval."""
    return least_count(per_mille)


def loadgen_percentile(ordered: Samples, per_mille: int) -> int:
    """Return the sample at the zero-based index floor(n p) of `ordered`, which must be sorted and not empty."""
    return int(ordered[len(ordered) * per_mille // 1000])


def summarise_latency(trials: Sequence[Samples], confidence: float = CONFIDENCE) -> Latency | None:
    """Return the latency over the samples of all timing trials (nanoseconds in, milliseconds out); None without samples.

    Each trial's samples are in the order of time, without what was discarded. `confidence` is that of one look, where the
    number of trials was decided by looking (`stopping.Plan.confidence_at`): the intervals then hold with 95 % together.
    """
    held = [samples for samples in trials if len(samples)]
    if not held:
        return None
    ordered = [np.sort(samples) for samples in held]
    pooled = np.sort(np.concatenate(ordered))
    quantiles: dict[str, Quantile] = {}
    before = 0.0
    refused: str | None = None
    for name, per_mille in PER_MILLE.items():
        found = _quantile(pooled, held, ordered, per_mille, confidence)
        if found.value is not None and found.value < before:
            # Trials too short to carry it themselves, of very different lengths: the pool then speaks of other trials.
            found = Quantile(None, reason="the trials are too short and too unlike for this percentile")
        elif found.value is not None and refused is not None:
            # Where the samples hang together so much that the middle is not known, the tail is not either.
            found = Quantile(None, reason=f"the samples do not carry {refused}, which takes fewer")
        refused = refused or (name if found.value is None else None)
        quantiles[name] = found
        before = max(before, found.value or 0.0)
    return Latency(
        count=len(pooled),
        mean=float(pooled.mean()) / 1e6,
        min=int(pooled[0]) / 1e6,
        max=int(pooled[-1]) / 1e6,
        **quantiles,
    )


def over_trials(values: Sequence[float], confidence: float = CONFIDENCE, what: str = "") -> Quantile:
    """Return the median of one number per trial, with its interval, or with the range where the trials are too few.

    `what` names the number of one trial in the method, such as "floor(n p)". One trial has no bounds. Raises ValueError
    without a value.
    """
    if not values:
        raise ValueError("There is no trial to take a median of.")
    of = f"{what}, " if what else ""
    across = median_over_trials(values, confidence)
    if len(values) == 1:
        return Quantile(across.value, method=f"{of}one trial, no interval over trials, {ONE_UNIT}")
    if across.kind == "interval":
        return Quantile(across.value, across.low, across.high, f"{of}{_spelled(len(values), confidence)}")
    return Quantile(across.value, across.low, across.high, f"{of}median, range of {len(values)} trials, {ONE_UNIT}")


def _spelled(trials: int, confidence: float) -> str:
    share = f"{100 * confidence:.4g} % at this look, " if confidence > CONFIDENCE + 1e-9 else ""
    return f"95 % interval of the median over {trials} trials, {share}{ONE_UNIT}"


def _quantile(
    pooled: Samples, held: Sequence[Samples], ordered: Sequence[Samples], per_mille: int, confidence: float
) -> Quantile:
    """`held` are the trials in the order of time, `ordered` the same sorted, `pooled` all of it sorted."""
    needed = samples_needed(per_mille)
    if len(pooled) < needed:
        return Quantile(None, reason=f"too few samples: {len(pooled)} of at least {needed}")
    worth = sum(_worth(samples, sorted_, per_mille) for samples, sorted_ in zip(held, ordered, strict=True))
    if worth < needed:
        count = f"{len(pooled)} samples are worth {worth} independent ones"
        return Quantile(None, reason=f"too few samples: {count}, of at least {needed}")
    if len(held) == 1:
        return _within_trial(held[0], per_mille)
    value = loadgen_percentile(pooled, per_mille) / 1e6
    across = over_own_percentiles(ordered, per_mille, confidence)
    if across is not None:
        return across
    each = [loadgen_percentile(trial, per_mille) / 1e6 for trial in ordered if speaks(trial, per_mille)]
    if len(each) < len(held):
        return Quantile(value, method=f"floor(n p) of all trials together, each too short for its own, {ONE_UNIT}")
    # The pooled value can lie outside, where one trial is longer than the others.
    low, high = min(*each, value), max(*each, value)
    return Quantile(value, low, high, f"floor(n p) of all trials together, range of {len(each)} trials, {ONE_UNIT}")


def speaks(trial: Samples, per_mille: int) -> bool:
    """Say whether a trial has a percentile of its own: one of its samples is expected above it, and it has three."""
    return len(trial) * (1000 - per_mille) >= 1000 and len(trial) >= LEAST_OF_A_TRIAL


def over_own_percentiles(ordered: Sequence[Samples], per_mille: int, confidence: float) -> Quantile | None:
    """Return the median over trials (sorted nanoseconds) of each one's own percentile with its interval, in milliseconds.

    None where the trials are too few for an interval, or one of them has no percentile of its own.
    """
    if not all(speaks(trial, per_mille) for trial in ordered):
        return None
    across = percentile_over_trials(ordered, per_mille, confidence)
    if across.kind != "interval" or across.low is None or across.high is None:
        return None
    method = f"floor(n p) of each trial, {_spelled(len(ordered), confidence)}"
    return Quantile(across.value / 1e6, across.low / 1e6, across.high / 1e6, method)


def _worth(samples: Samples, ordered: Samples, per_mille: int) -> int:
    """Return how many independent samples one trial is worth at a percentile, by the memory of the series "at most it"."""
    return effective_size(samples, ordered[len(ordered) * per_mille // 1000])


def _within_trial(samples: Samples, per_mille: int) -> Quantile:
    # Stricter than what gives the value: there the median's memory counts too, where it is longer.
    found = percentile_interval(samples, per_mille)
    if found.low is None or found.high is None:
        return Quantile(found.value / 1e6, method=f"floor(n p), one trial, no interval: {found.reason}, {ONE_UNIT}")
    worth = f"{found.independent} of {found.count} samples count as independent"
    method = f"floor(n p), 95 % interval within one trial, {worth}, {ONE_UNIT}"
    return Quantile(found.value / 1e6, found.low / 1e6, found.high / 1e6, method)


def median_ms(arrays: Sequence[Samples]) -> float | None:
    """Return the median in milliseconds of all nanoseconds of all arrays; None without any."""
    held = [array for array in arrays if len(array)]
    return float(np.median(np.concatenate(held))) / 1e6 if held else None


def summarise_cold_start(parts: Sequence[dict[str, Any]], caches: dict[str, str]) -> ColdStart | None:
    """Return the median over trials of each part in milliseconds; a part that no trial knows stays None."""
    if not parts:
        return None
    known = {
        name: [float(part[name]) for part in parts if isinstance(part.get(name), (int, float))] for name in COLD_PARTS
    }
    middle = {name: median(values) if values else None for name, values in known.items()}
    return ColdStart(
        process=middle["process"],
        import_=middle["import"],
        load=middle["load"],
        compile=middle["compile"],
        first_inference=middle["first_inference"],
        caches=caches,
    )


def stability_flags(trials: Sequence[Samples]) -> tuple[Flag, ...]:
    """Return a flag where the trials' medians lie far apart: something else than the case changed between them."""
    medians = [float(np.median(trial)) for trial in trials if len(trial)]
    if len(medians) < 2:
        return ()
    outer = len(medians) // 4 if len(medians) >= MANY_TRIALS else 0
    counted = sorted(medians)[outer : len(medians) - outer]
    spread = (counted[-1] - counted[0]) / median(medians)
    if spread <= MOST_DISAGREEMENT:
        return ()
    which = f"{'Half of the' if outer else 'The'} medians of {len(medians)} trials"
    words = f"{which} lie {spread:.0%} apart; is the machine busy, or its clock not steady?"
    return (Flag(TRIALS_DISAGREE, words),)


def sample_flags(latency: Latency | None) -> tuple[Flag, ...]:
    """Return a flag where there are too few samples even for a median."""
    if latency is None or latency.p50.value is not None:
        return ()
    return (Flag(FEW_SAMPLES, f"There is no p50: {latency.p50.reason}."),)
