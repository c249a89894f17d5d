"""How many independent samples a run of dependent ones is worth. Pure.

Latencies of neighbouring queries resemble each other (caches, clocks, other load), so n of them tell less than n
independent ones. The variance of a mean grows by the integrated autocorrelation time tau = 1 + 2 sum rho(k), and n / tau is
the effective size. The sum is cut by Geyer's initial positive and monotone sequence (Geyer, "Practical Markov Chain Monte
Carlo", Statistical Science 7, 1992), and its bias of order W / n is taken out as in Wolff ("Monte Carlo errors
with less errors", Computer Physics Communications 156, 2004).

For a percentile q what counts is the series of "at most q" (Heidelberger and Lewis, "Quantile estimation in dependent
sequences", Operations Research 32, 1984): the share of samples at most q is the mean of that series.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# A series that is not at least this many times as long as its own memory does not tell how long that memory is.
LEAST_SPANS = 4.0
DIRECT_LAGS = 32  # one by one; independent samples need only the first few of them


def autocorrelation_time(series: npt.ArrayLike) -> float:
    """Return tau, in samples, of a series in the order of time: 1 for independent samples, never less.

    A series that never changes has no correlation to speak of and counts as independent. A tau longer than a quarter of
    the series is not known any better than that, and is given as that quarter.
    """
    values = np.asarray(series, np.float64)
    count = len(values)
    if count < 4:
        return 1.0
    centred = values - values.mean()
    if float(centred @ centred) <= 0:
        return 1.0
    pairs = _positive_pairs(centred)
    tau = 2.0 * float(np.minimum.accumulate(pairs).sum()) - 1.0
    window = 2 * len(pairs) - 1
    return float(min(max(1.0, tau * (1.0 + (2 * window + 1) / count)), max(1.0, count / LEAST_SPANS)))


def _positive_pairs(centred: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return rho(0) + rho(1), rho(2) + rho(3), ... up to the first that is not positive."""
    count = len(centred)
    variance = float(centred @ centred)
    pairs: list[float] = []
    for lag in range(0, min(DIRECT_LAGS, count - 1), 2):
        later = centred[lag + 1 :] @ centred[: count - lag - 1]
        pair = float(centred[lag:] @ centred[: count - lag] + later) / variance
        if pair <= 0:
            return np.array(pairs)
        pairs.append(pair)
    # A long memory: all lags at once by the fast Fourier transform, padded so that the ends do not meet.
    size = 1 << (2 * count - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    correlation = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, size)[:count] / variance
    whole = correlation[0 : count - 1 : 2] + correlation[1:count:2]
    negative = np.flatnonzero(whole <= 0)
    return whole[: int(negative[0])] if len(negative) else whole


def effective_size(samples: npt.ArrayLike, *thresholds: float) -> int:
    """Return how many independent samples tell as much about the shares at most `thresholds`; from 1 to their number.

    `samples` are in the order of time. The threshold that depends most counts. Where several samples are equal to it,
    "below" and "at most" differ, and again the more dependent of the two counts.
    """
    values = np.asarray(samples)
    if not len(values):
        return 0
    tau = 1.0
    for threshold in set(thresholds):
        tau = max(tau, autocorrelation_time(values <= threshold))
        if np.count_nonzero(values == threshold) > 1:
            tau = max(tau, autocorrelation_time(values < threshold))
    return max(1, int(len(values) / tau))
