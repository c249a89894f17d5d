"""Whether the newest measurement of a case is worse than the one before. Pure, and the only place of this rule.

The rule is simple on purpose: two numbers and fixed thresholds. It knows no noise of its own; thresholds above the usual
run-to-run spread keep false alarms rare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["regression", "better", "same", "nothing_to_compare", "not_measured"]
# A shared machine's median moves by a few percent between runs; a tenth is what a person would call slower.
SLOWER_RATIO = 1.10
# One point of accuracy: issue and design take "at most 1 % lost" as what a user tolerates.
ACCURACY_DROP = 0.01


@dataclass(frozen=True)
class Thresholds:
    """From where on a change counts. `slower_ratio` is new time over old; `accuracy_drop` is a share of one."""

    slower_ratio: float = SLOWER_RATIO
    accuracy_drop: float = ACCURACY_DROP


@dataclass(frozen=True)
class Point:
    """What the rule looks at in one measurement. None means not measured."""

    measurement_id: str
    run_id: str
    status: str
    reason: str | None
    p50_ms: float | None
    throughput_per_s: float | None
    accuracy: float | None
    runtime: str | None = None  # name and version, to explain a change


@dataclass(frozen=True)
class Change:
    """The rule's answer for one case, with its reasons as sentences. Ratios above 1 mean slower."""

    verdict: Verdict
    reasons: tuple[str, ...]
    time_ratio: float | None = None
    accuracy_change: float | None = None


def judge(newest: Point, previous: Point | None, thresholds: Thresholds | None = None) -> Change:
    """Compare the newest measurement of a case with the last earlier one that was ok (None: there is none)."""
    limits = thresholds or Thresholds()
    if newest.status == "skipped":
        return Change("not_measured", (newest.reason or "It was skipped.",))
    if previous is None:
        return Change("nothing_to_compare", ("This device has no earlier valid measurement of this case.",))
    if newest.status != "ok":
        return Change(
            "regression", (f"It was ok before and is {newest.status} now: {newest.reason or 'no reason given'}",)
        )
    ratio, what = _time_ratio(newest, previous)
    reasons: list[str] = []
    better = False
    if ratio is not None and ratio > limits.slower_ratio:
        reasons.append(f"{what}, {(ratio - 1) * 100:.1f} % slower.")
    elif ratio is not None and ratio < 1 / limits.slower_ratio:
        better = True
    drop = None
    if newest.accuracy is not None and previous.accuracy is not None:
        drop = newest.accuracy - previous.accuracy
        if -drop > limits.accuracy_drop:
            points = f"accuracy {previous.accuracy * 100:.2f} -> {newest.accuracy * 100:.2f} %"
            reasons.append(f"{points}, {-drop * 100:.2f} points lost.")
    if reasons:
        if newest.runtime != previous.runtime:
            reasons.append(
                f"The runtime changed from {previous.runtime or 'unknown'} to {newest.runtime or 'unknown'}."
            )
        return Change("regression", tuple(reasons), ratio, drop)
    if ratio is None:
        return Change(
            "nothing_to_compare", ("The two have neither a median latency nor a throughput in common.",), None, drop
        )
    return Change("better" if better else "same", (f"{what}.",), ratio, drop)


def _time_ratio(newest: Point, previous: Point) -> tuple[float | None, str]:
    """New time over old: of the median latency where both have one, else of the time per sample behind the throughput."""
    if newest.p50_ms and previous.p50_ms:
        return newest.p50_ms / previous.p50_ms, f"median latency {previous.p50_ms:.4g} -> {newest.p50_ms:.4g} ms"
    if newest.throughput_per_s and previous.throughput_per_s:
        text = f"throughput {previous.throughput_per_s:.4g} -> {newest.throughput_per_s:.4g} per second"
        return previous.throughput_per_s / newest.throughput_per_s, text
    return None, ""
