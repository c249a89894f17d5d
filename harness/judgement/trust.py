"""How far to trust one measurement: the doubts first, then a grade that follows from them. Pure.

Every doubt is a sentence with a weight: 0 tells, 1 slight, 2 serious, 3 grave (`harness.judgement.flags`). The grade is
their sum, by one rule that everybody can apply:

| grade | when |
| --- | --- |
| A | nothing speaks against it (sum 0) |
| B | slight doubts (sum 1 or 2) |
| C | sum 3 or 4 |
| D | sum 5 or 6 |
| E | sum 7 or more |
| F | it is not `ok`, or it failed its accuracy gate: no number to use |

The grade says how well a number is founded, not how good the hardware is. It is made when it is read and never stored, so
that a better rule holds for the measurements of last year too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from harness.judgement import flags
from harness.judgement.comparable import ComparableRow
from harness.judgement.figures import THROUGHPUT_SCENARIOS
from harness.judgement.spread import Spread, spread_of
from harness.records import Environment, Measurement, Source

Grade = Literal["A", "B", "C", "D", "E", "F"]

STEPS: tuple[tuple[int, Grade], ...] = ((0, "A"), (2, "B"), (4, "C"), (6, "D"))  # the largest sum of each grade
FATAL = 100  # a weight that no sum of other doubts reaches: F
ONE_TRIAL = "It stands on one trial: nothing shows how it differs from one fresh process to the next."
NO_ENVIRONMENT = Environment({}, {}).digest


@dataclass(frozen=True)
class Doubt:
    """One reason to trust a measurement less. `code` is a flag's, or one of this module's own."""

    code: str
    weight: int
    sentence: str


@dataclass(frozen=True)
class Trust:
    """The grade and the doubts behind it, the gravest first."""

    grade: Grade
    doubts: tuple[Doubt, ...]

    def as_document(self) -> dict[str, Any]:
        """For `--json`."""
        return {"grade": self.grade, "doubts": [asdict(doubt) for doubt in self.doubts]}


@dataclass(frozen=True)
class Evidence:
    """What the rule looks at, whether it comes from a record or from a row of the store."""

    status: str
    reason: str | None
    imported: bool
    flags: tuple[tuple[str, str], ...]
    raw_samples: bool  # each trial's own samples are kept
    spread: Spread  # of the scenario's own figure
    limits_met_over: int | None  # trials behind a server's rate, which lies between two that were offered; else None
    cold: bool  # its numbers are medians over starts, without a window
    gate: str | None
    verified: bool  # accuracy or fidelity was measured
    precision: str | None
    batch: int | None
    runtime_version: str | None
    environment_known: bool


def trust_of_row(row: ComparableRow) -> Trust:
    """Grade a row of the store."""
    accuracy, fidelity = row.accuracy or {}, row.fidelity or {}
    spread = spread_of((row.quantiles or {}).get("p50"), row.p50_ms)
    if row.scenario in THROUGHPUT_SCENARIOS or spread.value is None:
        rate = spread_of(row.throughput, row.throughput_per_s)
        spread = rate if rate.value is not None else spread
    evidence = Evidence(
        row.status, row.reason, row.source_kind == "imported", row.flags, row.trials > 0, spread,
        _bracketed(row.scenario, row.throughput, (row.sampling or {}).get("trials")),
        row.scenario == "cold_start", accuracy.get("gate"),
        row.accuracy_value is not None or _compared(fidelity), row.effective_precision, row.batch or None,
        row.runtime_version, row.environment_digest != NO_ENVIRONMENT,
    )  # fmt: skip
    return _graded(_doubts(evidence))


def trust_of_measurement(measurement: Measurement, source: Source, environment: Environment | None = None) -> Trust:
    """Grade a measurement of a record, before it is in any store."""
    latency, accuracy, effective = measurement.latency_ms, measurement.accuracy, measurement.effective
    spread = spread_of(asdict(latency.p50) if latency is not None else None)
    quantile = asdict(measurement.throughput) if measurement.throughput is not None else None
    if measurement.case.scenario in THROUGHPUT_SCENARIOS or spread.value is None:
        rate = spread_of(quantile, measurement.throughput_per_s)
        spread = rate if rate.value is not None else spread
    verified = (accuracy is not None and accuracy.value is not None) or (
        measurement.fidelity is not None and _compared(asdict(measurement.fidelity))
    )
    evidence = Evidence(
        measurement.status, measurement.reason, source.kind == "imported",
        tuple((flag.code, flag.message) for flag in measurement.flags), bool(measurement.trials), spread,
        _bracketed(
            measurement.case.scenario, quantile, measurement.sampling.trials if measurement.sampling is not None else None
        ),
        measurement.case.scenario == "cold_start", accuracy.gate if accuracy is not None else None, verified,
        effective.precision if effective is not None else None, measurement.case.batch or None,
        effective.runtime_version if effective is not None else None,
        environment is None or environment.digest != NO_ENVIRONMENT,
    )  # fmt: skip
    return _graded(_doubts(evidence))


def grade_of(doubts: Sequence[Doubt]) -> Grade:
    """The grade of the table above."""
    total = sum(doubt.weight for doubt in doubts)
    if total >= FATAL:
        return "F"
    return next((grade for most, grade in STEPS if total <= most), "E")


def _graded(doubts: Sequence[Doubt]) -> Trust:
    ordered = sorted(doubts, key=lambda doubt: -doubt.weight)
    return Trust(grade_of(ordered), tuple(ordered))


def _doubts(evidence: Evidence) -> list[Doubt]:
    """Every doubt once: a flag that the record carries stands for what could be derived again."""
    found: dict[str, Doubt] = {}

    def add(code: str, weight: int, sentence: str) -> None:
        found.setdefault(code, Doubt(code, weight, sentence))

    if evidence.status != "ok":
        add("not_ok", FATAL, f"It is {evidence.status}: {evidence.reason or 'no reason is recorded'}")
        return list(found.values())
    if evidence.gate == "failed":
        add(flags.GATE_FAILED, FATAL, "It failed the accuracy gate: it lost more accuracy than the workload allows.")
    for code, message in evidence.flags:
        add(code, FATAL if code == flags.GATE_FAILED else flags.kind_of(code).weight, message)
    if evidence.gate == "undecided":
        add(
            flags.GATE_UNDECIDED,
            flags.kind_of(flags.GATE_UNDECIDED).weight,
            flags.kind_of(flags.GATE_UNDECIDED).meaning,
        )
    if evidence.imported:
        add(flags.IMPORTED, flags.kind_of(flags.IMPORTED).weight, flags.kind_of(flags.IMPORTED).meaning)
    if not evidence.raw_samples:
        add("no_raw_samples", 1, "Only a summary is kept: how the samples were spread over trials cannot be looked at.")
    elif evidence.limits_met_over is not None:
        if evidence.limits_met_over == 1:
            add("one_trial", 2, ONE_TRIAL)
    elif not evidence.cold:
        _add_spread(evidence.spread, add)
    if not evidence.verified:
        add(
            "not_verified",
            1,
            "Neither accuracy nor fidelity was measured, so nothing shows that its answers are right.",
        )
    if evidence.precision is None and flags.PRECISION_FROM_NAME not in found:
        add(flags.PRECISION_UNKNOWN, 1, flags.kind_of(flags.PRECISION_UNKNOWN).meaning)
    if evidence.batch is None:
        add(flags.BATCH_UNKNOWN, 1, flags.kind_of(flags.BATCH_UNKNOWN).meaning)
    if evidence.runtime_version is None and not evidence.imported:
        add("runtime_unknown", 1, "The version of the runtime is not recorded.")
    if not evidence.environment_known and not evidence.imported:
        add("environment_unknown", 1, "Nothing is recorded about the machine and its configuration.")
    return list(found.values())


def _add_spread(spread: Spread, add: Callable[[str, int, str], None]) -> None:
    """What stands beside the scenario's own figure: an interval over fresh processes, or less."""
    if spread.value is None:
        return
    if spread.kind == "range":
        add("range_only", 1, f"{spread.trials} trials give a range and no interval; an interval takes six.")
    elif spread.kind == "within_one":
        add("one_trial", 2, ONE_TRIAL)
    elif spread.kind == "none":
        add("no_spread", 2, "Nothing is recorded about how it differs from one fresh process to the next.")


def _bracketed(scenario: str, throughput: Mapping[str, Any] | None, trials: int | None) -> int | None:
    """Over how many trials a server's rate meets its limit; 0 where that is not told, None for any other figure.

    Such a rate needs no interval beside it: it met the limit by the upper bound of its percentile, over all trials, and the
    truth lies between it and the lowest rate that missed.
    """
    if scenario != "server" or throughput is None or None in (throughput.get("value"), throughput.get("low")):
        return None
    return trials or 0


def _compared(fidelity: Mapping[str, Any]) -> bool:
    """Whether outputs were held against the reference's."""
    return any(fidelity.get(name) is not None for name in ("agreement", "cosine", "worst_absolute"))
