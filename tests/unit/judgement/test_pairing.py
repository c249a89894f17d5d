"""Which measurement stands beside which, and what stands alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from db.queries import ResultRow
from harness.judgement.pairing import paired

MakeRow = Callable[..., ResultRow]


def rows_of(make_row: MakeRow, side: str, *changes: dict[str, Any]) -> list[ResultRow]:
    return [make_row(measurement_id=f"{side}{place}", **change) for place, change in enumerate(changes)]


def ids(make_row: MakeRow, a: list[dict[str, Any]], b: list[dict[str, Any]]) -> list[tuple[str, str]]:
    found = paired(rows_of(make_row, "a", *a), rows_of(make_row, "b", *b))
    return [(pair.a.measurement_id, pair.b.measurement_id) for pair in found.pairs]


def test_the_same_batch_and_precision_stand_together_whatever_their_order(make_row: MakeRow) -> None:
    a = [{"batch": 1}, {"batch": 8}, {"batch": 1, "artifact_precision": "int8"}]
    b = [{"batch": 1, "artifact_precision": "int8"}, {"batch": 8}, {"batch": 1}]
    assert ids(make_row, a, b) == [("a0", "b2"), ("a1", "b1"), ("a2", "b0")]


def test_each_is_used_once_and_the_rest_is_named(make_row: MakeRow) -> None:
    found = paired(
        rows_of(make_row, "a", {"batch": 1}, {"batch": 8}),
        rows_of(make_row, "b", {"batch": 8}, {"scenario": "offline"}),
    )
    assert [(pair.a.measurement_id, pair.b.measurement_id) for pair in found.pairs] == [("a1", "b0")]
    assert [row.measurement_id for row in found.only_a] == ["a0"]
    assert [row.measurement_id for row in found.only_b] == ["b1"]


def test_other_scenarios_and_families_are_never_paired_by_a_selection(make_row: MakeRow) -> None:
    a = [{"scenario": "offline"}, {"family": "yolo", "workload": "yolox"}]
    b = [{"scenario": "sustained"}, {"family": "bert", "workload": "minilm"}]
    assert ids(make_row, a, b) == []


def test_two_single_measurements_are_always_put_beside_each_other(make_row: MakeRow) -> None:
    assert ids(make_row, [{"scenario": "offline"}], [{"family": "bert"}]) == [("a0", "b0")]


def test_what_failed_on_both_sides_says_nothing(make_row: MakeRow) -> None:
    bad = {"status": "failed", "reason": "x"}
    assert ids(make_row, [bad, {}], [bad, {}]) == [("a1", "b1")]
    assert ids(make_row, [{}, {"batch": 8}], [bad, {"batch": 8}]) == [("a0", "b0"), ("a1", "b1")]


def test_a_measurement_is_not_put_beside_itself(make_row: MakeRow) -> None:
    rows = rows_of(make_row, "x", {}, {"backend": "openvino"})
    found = paired(rows, rows)
    assert {(pair.a.measurement_id, pair.b.measurement_id) for pair in found.pairs} == {("x0", "x1"), ("x1", "x0")}
