"""The harness's own cost as a share of a latency."""

from __future__ import annotations

import pytest

from harness.judgement.self_cost import share_of
from harness.records import SelfCost
from harness.runner.self_cost import self_cost_jobs, self_cost_of
from harness.runner.trial_process import Outcome

RUN = "00000000-0000-4000-8000-000000000001"


def outcome(recorded_us: float, wall_us: float) -> Outcome:
    return Outcome("ok", None, {"recorded_us": recorded_us, "wall_us": wall_us, "queries": 10})


def test_the_cost_is_the_median_over_the_processes_that_ended_well() -> None:
    cost = self_cost_of([outcome(0.06, 0.2), outcome(0.09, 0.6), Outcome("failed", "It died."), outcome(0.07, 0.3)])
    assert (cost.recorded_us, cost.wall_us, cost.trials, cost.queries) == (0.07, 0.3, 3, 30)


def test_without_any_the_reason_of_the_first_is_the_answer() -> None:
    cost = self_cost_of([Outcome("failed", "It died."), Outcome("failed", "It died too.")])
    assert (cost.recorded_us, cost.reason) == (None, "It died.")


def test_each_process_has_its_own_name_which_follows_from_the_run() -> None:
    names = [job.trial_id for job in self_cost_jobs(RUN, 3)]
    assert len(set(names)) == 3
    assert names == [job.trial_id for job in self_cost_jobs(RUN, 3)]


def test_the_share_of_a_latency() -> None:
    # 0.06 us and 0.3 us of a median of 0.06 ms.
    share = share_of(SelfCost(0.06, 0.3, 3), 0.06)
    assert share is not None
    assert share.recorded == pytest.approx(0.001)
    assert share.wall == pytest.approx(0.005)


@pytest.mark.parametrize("p50_ms", [None, 0.0])
def test_no_share_without_a_latency_or_a_cost(p50_ms: float | None) -> None:
    assert share_of(SelfCost(0.06, 0.3, 3), p50_ms) is None
    assert share_of(None, 1.0) is None
    assert share_of(SelfCost(None, None, reason="It died."), 1.0) is None
