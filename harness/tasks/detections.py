"""Boxes: their overlap, and the suppression of all but the best of those that overlap. Vectorised over numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Boxes = npt.NDArray[Any]  # [n, 4]: x1, y1, x2, y2


def intersection_over_union(first: Boxes, second: Boxes) -> Boxes:
    """Return [n, m]: the shared area of each pair of boxes as a share of their joint area, 0 for empty boxes."""
    corner = np.maximum(first[:, None, :2], second[None, :, :2])
    opposite = np.minimum(first[:, None, 2:], second[None, :, 2:])
    shared = np.clip(opposite - corner, 0, None).prod(axis=2)
    joint = _areas(first)[:, None] + _areas(second)[None, :] - shared
    return np.asarray(np.divide(shared, joint, out=np.zeros_like(shared), where=joint > 0))


def suppress(boxes: Boxes, scores: npt.NDArray[Any], overlap: float) -> npt.NDArray[np.intp]:
    """Return the indices of the boxes to keep, best first: none overlaps a better kept one by `overlap` or more."""
    order = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while order.size:
        best, rest = order[0], order[1:]
        kept.append(int(best))
        shared = intersection_over_union(boxes[best : best + 1], boxes[rest])[0]
        order = rest[shared < overlap]
    return np.array(kept, dtype=np.intp)


def _areas(boxes: Boxes) -> npt.NDArray[Any]:
    return np.asarray(np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(axis=1))
