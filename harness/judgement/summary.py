"""From raw samples to the figures of a measurement. Pure: arrays in, records out.

Percentiles follow LoadGen (MLPerf): the zero-based index floor(n p) of the sorted samples. One is given only where at least
one sample is expected above it, n (1 - p) >= 1, so p99 takes 100 samples and p99.9 takes 1000; else it is None, with the
reason. What stands beside it as low and high is named in its method: from six trials on a 95 % interval of the median over
trials; with two to five, the smallest and largest of the trials' own percentiles, called a range; with one trial, a 95 %
interval that speaks of this process only, where its samples carry one.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.judgement.flags import TRIALS_DISAGREE
from harness.judgement.intervals import median_over_trials, percentile_interval
from harness.records import ColdStart, Flag, Latency, Quantile

Samples = npt.NDArray[np.int64]

# In thousandths, so that floor(n p) is exact: 0.999 has no exact binary fraction.
PER_MILLE = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p99_9": 999}
COLD_PARTS = ("process", "import", "load", "compile", "first_inference")
# Trials of one case whose medians lie further apart than this share of their middle do not tell the same story.
DISAGREEMENT = 0.10


def samples_needed(per_mille: int) -> int:
    """Return the least n with n (1 - p) >= 1."""
    return -(-1000 // (1000 - per_mille))


def loadgen_percentile(ordered: Samples, per_mille: int) -> int:
    """Return the sample at the zero-based index floor(n p) of `ordered`, which must be sorted and not empty."""
    return int(ordered[len(ordered) * per_mille // 1000])


def summarise_latency(trials: Sequence[Samples]) -> Latency | None:
    """Return the latency over all samples of all timing trials (nanoseconds in, milliseconds out); None without samples."""
    held = [samples for samples in trials if len(samples)]
    if not held:
        return None
    ordered = [np.sort(samples) for samples in held]
    pooled = np.sort(np.concatenate(ordered))
    alone = held[0] if len(held) == 1 else None
    quantiles = {name: _quantile(pooled, ordered, per_mille, alone) for name, per_mille in PER_MILLE.items()}
    return Latency(
        count=len(pooled),
        mean=float(pooled.mean()) / 1e6,
        min=int(pooled[0]) / 1e6,
        max=int(pooled[-1]) / 1e6,
        **quantiles,
    )


def _quantile(pooled: Samples, trials: Sequence[Samples], per_mille: int, alone: Samples | None) -> Quantile:
    """`trials` are sorted; `alone` is the only trial in the order of time, None where there are several."""
    needed = samples_needed(per_mille)
    if len(pooled) < needed:
        return Quantile(None, reason=f"too few samples: {len(pooled)} of at least {needed}")
    value = loadgen_percentile(pooled, per_mille) / 1e6
    if alone is not None:
        return _within_trial(value, alone, per_mille)
    each = [loadgen_percentile(trial, per_mille) / 1e6 for trial in trials if len(trial) >= needed]
    if len(each) < 2:
        return Quantile(value, method="floor(n p)")
    across = median_over_trials(each)
    assert across.low is not None and across.high is not None
    # The pooled value can lie outside: a trial may be too short to have the percentile itself, or longer than the others.
    low, high = min(across.low, value), max(across.high, value)
    if across.kind == "range":
        return Quantile(value, low, high, f"floor(n p), range of {len(each)} trials")
    widened = ", widened to the pooled value" if (low, high) != (across.low, across.high) else ""
    return Quantile(value, low, high, f"floor(n p), 95 % interval of the median over {len(each)} trials{widened}")


def _within_trial(value: float, samples: Samples, per_mille: int) -> Quantile:
    found = percentile_interval(samples, per_mille)
    if found.low is None or found.high is None:
        return Quantile(value, method="floor(n p)")
    worth = f"{found.independent} of {found.count} samples count as independent"
    method = f"floor(n p), 95 % interval within one trial, {worth}"
    return Quantile(value, found.low / 1e6, found.high / 1e6, method)


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
    spread = (max(medians) - min(medians)) / median(medians)
    if spread <= DISAGREEMENT:
        return ()
    return (
        Flag(
            TRIALS_DISAGREE,
            f"The medians of {len(medians)} trials lie {spread:.0%} apart; is the machine busy, or its clock not steady?",
        ),
    )
