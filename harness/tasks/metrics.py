"""Accuracy from predictions and labels. Pure functions; every value lies in 0..1.

Deterministic: no random numbers but a frozen seed, ties broken by order, and no result depends on the order of a mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.errors import RecordError
from harness.tasks.base import Sample
from harness.tasks.resampled import Resampled, counted_f1, curve_area, matched, precision_area
from harness.tasks.sentence_embedding import unpack_embedding

# Metrics by task; the first is the one that `evaluate` gives, the others are its details.
METRICS: Mapping[str, tuple[str, ...]] = {
    "image_classification": ("top1",),
    "face_detection": ("ap50",),
    "sentence_embedding": ("linear_probe",),
    "voice_activity": ("auc",),
    "note_transcription": ("frame_f1",),
}

FloatArray = npt.NDArray[np.float64]


class Evaluation(NamedTuple):
    """A metric's name and value, and further metrics; and what a paired comparison on the same samples needs.

    `right` says for each sample whether it is answered rightly, where the metric is the share of those; else `resampled`
    gives the metric for weighted samples.
    """

    metric: str
    value: float
    details: dict[str, float]
    right: tuple[bool, ...] | None = None
    resampled: Resampled | None = None


def evaluate(task: str, predictions: Mapping[str, Any], samples: Sequence[Sample]) -> Evaluation:
    """Evaluate one prediction per sample, by the sample's id. Raises RecordError where predictions are missing."""
    if not samples:
        raise RecordError("There are no samples to evaluate.")
    missing = [sample.id for sample in samples if sample.id not in predictions]
    if missing:
        raise RecordError(f"{len(missing)} of {len(samples)} predictions are missing, the first for {missing[0]}.")
    if task not in _EVALUATORS:
        raise RecordError(f"The task {task} has no accuracy metric.")
    return _EVALUATORS[task]([predictions[sample.id] for sample in samples], samples)


def top_k(ranked: Sequence[Sequence[int]], labels: Sequence[int | Sequence[int]], k: int) -> float:
    """Return the share of samples with a right class among the first `k`."""
    return _share(among_first(ranked, labels, k))


def among_first(ranked: Sequence[Sequence[int]], labels: Sequence[int | Sequence[int]], k: int) -> tuple[bool, ...]:
    """Say for each sample whether a right class is among the first `k`. A label may allow several classes."""
    allowed = [{label} if isinstance(label, int) else set(label) for label in labels]
    return tuple(not right.isdisjoint(classes[:k]) for classes, right in zip(ranked, allowed, strict=True))


def area_under_curve(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Return the area under the ROC curve: the chance that a positive scores above a negative, ties counting half.

    From ranks (Mann and Whitney): (sum of the positives' mean ranks - p (p + 1) / 2) / (p n).
    """
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    positives, negatives = int(truth.sum()), int((~truth).sum())
    if positives == 0 or negatives == 0:
        raise RecordError("The area under the curve needs samples of both kinds.")
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2.0)[group]  # the mean rank of each group of equal scores, counted from one
    return float((ranks[truth].sum() - positives * (positives + 1) / 2.0) / (positives * negatives))


def average_precision(
    found: Sequence[Mapping[str, Any]], truth: Sequence[Sequence[Sequence[float]]], threshold: float = 0.5
) -> float:
    """Return the average precision of detections at one intersection over union.

    `found` holds per picture "boxes" [[x1, y1, x2, y2], ...] and "scores"; `truth` the boxes that are there. By falling
    score, over all pictures, each detection takes the best box that is still free, or is wrong. The value is the area under
    the precision-recall curve with precision made monotonic (PASCAL VOC 2010 and later).
    """
    total = sum(len(boxes) for boxes in truth)
    if total == 0:
        raise RecordError("Average precision needs at least one labelled box.")
    _, hits = matched(found, truth, threshold)
    right = np.cumsum(hits)
    precision = right / np.arange(1, len(hits) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(envelope[hits].sum() / total)


def linear_probe(features: FloatArray, labels: npt.NDArray[np.bool_], folds: int = 5) -> float:
    """Return the accuracy of a linear classifier on frozen features."""
    return _share(probed(features, labels, folds))


def probed(features: FloatArray, labels: npt.NDArray[np.bool_], folds: int = 5) -> tuple[bool, ...]:
    """Say for each sample whether a linear classifier on frozen features is right: how much of the labels they make plain.

    Ridge regression on -1 and +1 in closed form, w = (X'X + I)^-1 X'y with the means taken off. Seeded folds: each is
    tested once, by what was trained on the others.
    """
    order = np.random.RandomState(0).permutation(len(labels))
    target = np.where(labels, 1.0, -1.0)
    right = np.zeros(len(labels), dtype=bool)
    for test in np.array_split(order, folds):
        train = np.setdiff1d(order, test)
        if len(test) == 0 or len(set(labels[train].tolist())) < 2:
            raise RecordError("The linear probe needs more samples, and of both kinds.")
        mean, middle = features[train].mean(axis=0), target[train].mean()
        x, y = features[train] - mean, target[train] - middle
        weights = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ y)
        right[test] = ((features[test] - mean) @ weights + middle > 0) == labels[test]
    return tuple(bool(one) for one in right)


def frame_counts(predicted: Sequence[Sequence[Sequence[int]]], truth: Sequence[Sequence[Sequence[int]]]) -> FloatArray:
    """Return per window how many (frame, key) pairs are in both, only predicted, only true; runs are [key, first, end)."""
    pairs = [(_pairs(runs), _pairs(wanted)) for runs, wanted in zip(predicted, truth, strict=True)]
    return np.array([[len(a & b), len(a - b), len(b - a)] for a, b in pairs], dtype=np.float64).reshape(-1, 3)


def frame_f1(predicted: Sequence[Sequence[Sequence[int]]], truth: Sequence[Sequence[Sequence[int]]]) -> FloatArray:
    """Return F1, precision and recall over all (frame, key) pairs of all windows."""
    return _f1(frame_counts(predicted, truth))


def _f1(counts: FloatArray) -> FloatArray:
    both, only_predicted, only_truth = counts.sum(axis=0)
    if both + only_truth == 0:
        raise RecordError("The frame F1 needs at least one note that sounds.")
    precision = both / (both + only_predicted) if both + only_predicted else 0.0
    return np.array([2 * both / (2 * both + only_predicted + only_truth), precision, both / (both + only_truth)])


def _pairs(runs: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    return {(key, frame) for key, first, end in runs for frame in range(first, end)}


def _classification(predictions: Sequence[Any], samples: Sequence[Sample]) -> Evaluation:
    ranked, labels = [item["classes"] for item in predictions], [sample.label for sample in samples]
    right = among_first(ranked, labels, 1)
    return Evaluation("top1", _share(right), {"top5": top_k(ranked, labels, 5)}, right)


def _faces(predictions: Sequence[Any], samples: Sequence[Sample]) -> Evaluation:
    truth = [sample.label for sample in samples]
    value = average_precision(predictions, truth)
    totals = np.array([len(boxes) for boxes in truth], dtype=np.float64)
    return Evaluation("ap50", value, {}, resampled=precision_area(*matched(predictions, truth, 0.5), totals))


def _embedding(predictions: Sequence[Any], samples: Sequence[Sample]) -> Evaluation:
    features = np.array([unpack_embedding(item) for item in predictions], dtype=np.float64)
    labels = np.array([bool(sample.label) for sample in samples])
    majority = max(labels.mean(), 1.0 - labels.mean())
    right = probed(features, labels)
    return Evaluation("linear_probe", _share(right), {"majority_class": float(majority)}, right)


def _voice(predictions: Sequence[Any], samples: Sequence[Sample]) -> Evaluation:
    """Judge whole recordings: the mean of the frames' probabilities, since pauses inside speech are not labelled."""
    scores: dict[str, list[float]] = {}
    truth: dict[str, bool] = {}
    for item, sample in zip(predictions, samples, strict=True):
        clip = str(sample.data.get("clip", sample.id))
        scores.setdefault(clip, []).append(float(item["speech"]))
        truth[clip] = bool(sample.label)
    clips = sorted(scores)
    means = [sum(scores[clip]) / len(scores[clip]) for clip in clips]
    kinds = [truth[clip] for clip in clips]
    silenced = [mean < 0.5 for mean, kind in zip(means, kinds, strict=True) if not kind]
    frames = area_under_curve([item["speech"] for item in predictions], [bool(sample.label) for sample in samples])
    details = {"frame_auc": frames, "rejected": sum(silenced) / len(silenced)}
    value = area_under_curve(means, kinds)
    area = curve_area(np.array(means, dtype=np.float64), np.array(kinds, dtype=bool), "recordings")
    return Evaluation("auc", value, details, resampled=area)


def _notes(predictions: Sequence[Any], samples: Sequence[Sample]) -> Evaluation:
    counts = frame_counts([item["notes"] for item in predictions], [sample.label for sample in samples])
    f1, precision, recall = _f1(counts)
    details = {"precision": float(precision), "recall": float(recall)}
    return Evaluation("frame_f1", float(f1), details, resampled=counted_f1(counts, "windows"))


def _share(right: Sequence[bool]) -> float:
    return sum(right) / len(right)


_EVALUATORS = {
    "image_classification": _classification,
    "face_detection": _faces,
    "sentence_embedding": _embedding,
    "voice_activity": _voice,
    "note_transcription": _notes,
}
