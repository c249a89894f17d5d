"""The harness's own cost per query on this machine, stored with each run, so that it can be shown beside every latency."""

from __future__ import annotations

import statistics
import uuid
from collections.abc import Sequence

from harness.records import SelfCost
from harness.runner.trial_process import Outcome
from harness.worker.job import Job

KIND = "self"  # of the job; such a trial belongs to the run, not to a measurement
TRIALS = 3
TIMEOUT_S = 60.0


def self_cost_jobs(run_id: str, trials: int = TRIALS) -> tuple[Job, ...]:
    """Return one job for each fresh process. Each takes about a third of a second, most of it its start."""
    return tuple(
        Job(
            trial_id=str(uuid.uuid5(uuid.UUID(run_id), f"{KIND}-{number}")),
            kind=KIND,
            backend="null",
            out_dir="",
            timeout_s=TIMEOUT_S,
            scenario="single_stream",
        )
        for number in range(trials)
    )


def self_cost_of(outcomes: Sequence[Outcome]) -> SelfCost:
    """Return the medians over the processes that ended well; None with the first reason where none did."""
    good = [outcome.document for outcome in outcomes if outcome.status == "ok"]
    if not good:
        reasons = [outcome.reason for outcome in outcomes if outcome.reason]
        return SelfCost(None, None, reason=reasons[0] if reasons else "Not measured: the run was interrupted before.")
    return SelfCost(
        recorded_us=statistics.median(float(document["recorded_us"]) for document in good),
        wall_us=statistics.median(float(document["wall_us"]) for document in good),
        trials=len(good),
        queries=sum(int(document["queries"]) for document in good),
    )
