"""Whether the newest measurement of a case is worse than the one before. Pure, and the only place of this rule.

A change counts where it is larger than the threshold *and* larger than what the two measurements say about their own
sureness: their intervals over trials (or, below six trials, their ranges) must not overlap. Where they do, and where one of
the two was disturbed from outside or did not settle (`flags.UNSETTLED`), the answer is `undecided`: a busy machine raises no
alarm, and what is undecided is named, so that it can be measured again. Measurements without any interval (older records)
are judged by the threshold alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.judgement import flags
from harness.judgement.spread import Spread

Verdict = Literal["regression", "better", "same", "undecided", "nothing_to_compare", "not_measured"]
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
    p50: Spread | None = None  # what stands beside the two figures
    throughput: Spread | None = None
    flags: tuple[str, ...] = ()  # codes

    @property
    def unsettled(self) -> tuple[str, ...]:
        """What disturbed it, in words; empty where nothing is known to have."""
        return tuple(flags.kind_of(code).title for code in self.flags if code in flags.UNSETTLED)


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
    slower = ratio is not None and ratio > limits.slower_ratio
    faster = ratio is not None and ratio < 1 / limits.slower_ratio
    doubt = _doubt(newest, previous) if slower or faster else None
    reasons: list[str] = []
    if slower and doubt is None and ratio is not None:
        reasons.append(f"{what}, {(ratio - 1) * 100:.1f} % slower.")
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
    if ratio is None and previous.throughput_per_s and not previous.p50_ms:
        lost = f"throughput {previous.throughput_per_s:.4g} per second before, none within the limit now"
        return Change("undecided", (f"{lost}.",), None, drop)
    if ratio is None:
        return Change(
            "nothing_to_compare", ("The two have neither a median latency nor a throughput in common.",), None, drop
        )
    if doubt is not None:
        return Change("undecided", (f"{what}, {doubt}.",), ratio, drop)
    return Change("better" if faster else "same", (f"{what}.",), ratio, drop)


def _doubt(newest: Point, previous: Point) -> str | None:
    """Why a change beyond the threshold is none to be called one; None where nothing speaks against it."""
    for point, name in ((newest, "the newest measurement"), (previous, "the earlier one")):
        if point.unsettled:
            return f"but {name} was disturbed or did not settle ({', '.join(point.unsettled)})"
    new, old = (point.p50 if newest.p50_ms and previous.p50_ms else point.throughput for point in (newest, previous))
    if new is None or old is None or None in (new.low, new.high, old.low, old.high):
        return None
    if "within_one" in (new.kind, old.kind):
        return None  # it speaks of one process and bounds nothing between two runs
    assert new.low is not None and new.high is not None and old.low is not None and old.high is not None
    if new.low > old.high or old.low > new.high:
        return None
    kind = "95 % intervals" if (new.kind, old.kind) == ("interval", "interval") else "trials"
    return f"but the {kind} of the two overlap ({old.low:.4g} to {old.high:.4g} and {new.low:.4g} to {new.high:.4g})"


def _time_ratio(newest: Point, previous: Point) -> tuple[float | None, str]:
    """New time over old: of the median latency where both have one, else of the time per sample behind the throughput."""
    if newest.p50_ms and previous.p50_ms:
        return newest.p50_ms / previous.p50_ms, f"median latency {previous.p50_ms:.4g} -> {newest.p50_ms:.4g} ms"
    if newest.throughput_per_s and previous.throughput_per_s:
        text = f"throughput {previous.throughput_per_s:.4g} -> {newest.throughput_per_s:.4g} per second"
        return previous.throughput_per_s / newest.throughput_per_s, text
    return None, ""
