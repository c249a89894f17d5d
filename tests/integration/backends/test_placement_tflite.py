"""Who computed which share of a TensorFlow Lite file, by nodes and by time: a real file with a node that XNNPACK leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.base import LoadOptions
from backends.tflite import BACKEND
from backends.tflite.slicing import Part, cut, parts_of, time_shares

BATCH = {"x": (4, 64)}


def report_of(path: Path, samples: list, **options: Any) -> Any:
    session = BACKEND.load(path, "tflite", "cpu", LoadOptions(input_shapes=BATCH, **options))
    session.prepare(1)
    session.infer(0, [samples[0]])
    report = session.report()
    assert session.report() == report  # measured once
    session.close()
    return report


def test_a_node_that_the_delegate_leaves_has_its_share_of_nodes_and_of_time(
    tflite_file: Any, samples: list, tmp_path: Path
) -> None:
    report = report_of(tflite_file(0.7), samples, profile_dir=tmp_path / "profile")
    assert report.placement_nodes == {"xnnpack": 0.5, "builtin": 0.5}  # one dense layer, one remainder
    assert report.placement_time is not None
    assert set(report.placement_time) <= {"xnnpack", "builtin"}
    assert sum(report.placement_time.values()) == pytest.approx(1)
    assert "cutting the file" in report.placement_method


def test_a_file_that_one_computes_alone_has_all_the_time(tflite_file: Any, samples: list, tmp_path: Path) -> None:
    assert report_of(tflite_file(), samples, profile_dir=tmp_path).placement_time == {"xnnpack": 1.0}


def test_without_a_placement_pass_no_time_is_claimed(tflite_file: Any, samples: list) -> None:
    report = report_of(tflite_file(0.7), samples)
    assert report.placement_time is None
    assert report.placement_method == "nodes that the delegates replaced"


def test_a_cut_file_computes_what_the_whole_one_has_in_the_middle(
    tflite_file: Any, samples: list, weights: np.ndarray, tmp_path: Path
) -> None:
    copy = tmp_path / "cut.tflite"
    copy.write_bytes(cut(tflite_file(0.7), 1))
    session = BACKEND.load(copy, "tflite", "cpu", LoadOptions(input_shapes=BATCH))
    session.prepare(1)
    (answer,) = session.infer(0, [samples[0]])
    session.close()
    np.testing.assert_allclose(answer, samples[0] @ weights, rtol=1e-4, atol=1e-4)


def node(name: str, inputs: list[int], outputs: list[int]) -> dict[str, Any]:
    return {"op_name": name, "inputs": inputs, "outputs": outputs, "operand_types": []}


CHAIN = [node("CONV_2D", [0], [1]), node("RELU", [1], [2]), node("CUSTOM", [2], [3]), node("ADD", [3], [4])]


def test_parts_are_nodes_in_a_row_of_one_owner() -> None:
    nodes = [*CHAIN, node("DELEGATE", [0], [2]), node("DELEGATE", [3], [4])]
    assert parts_of(nodes, 4, ("delegate:x", "xnnpack")) == [
        Part("xnnpack", 2), Part("builtin", 3), Part("xnnpack", 4)
    ]  # fmt: skip
    assert parts_of(nodes, 5, ("delegate:x", "xnnpack"))[0] == Part("delegate:x", 2)


def test_what_cannot_be_cut_has_no_shares_and_no_error(tmp_path: Path) -> None:
    parts = [Part("xnnpack", 1), Part("builtin", 2)]
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes(b"\x10\x00\x00\x00TFL3" + bytes(40))
    assert time_shares(damaged, tmp_path, parts, lambda copy: None, []) is None
    many = [Part("xnnpack" if end % 2 else "builtin", end) for end in range(1, 60)]
    assert time_shares(damaged, tmp_path, many, lambda copy: None, []) is None


class Slow:
    """An interpreter whose every node takes as long as told."""

    def __init__(self, microseconds: float) -> None:
        self.microseconds = microseconds

    def get_input_details(self) -> list[dict[str, int]]:
        return []

    def invoke(self) -> None:
        import time

        end = time.perf_counter_ns() + self.microseconds * 1000
        while time.perf_counter_ns() < end:
            pass


def test_each_part_has_what_its_copy_takes_longer_than_the_one_before(tflite_file: Any, tmp_path: Path) -> None:
    lasting = iter([300.0, 400.0])  # the dense layer 300 us, the remainder 100 us
    shares = time_shares(
        tflite_file(0.7), tmp_path, [Part("xnnpack", 1), Part("builtin", 2)], lambda copy: Slow(next(lasting)), []
    )
    assert shares is not None
    assert shares["xnnpack"] == pytest.approx(0.75, abs=0.05)
