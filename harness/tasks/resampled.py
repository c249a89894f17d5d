"""Metrics that are no mean over samples, as functions of weights: with weight 2 a unit counts as if it were there twice.

What a paired bootstrap needs (`harness.judgement.resampling`): units that are independent of one another (pictures, windows,
whole recordings, not their frames), and the metric for many weightings at once. With all weights 1 each function gives the
value that `harness.tasks.metrics` gives. Ties are broken as there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.tasks.detections import intersection_over_union

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Resampled:
    """A metric under weights [draws, units]. Units of one group are drawn among themselves, so that no kind is missing."""

    unit: str  # what a unit is called, in the plural
    groups: tuple[int, ...]  # one number per unit
    value: Callable[[FloatArray], FloatArray]


def matched(
    found: Sequence[Mapping[str, Any]], truth: Sequence[Sequence[Sequence[float]]], threshold: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the picture of every detection, by falling score over all pictures, and whether it is right.

    Each takes the best labelled box of its picture that is still free. Equal scores keep the order of pictures and boxes.
    """
    ranked: list[tuple[float, int, int]] = []
    for picture, item in enumerate(found):
        ranked += [(-float(score), picture, position) for position, score in enumerate(item["scores"])]
    ranked.sort()
    free = [np.ones(len(boxes), dtype=bool) for boxes in truth]
    hits = np.zeros(len(ranked), dtype=bool)
    for rank, (_, picture, position) in enumerate(ranked):
        if not len(truth[picture]):
            continue
        box = np.asarray([found[picture]["boxes"][position]], dtype=np.float64)
        overlap = intersection_over_union(box, np.asarray(truth[picture], dtype=np.float64))[0]
        overlap[~free[picture]] = -1.0
        best = int(overlap.argmax())
        if overlap[best] >= threshold:
            free[picture][best] = False
            hits[rank] = True
    return np.array([picture for _, picture, _ in ranked], dtype=np.int64), hits


def precision_area(pictures: npt.NDArray[np.int64], hits: npt.NDArray[np.bool_], totals: FloatArray) -> Resampled:
    """Return average precision over pictures; `totals` are the labelled boxes of each."""

    def value(weights: FloatArray) -> FloatArray:
        if not len(pictures):
            return np.zeros(len(weights))
        each = weights[:, pictures]
        right = np.cumsum(each * hits, axis=1)
        ranked = np.cumsum(each, axis=1)
        precision = np.divide(right, ranked, out=np.zeros_like(right), where=ranked > 0)
        envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        area = (envelope * each * hits).sum(axis=1)
        return np.asarray(area / (weights @ totals))

    return Resampled("pictures", (0,) * len(totals), value)


def curve_area(scores: FloatArray, positive: npt.NDArray[np.bool_], unit: str) -> Resampled:
    """Return the area under the ROC curve: the weighted share of pairs in which the positive scores above the negative."""
    above = (scores[positive][:, None] > scores[~positive][None, :]).astype(np.float64)
    above += 0.5 * (scores[positive][:, None] == scores[~positive][None, :])

    def value(weights: FloatArray) -> FloatArray:
        yes, no = weights[:, positive], weights[:, ~positive]
        return np.asarray(((yes @ above) * no).sum(axis=1) / (yes.sum(axis=1) * no.sum(axis=1)))

    return Resampled(unit, tuple(int(kind) for kind in positive), value)


def counted_f1(counts: FloatArray, unit: str) -> Resampled:
    """Return F1 over all units; `counts` [units, 3] hold what is in both, only predicted, only true."""

    def value(weights: FloatArray) -> FloatArray:
        both, predicted, true = (weights @ counts).T
        bottom = 2 * both + predicted + true
        return np.asarray(np.divide(2 * both, bottom, out=np.zeros_like(both), where=bottom > 0))

    return Resampled(unit, (0,) * len(counts), value)
