"""Accuracy metrics against hand calculation, their definitions, and other ways to compute them."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RecordError
from harness.tasks.base import Sample
from harness.tasks.detections import intersection_over_union, suppress
from harness.tasks.metrics import METRICS, area_under_curve, average_precision, evaluate, frame_f1, linear_probe, top_k


def test_top_k_counts_a_class_among_the_first_k() -> None:
    ranked = [[5, 1, 2], [3, 5, 9], [7, 8, 4], [0, 1, 2]]
    assert top_k(ranked, [5, 5, 4, 9], 1) == 0.25
    assert top_k(ranked, [5, 5, 4, 9], 2) == 0.5
    assert top_k(ranked, [5, 5, 4, 9], 3) == 0.75


def test_top_k_accepts_any_of_several_right_classes() -> None:
    assert top_k([[30], [31], [29]], [[30, 31, 32], [30, 31, 32], [30, 31, 32]], 1) == pytest.approx(2 / 3)


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=40).filter(
        lambda pairs: len({kind for _, kind in pairs}) == 2
    )
)
def test_area_under_curve_is_the_chance_that_a_positive_ranks_higher(pairs: list[tuple[int, bool]]) -> None:
    """The definition, in O(n^2): ties count half."""
    up = [score for score, positive in pairs if positive]
    down = [score for score, positive in pairs if not positive]
    wins = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in up for b in down)
    found = area_under_curve([float(score) for score, _ in pairs], [kind for _, kind in pairs])
    assert found == pytest.approx(wins / (len(up) * len(down)), abs=1e-12)


def test_area_under_curve_needs_both_kinds() -> None:
    with pytest.raises(RecordError, match="both kinds"):
        area_under_curve([0.1, 0.2], [True, True])


def test_average_precision_by_hand() -> None:
    """Three faces; by score: right, wrong, right. Precision 1, 1/2, 2/3; recall 1/3, 1/3, 2/3: area (1 + 2/3) / 3."""
    found = [
        {"boxes": [[0, 0, 10, 10], [50, 50, 60, 60]], "scores": [0.9, 0.8]},
        {"boxes": [[0, 0, 10, 9]], "scores": [0.7]},
    ]
    truth = [[[0, 0, 10, 10], [20, 20, 30, 30]], [[0, 0, 10, 10]]]
    assert average_precision(found, truth) == pytest.approx((1 + 2 / 3) / 3)


def test_a_second_box_on_the_same_face_is_wrong() -> None:
    found = [{"boxes": [[0, 0, 10, 10], [0, 0, 10, 10], [20, 0, 30, 10]], "scores": [0.9, 0.8, 0.7]}]
    truth = [[[0, 0, 10, 10], [20, 0, 30, 10]]]
    assert average_precision(found, truth) == pytest.approx((1 + 2 / 3) / 2)


def test_overlap_below_the_threshold_is_no_hit() -> None:
    """Half of the box is shared: intersection 50, union 150, so a third."""
    found = [{"boxes": [[5, 0, 15, 10]], "scores": [0.9]}]
    assert average_precision(found, [[[0, 0, 10, 10]]], threshold=0.5) == 0.0
    assert average_precision(found, [[[0, 0, 10, 10]]], threshold=0.33) == 1.0


def test_average_precision_without_any_detection_is_zero() -> None:
    assert average_precision([{"boxes": [], "scores": []}], [[[0, 0, 1, 1]]]) == 0.0


corner = st.integers(0, 12)
box = st.tuples(corner, corner, corner, corner)


@given(box, box)
def test_overlap_is_what_counting_cells_gives(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    def cells(edges: tuple[int, ...]) -> set[tuple[int, int]]:
        return {(x, y) for x in range(edges[0], edges[2]) for y in range(edges[1], edges[3])}

    first, second = cells(a), cells(b)
    expected = len(first & second) / len(first | second) if first or second else 0.0
    found = intersection_over_union(np.array([a], float), np.array([b], float))
    if a[2] >= a[0] and a[3] >= a[1] and b[2] >= b[0] and b[3] >= b[1]:
        assert found[0, 0] == pytest.approx(expected)


@given(st.lists(st.tuples(corner, corner, st.integers(1, 8), st.integers(1, 8), st.integers(0, 5)), max_size=12))
def test_suppression_drops_exactly_what_overlaps_a_better_kept_box(rows: list[tuple[int, ...]]) -> None:
    boxes = np.array([[x, y, x + w, y + h] for x, y, w, h, _ in rows], float).reshape(-1, 4)
    scores = np.array([row[4] for row in rows], float)
    kept = suppress(boxes, scores, 0.3).tolist()
    overlap = intersection_over_union(boxes, boxes)
    better = sorted(range(len(rows)), key=lambda i: (-scores[i], i))
    expected: list[int] = []
    for i in better:
        if all(overlap[i, j] < 0.3 for j in expected):
            expected.append(i)
    assert kept == expected


def test_linear_probe_agrees_with_least_squares() -> None:
    """Ridge regression is least squares with one more row per weight; numpy's solver knows nothing of our formula."""
    random = np.random.RandomState(3)
    labels = random.rand(60) > 0.4
    features = random.randn(60, 5) + labels[:, None] * 0.8
    order = np.random.RandomState(0).permutation(60)
    right = 0
    for fold in range(5):
        test = order[fold * 12 : (fold + 1) * 12]
        train = np.array([i for i in range(60) if i not in set(test.tolist())])
        x, y = features[train], np.where(labels[train], 1.0, -1.0)
        rows = np.vstack([x - x.mean(axis=0), np.eye(5)])
        weights = np.linalg.lstsq(rows, np.concatenate([y - y.mean(), np.zeros(5)]), rcond=None)[0]
        right += int(((((features[test] - x.mean(axis=0)) @ weights + y.mean()) > 0) == labels[test]).sum())
    assert linear_probe(features, labels) == pytest.approx(right / 60)


def test_linear_probe_finds_what_is_there_and_nothing_else() -> None:
    random = np.random.RandomState(1)
    labels = random.rand(400) > 0.5
    told = np.where(labels, 1.0, -1.0)[:, None] * np.ones((1, 8)) + random.randn(400, 8) * 0.1
    assert linear_probe(told, labels) == 1.0
    assert 0.4 < linear_probe(random.randn(400, 8), labels) < 0.6


def test_frame_f1_by_hand() -> None:
    """Predicted frames 2..5 of key 3, true 4..7: two shared, two too many, two missed: precision, recall and F1 one half."""
    f1, precision, recall = frame_f1([[[3, 2, 6]]], [[[3, 4, 8]]])
    assert (f1, precision, recall) == (0.5, 0.5, 0.5)


def test_frame_f1_of_silence_is_zero_and_of_no_music_undefined() -> None:
    assert frame_f1([[]], [[[3, 4, 8]]])[0] == 0.0
    with pytest.raises(RecordError, match="at least one note"):
        frame_f1([[[3, 4, 8]]], [[]])


def test_evaluate_refuses_missing_predictions() -> None:
    samples = [Sample("a", label=1), Sample("b", label=2)]
    with pytest.raises(RecordError, match="1 of 2 predictions are missing, the first for b"):
        evaluate("image_classification", {"a": {"classes": [1]}}, samples)


def test_evaluate_refuses_a_task_without_metric() -> None:
    with pytest.raises(RecordError, match="random_inputs has no accuracy metric"):
        evaluate("random_inputs", {"a": {}}, [Sample("a")])


def test_evaluate_classification() -> None:
    samples = [Sample("a", label=1), Sample("b", label=[2, 3])]
    predictions = {"b": {"classes": [3, 9], "scores": [1, 0]}, "a": {"classes": [7, 1], "scores": [1, 0]}}
    assert evaluate("image_classification", predictions, samples)[:4] == (
        "top1",
        0.5,
        {"top5": 1.0},
        (False, True),
    )


def test_evaluate_voice_judges_recordings_by_their_mean() -> None:
    samples = [Sample(f"{c}{i}", label=c == "s", data={"clip": c}) for c in "sm" for i in range(2)]
    predictions = {"s0": {"speech": 0.9}, "s1": {"speech": 0.2}, "m0": {"speech": 0.5}, "m1": {"speech": 0.1}}
    metric, value, details, *_ = evaluate("voice_activity", predictions, samples)
    assert (metric, value) == ("auc", 1.0)  # means 0.55 and 0.3
    assert details == {"frame_auc": 0.75, "rejected": 1.0}  # frames: 0.9 > both, 0.2 > one: 3 of 4 pairs


def test_evaluate_embeddings_unpacks_them() -> None:
    random = np.random.RandomState(0)
    samples = [Sample(str(i), label=i % 2 == 0) for i in range(40)]
    rows = {s.id: random.randn(6).astype("<f4") * 0.1 + (1 if s.label else -1) for s in samples}
    predictions = {key: {"embedding": base64.b64encode(row.tobytes()).decode()} for key, row in rows.items()}
    assert evaluate("sentence_embedding", predictions, samples)[:3] == ("linear_probe", 1.0, {"majority_class": 0.5})


def test_every_metric_is_given_by_its_task() -> None:
    face = {"boxes": [[0, 0, 1, 1]], "scores": [1.0]}
    assert (
        evaluate("face_detection", {"a": face}, [Sample("a", label=[[0, 0, 1, 1]])]).metric in METRICS["face_detection"]
    )
    notes = evaluate("note_transcription", {"a": {"notes": [[1, 0, 4]]}}, [Sample("a", label=[[1, 0, 4]])])
    assert (notes.metric, notes.value) == ("frame_f1", 1.0) and notes.metric in METRICS["note_transcription"]


def test_a_weighted_metric_is_that_of_samples_that_are_there_so_often() -> None:
    """What a bootstrap draws, done by hand: weights 0, 1 and 2 against leaving out and doubling."""
    random = np.random.RandomState(3)
    truth = [[[0, 0, 10, 10], [20, 20, 30, 30]] for _ in range(6)]
    found = [
        {"boxes": [[0, 0, 10, 10 + n], [21, 20, 30, 30], [50, 50, 60, 60]], "scores": random.rand(3).tolist()}
        for n in range(6)
    ]
    counts = [[0, 1, 2, 1, 2, 0], [1, 1, 1, 1, 1, 1]]
    chosen = [[n for n in range(6) for _ in range(row[n])] for row in counts]

    faces = evaluate(
        "face_detection", {str(n): found[n] for n in range(6)}, [Sample(str(n), label=truth[n]) for n in range(6)]
    )
    assert faces.resampled is not None
    expected = [average_precision([found[n] for n in row], [truth[n] for n in row]) for row in chosen]
    assert faces.resampled.value(np.array(counts, dtype=float)).tolist() == pytest.approx(expected)

    runs, sounding = [[[n, 0, 5]] for n in range(6)], [[[n, 2, 6 + n]] for n in range(6)]
    notes = evaluate(
        "note_transcription",
        {str(n): {"notes": runs[n]} for n in range(6)},
        [Sample(str(n), label=sounding[n]) for n in range(6)],
    )
    assert notes.resampled is not None
    expected = [float(frame_f1([runs[n] for n in row], [sounding[n] for n in row])[0]) for row in chosen]
    assert notes.resampled.value(np.array(counts, dtype=float)).tolist() == pytest.approx(expected)

    scores, kinds = [0.1, 0.4, 0.35, 0.8, 0.35, 0.9], [False, True, False, True, True, False]
    voices = evaluate(
        "voice_activity",
        {str(n): {"speech": scores[n]} for n in range(6)},
        [Sample(str(n), label=kinds[n], data={"clip": str(n)}) for n in range(6)],
    )
    assert voices.resampled is not None and voices.resampled.groups == (0, 1, 0, 1, 1, 0)
    expected = [area_under_curve([scores[n] for n in row], [kinds[n] for n in row]) for row in chosen]
    assert voices.resampled.value(np.array(counts, dtype=float)).tolist() == pytest.approx(expected)


def test_equal_scores_are_ranked_by_their_order_whatever_the_numbers_are_called() -> None:
    """A tie must not be decided in favour of the labelled class, nor by how a runtime happened to order it."""
    from harness.tasks import create

    task = create("image_classification", {})
    logits = np.array([[0.5, 2.0, 2.0, 2.0, 0.1, 0.0]], dtype=np.float32)
    assert task.postprocess({"logits": logits})[0]["classes"] == [1, 2, 3, 0, 4]
    # As whole numbers: -128 has no positive counterpart in int8, so a ranking of negated values would put it first.
    quantised = np.array([[-128, 127, 0, 1, 2, 3]], dtype=np.int8)
    assert task.postprocess({"logits": quantised})[0]["classes"] == [1, 5, 4, 3, 2]
