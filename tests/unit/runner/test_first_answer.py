"""The time to a first answer is the sum of all its parts, or none."""

from __future__ import annotations

import pytest

from harness.judgement.first_answer import first_answer_ms
from harness.runner.scenario_figures import figures
from harness.runner.target_figures import target_figure
from harness.runner.trial_process import Outcome

PARTS = {"process": 80.0, "import": 100.0, "load": 30.0, "compile": 10.0, "first_inference": 5.0}


def start(**parts: float | None) -> Outcome:
    return Outcome("ok", None, {"cold_start_ms": {**PARTS, **parts}})


@pytest.mark.parametrize("missing", ["process", "import", "load", "first_inference"])
def test_a_sum_without_one_of_its_parts_is_not_given(missing: str) -> None:
    """It would be too small, and look like a fast start."""
    assert first_answer_ms({**PARTS, missing: None}) is None
    assert target_figure("cold_start", start(**{missing: None})) is None
    made = figures("cold_start", {}, [start(), start(**{missing: None})]).cold_start_ms
    assert made is not None
    assert "first_answer" not in made.intervals
    assert getattr(made, "import_" if missing == "import" else missing) == PARTS[missing]


def test_a_compile_that_is_part_of_the_load_is_not_missing() -> None:
    assert first_answer_ms(PARTS) == 225.0
    assert first_answer_ms({**PARTS, "compile": None}) == 215.0
    made = figures("cold_start", {}, [start(), start(load=50.0)]).cold_start_ms
    assert made is not None
    assert made.intervals["first_answer"]["value"] == 235.0


def test_a_trial_that_timed_no_part_has_no_start_of_zero() -> None:
    made = figures("cold_start", {}, [Outcome("ok")]).cold_start_ms
    assert made is not None
    assert made.intervals == {}
