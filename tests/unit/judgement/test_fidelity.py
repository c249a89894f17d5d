"""Fidelity of raw outputs: hand-computed figures, limits by precision, and outputs that cannot be compared."""

from __future__ import annotations

from math import cos, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judgement import flags
from harness.judgement.fidelity import compare_outputs, cosine, fidelity_flags, limit_of
from harness.records import Fidelity


def outputs(*rows: list[float], role: str = "logits") -> list[dict[str, np.ndarray]]:
    return [{role: np.array([row], dtype=np.float32)} for row in rows]


def test_hand_computed_figures() -> None:
    """[3, 4] and [4, 3]: cosine 24 / 25; largest difference 1, of a largest reference of 10."""
    found = compare_outputs(outputs([4, 3], [0, 10]), outputs([3, 4], [0, 10]), "ref", "logits")
    assert (found.samples, found.agreement, found.worst_absolute) == (2, 0.5, 1.0)
    assert found.cosine == pytest.approx(0.96) and found.worst_relative == pytest.approx(0.1)
    assert found.outputs["logits"]["cosine"] == pytest.approx(0.96)


def test_the_worst_output_speaks_for_all_and_each_is_kept() -> None:
    here = [{"a": np.array([1.0, 0.0]), "b": np.array([1.0, 1.0])}]
    there = [{"a": np.array([1.0, 0.0]), "b": np.array([1.0, 0.0])}]
    found = compare_outputs(here, there, "ref")
    assert found.cosine == pytest.approx(cos(pi / 4))
    assert (found.outputs["a"]["cosine"], found.agreement, found.worst_relative) == (1.0, None, 1.0)


@pytest.mark.parametrize(
    ("here", "words"),
    [
        (outputs([1, float("nan")]), "holds 1 values that are not finite"),
        (outputs([float("inf"), 1]), "holds 1 values that are not finite"),
        (outputs([1, 2, 3]), "has the shape (1, 3), the reference's (1, 2)"),
        (outputs([1, 2], role="other"), "is missing"),
        ([], "There are 0 outputs"),
    ],
)
def test_what_cannot_be_compared_says_why(here: list[dict[str, np.ndarray]], words: str) -> None:
    found = compare_outputs(here, outputs([1, 2]), "ref", "logits")
    assert (found.cosine, found.agreement, found.worst_absolute) == (None, None, None)
    assert words in (found.reason or "")
    assert [flag.code for flag in fidelity_flags(found, "fp32", "fp32")] == [flags.LOW_FIDELITY]


def test_a_broken_reference_is_named_as_such() -> None:
    found = compare_outputs(outputs([1, 2]), outputs([1, float("nan")]), "ref")
    assert "The reference's own output" in (found.reason or "")


def test_zero_vectors_and_extreme_values_have_a_cosine() -> None:
    zero, one = np.zeros(2), np.array([1.0, 0.0])
    assert (cosine(zero, zero), cosine(zero, one)) == (1.0, 0.0)
    assert cosine(one * 1e300, one * 1e-300) == pytest.approx(1.0)


@given(st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=8), st.floats(0.01, 100))
def test_outputs_are_true_to_themselves_and_the_cosine_knows_no_scale(values: list[float], factor: float) -> None:
    row = np.array(values)
    found = compare_outputs([{"y": row}], [{"y": row}], "ref")
    assert (found.worst_absolute, found.worst_relative) == (0.0, 0.0)
    assert found.cosine == pytest.approx(1.0)
    assert cosine(row, row * factor) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("artifact", "effective", "name"),
    [
        ("fp32", "fp32", "fp32"),
        ("fp32", None, "fp32"),
        ("fp32", "bf16", "bf16"),
        ("fp16", "fp32", "fp16"),
        ("fp16", "bf16", "bf16"),
        ("int8-float-ends", "fp32", "int8"),
        ("int4", "mixed", "int4"),
        ("fp32", "mixed", "mixed precision"),
    ],
)
def test_the_coarser_precision_sets_the_limit(artifact: str, effective: str | None, name: str) -> None:
    assert limit_of(artifact, effective)[0] == name


def test_a_flag_says_which_figure_went_beyond_which_limit() -> None:
    near = Fidelity("r", 8, 1.0, 0.9999999, 1e-5, 2e-6)
    assert fidelity_flags(near, "fp32", "fp32") == ()
    bf16 = Fidelity("r", 8, 1.0, 0.9964, 0.42, 0.04)
    assert fidelity_flags(bf16, "fp32", "bf16") == ()
    (flag,) = fidelity_flags(Fidelity("r", 8, 1.0, 0.9764, 1.2, 0.35), "fp32", "bf16")
    assert "0.9764; for bf16 at least 0.98 is expected" in flag.message
    (flag,) = fidelity_flags(bf16, "fp32", "fp32")
    assert flag.message == "An output differs from the fp32 reference's by 4.0e-02 of the largest; fp32 explains 1e-03."
    (flag,) = fidelity_flags(Fidelity("r", 8, 0.1, 0.31, 9.0, 0.9), "int8", "int8")
    assert (
        flag.message
        == "The smallest cosine to the fp32 reference's outputs is 0.3100; for int8 at least 0.85 is expected."
    )


def test_no_reference_is_no_flag() -> None:
    assert fidelity_flags(None, "fp32", "fp32") == ()
    assert fidelity_flags(Fidelity("r", reason="Not measured: no onnxruntime."), "fp32", "fp32") == ()
