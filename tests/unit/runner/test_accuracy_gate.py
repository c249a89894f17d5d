"""The gate: passed, failed or undecided by the interval of what is kept; who may win."""

from __future__ import annotations

import pytest

from harness.judgement import flags
from harness.judgement.accuracy_gate import gate_flags, judge_gate, may_win
from harness.judgement.paired import Paired, compare_answers
from harness.records import Accuracy, Fidelity


def table(both: int, gained: int, lost: int, neither: int) -> Paired:
    here = [True] * (both + gained) + [False] * (lost + neither)
    there = [True] * both + [False] * gained + [True] * lost + [False] * neither
    return compare_answers(here, there)


def test_identical_answers_pass_with_the_bound_that_so_few_samples_leave() -> None:
    found = judge_gate(table(98, 0, 0, 15), 0.99)
    assert found.gate == "passed"
    assert found.sentence == (
        "Passed on these samples: none of the reference's 98 right answers was lost. Beyond them 96.23 % is sure. "
        "About 439 samples without a loss would show 99 %."
    )


def test_more_right_answers_and_none_lost_pass_too() -> None:
    assert judge_gate(table(98, 2, 0, 13), 0.99).gate == "passed"


def test_one_picture_lost_of_113_decides_nothing() -> None:
    found = judge_gate(table(97, 1, 1, 14), 0.99)
    assert found.gate == "undecided"
    assert "it keeps 100 % of the reference, 95.35 % to 104.9 %" in found.sentence
    # 3.8415 x (2 / 113) / (0.01 x 98 / 113)^2 = 904.
    assert found.samples_needed == 904 and "About 904 samples would decide." in found.sentence


def test_a_broken_one_fails_and_a_large_set_decides() -> None:
    assert judge_gate(table(40, 3, 58, 12), 0.99).gate == "failed"
    # 50,000 samples, 2 % disagreement, half a per cent lost: the interval is about +-0.16 %.
    assert judge_gate(table(37_300, 400, 588, 11_712), 0.99).gate == "passed"
    # As many disagree, two per cent are lost.
    assert judge_gate(table(37_000, 100, 858, 12_042), 0.99).gate == "failed"


def test_nothing_lost_on_a_handful_of_samples_is_no_pass() -> None:
    assert judge_gate(table(19, 0, 0, 1), 0.99).gate == "undecided"
    assert judge_gate(table(20, 0, 0, 1), 0.99).gate == "passed"


def test_without_a_reference_it_is_undecided_and_says_why() -> None:
    found = judge_gate(None, 0.99, "onnxruntime is not installed.")
    assert (found.gate, found.sentence) == ("undecided", "Undecided: onnxruntime is not installed.")


def test_the_target_is_that_of_mlperf_where_the_workload_names_none() -> None:
    undecided = table(960, 10, 18, 12)
    assert judge_gate(undecided, None) == judge_gate(undecided, 0.99)
    assert judge_gate(undecided, 0.9).gate == "passed"


def test_a_gate_that_is_not_passed_is_a_flag() -> None:
    assert gate_flags(Accuracy("top1", 0.9, gate="passed"), "Passed.") == ()
    assert gate_flags(None, None) == ()
    (failed,) = gate_flags(Accuracy("top1", 0.1, gate="failed"), "Failed: 1 %.")
    assert (failed.code, failed.message) == (flags.GATE_FAILED, "Failed: 1 %.")
    (undecided,) = gate_flags(Accuracy("top1", 0.1, gate="undecided"), None)
    assert undecided.code == flags.GATE_UNDECIDED


@pytest.mark.parametrize(
    ("accuracy", "fidelity", "codes", "wins", "words"),
    [
        (Accuracy("top1", 0.1, gate="failed"), None, (), False, "failed"),
        (Accuracy("top1", 0.9, gate="passed"), None, (flags.GATE_FAILED,), False, "failed"),
        (Accuracy("top1", 0.9, gate="passed"), None, (flags.OVERLAPPING_CALIBRATION,), False, "calibrated"),
        (None, Fidelity("r", cosine=0.2), (flags.LOW_FIDELITY,), False, "outputs"),
        (Accuracy("top1", 0.9, gate="passed"), Fidelity("r", cosine=0.2), (flags.LOW_FIDELITY,), True, None),
        (Accuracy("top1", 0.9, gate="undecided"), None, (), True, "undecided"),
        (None, Fidelity("r", cosine=1.0), (), True, None),
        (None, None, (), True, "Neither"),
    ],
)
def test_who_may_win(
    accuracy: Accuracy | None, fidelity: Fidelity | None, codes: tuple[str, ...], wins: bool, words: str | None
) -> None:
    found, reason = may_win(accuracy, fidelity, codes)
    assert found is wins
    assert (reason is None) if words is None else (reason is not None and words in reason)
