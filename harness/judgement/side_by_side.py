"""Two measurements side by side in one metric: the ratio with its interval, the verdict, and one sentence. Pure.

The interval of a ratio comes from the two sides' intervals over trials (`intervals.ratio_of_intervals`): from a.low / b.high
to a.high / b.low. Where both hold with 95 %, Bonferroni's inequality alone promises 90 %. For two equal medians more can be
said: the intervals only part company when one of them misses, and for either half of the line the chances of the two ways
add up to no more than one side's error, so that a difference is called in at most 5 % of cases. Simulation agrees
(tests/unit/judgement/test_self_comparison.py). No distribution is assumed.

A range of a few trials, or an interval inside one trial, gives no interval of a ratio, and that is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from harness.judgement.comparable import ComparableRow
from harness.judgement.contract import Names
from harness.judgement.figures import PERCENTILES, THROUGHPUT_SCENARIOS, spread_of_metric, statistic_name
from harness.judgement.spread import Spread
from harness.judgement.verdict import Verdict, judge_pair

if TYPE_CHECKING:
    from harness.judgement.intervals import Interval

Difference = Literal["shown", "not_shown", "unknown"]

CONFIDENCE = 0.95  # of each side's interval, and of the ratio's
METRICS = (*PERCENTILES, "official", "first_answer", "throughput", "energy", "accuracy")
UNITS = {"throughput": "samples/s", "energy": "mJ", "accuracy": "%"}  # of the others: ms


@dataclass(frozen=True)
class SideBySide:
    """One metric of two measurements. `ratio` is A over B of the values; None where it must not be formed."""

    metric: str
    unit: str
    a: Spread
    b: Spread
    verdict: Verdict
    ratio: Interval | None
    difference: Difference  # whether the interval leaves out 1; unknown without an interval
    same_unit: bool  # both were measured on one physical machine

    @property
    def gain(self) -> tuple[float, float | None, float | None] | None:
        """How many times as fast (as much, as accurate) A is, low and high: above 1 is more. For energy: A's over B's."""
        if self.ratio is None:
            return None
        value, low, high = self.ratio.value, self.ratio.low, self.ratio.high
        if self.unit != "ms":
            return value, low, high
        return 1 / value, None if high is None else 1 / high, None if low is None else 1 / low

    def as_document(self) -> dict[str, Any]:
        """Plain data at full precision."""
        ratio = self.ratio
        return {
            "metric": self.metric,
            "unit": self.unit,
            "a": vars(self.a),
            "b": vars(self.b),
            "ratio": None if ratio is None else ratio.value,
            "ratio_low": None if ratio is None else ratio.low,
            "ratio_high": None if ratio is None else ratio.high,
            "confidence": CONFIDENCE if ratio is not None and ratio.kind == "interval" else None,
            "ratio_reason": ratio.reason if ratio is not None else None,
            "difference": self.difference,
            "verdict": self.verdict.kind,
            "contract": list(self.verdict.contract),
            "caveats": list(self.verdict.caveats),
            "implementation": list(self.verdict.implementation),
        }


def side_by_side(a: ComparableRow, b: ComparableRow, metric: str, names: Names = ("A", "B")) -> SideBySide:
    """Judge one metric and form its ratio where both sides have a value; the verdict says what the ratio is worth."""
    verdict = judge_pair(a, b, metric, names)
    here, there = spread_of_metric(a, metric), spread_of_metric(b, metric)
    first, second = here.interval, there.interval
    ratio = None
    if first is not None and second is not None and first.value > 0 and second.value > 0:
        from harness.judgement.intervals import ratio_of_intervals  # numpy, which a command must not load to say --help

        ratio = ratio_of_intervals(first, second)
    return SideBySide(
        metric, UNITS.get(metric, "ms"), here, there, verdict, ratio, _difference(ratio), a.device_uuid == b.device_uuid
    )


def metrics_of(a: ComparableRow, b: ComparableRow) -> tuple[str, ...]:
    """The metrics that at least one of the two has, in a fixed order; the scenario's own figure first."""
    known = [metric for metric in METRICS if any(spread_of_metric(row, metric).value is not None for row in (a, b))]
    return tuple(sorted(known, key=lambda metric: metric != "throughput" and a.scenario in THROUGHPUT_SCENARIOS))


def sentence(compared: SideBySide, row: ComparableRow, names: Names = ("A", "B")) -> str:
    """The one sentence: ratio, interval, how many units, verdict. `row` is either side, for the statistic's name."""
    a, b = names
    verdict = compared.verdict
    where = _at(compared.metric, row)
    if verdict.kind == "not_comparable":
        return f"{a} and {b} are not comparable {where}: {verdict.contract[0]}"
    gain = compared.gain
    if gain is None:
        return f"{a} and {b} have no ratio {where}: {verdict.title}."
    value, low, high = gain
    sure = _sureness(compared, low, high)
    if compared.difference == "not_shown":
        return f"No difference is shown between {a} and {b} {where} (ratio {value:.3g}, {sure}): {verdict.title}."
    if compared.metric == "energy":
        said = f"{a} takes {value:.3g} times the energy of {b} for one inference"
    elif compared.metric == "accuracy":
        share = f"{value:.3g} times" if value != 1 else "exactly"
        said = f"{a} has {share} the accuracy of {b} ({row.accuracy_metric or 'accuracy'})"
    elif compared.metric == "throughput":
        said = f"{a} has {value:.3g} times the throughput of {b}"
    else:
        said = f"{a} is {value:.3g} times as fast as {b} {where}"
    return f"{said} ({sure}): {verdict.title}."


def _difference(ratio: Interval | None) -> Difference:
    if ratio is None or ratio.kind != "interval" or ratio.low is None or ratio.high is None:
        return "unknown"
    return "not_shown" if ratio.low <= 1 <= ratio.high else "shown"


def _sureness(compared: SideBySide, low: float | None, high: float | None) -> str:
    units = "both on the same unit" if compared.same_unit else "1 unit of each measured"
    if low is not None and high is not None:
        return f"{CONFIDENCE * 100:.0f} % interval {low:.3g} to {high:.3g}, {units}"
    return f"no interval, {_spread_words(compared)}, {units}"


def _spread_words(compared: SideBySide) -> str:
    """What is known instead of an interval."""
    kinds = (compared.a.kind, compared.b.kind)
    if set(kinds) <= {"range", "interval"}:
        parts = [f"{side.low:.3g} to {side.high:.3g} {compared.unit}" for side in (compared.a, compared.b)]
        return f"{'ranges' if kinds == ('range', 'range') else 'bounds'} {' and '.join(parts)}"
    return "one trial on a side" if "within_one" in kinds else "nothing is recorded about how sure a side is"


def _at(metric: str, row: ComparableRow) -> str:
    if metric == "official":
        return f"at the declared {statistic_name(row.official_metric)}"
    if metric == "first_answer":
        return "to its first answer"
    return f"at {metric}" if metric in PERCENTILES else f"in {metric}"
