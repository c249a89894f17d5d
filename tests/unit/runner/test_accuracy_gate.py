"""The gate: a share of the reference must be kept; on few samples a flip of one answer decides nothing."""

from __future__ import annotations

from harness.judgement.accuracy_gate import judge_gate


def test_what_keeps_its_share_passes() -> None:
    assert judge_gate(0.868, 0.868, 0.99, 113) == "passed"
    assert judge_gate(0.75, 0.7574, 0.99, 50_000) == "passed"  # 0.7574 x 0.99 = 0.749826


def test_what_clearly_does_not_fails() -> None:
    # 0.99 x 0.80 = 0.792; two standard errors of 0.80 on 10,000 samples are 0.008.
    assert judge_gate(0.78, 0.80, 0.99, 10_000) == "failed"


def test_a_shortfall_within_the_reference_s_own_error_is_undecided() -> None:
    # One of 113 pictures flipped: 97/113 against 98/113; two standard errors are 0.064.
    assert judge_gate(97 / 113, 98 / 113, 0.999, 113) == "undecided"


def test_without_reference_it_is_undecided_and_without_target_there_is_no_gate() -> None:
    assert judge_gate(0.8, None, 0.99, 100) == "undecided"
    assert judge_gate(0.8, 0.9, None, 100) is None
