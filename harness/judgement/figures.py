"""The figures of one measurement beside a baseline: value, unit, which statistic it is, ratio, and what differs.

Pure. Nothing here judges; a ratio is only given where both sides are the same statistic of the same thing, and where it is
not given the reason says why. Percentiles follow LoadGen (zero-based index floor(n p) of the sorted samples).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from harness.judgement.comparable import ComparableRow
from harness.judgement.first_answer import first_answer_spread
from harness.judgement.spread import Spread, spread_of

Better = Literal["lower", "higher"]

NOT_KNOWN = "not known"
NOT_GIVEN = "not given by the source"
NOT_MEASURED = "not measured"
PERCENTILES = ("p50", "p90", "p99")
THROUGHPUT_SCENARIOS = frozenset({"offline", "server"})
STATISTICS = {
    "early_stopping_p90_latency": "early-stopping p90",
    "early_stopping_p99_latency": "early-stopping p99",
    "samples_per_second": "samples per second",
    "scheduled_samples_per_second": "scheduled samples per second",
    "completed_samples_per_second": "completed samples per second",
}


@dataclass(frozen=True)
class Figure:
    """One number of a measurement. `ratio` is value over the baseline's value; None with `ratio_reason`."""

    metric: str  # "p50", "p90", "p99", "official", "first_answer", "throughput", "energy", "accuracy"
    statistic: str  # in words: "p90", "early-stopping p90"
    unit: str
    better: Better
    value: float | None
    reason: str | None = None  # why there is no value
    ratio: float | None = None
    ratio_reason: str | None = None


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same as in the baseline, or that is not known on one side."""

    field: str  # "weights", "precision", ...
    here: str
    baseline: str

    @property
    def known(self) -> bool:
        """Whether both sides are known, so that it is a difference and not a lack of knowledge."""
        return NOT_KNOWN not in (self.here, self.baseline)

    def __str__(self) -> str:
        return f"{self.field}: {self.here} (baseline: {self.baseline})"


def headline_metric(scenario: str) -> str:
    """The figure that a scenario is about: samples per second where load is offered in bulk, the time from the start of the
    process to the first answer of a cold start, else the median latency."""
    if scenario == "cold_start":
        return "first_answer"
    return "throughput" if scenario in THROUGHPUT_SCENARIOS else "p50"


def figures_of(row: ComparableRow, baseline: ComparableRow | None) -> tuple[Figure, ...]:
    """All figures of `row`, each beside the baseline's, in a fixed order."""
    found = [_percentile(row, baseline, name) for name in PERCENTILES]
    if row.official_value is not None and row.official_unit == "ms":
        found.append(_official_latency(row, baseline))
    if row.scenario == "cold_start":
        other = value_of(baseline, "first_answer") if baseline is not None else None
        value = value_of(row, "first_answer")
        reason = None if value is not None else "a part of the start was not timed"
        found.append(_figure("first_answer", "first answer", "ms", "lower", value, reason, other, baseline))
    return (*found, _throughput(row, baseline), _energy(row, baseline), _accuracy(row, baseline))


def differences_of(row: ComparableRow, baseline: ComparableRow) -> tuple[Difference, ...]:
    """What is not the same as in the baseline, besides hardware and backend, which name the system itself."""
    pairs: list[tuple[str, str | None, str | None]] = [
        ("weights", weights_of(row), weights_of(baseline)),
        ("model format", row.artifact_format, baseline.artifact_format),
        ("precision", _precision(row), _precision(baseline)),
        ("batch", _text(batch_of(row)), _text(batch_of(baseline))),
        ("threads", _text(row.effective_threads or row.threads), _text(baseline.effective_threads or baseline.threads)),
        ("streams", _text(row.streams), _text(baseline.streams)),
        ("runtime", runtime_of(row), runtime_of(baseline)),
        ("samples per query", _samples_per_query(row), _samples_per_query(baseline)),
        ("timed boundary", _boundary(row), _boundary(baseline)),
        ("source", source_name(row), source_name(baseline)),
        ("statistic", _statistic(row), _statistic(baseline)),
    ]
    return tuple(Difference(name, _known(a), _known(b)) for name, a, b in pairs if a != b)


def value_of(row: ComparableRow, metric: str) -> float | None:
    """The value of a metric in its unit (ms, samples/s, mJ, %); None where there is none."""
    if metric == "official":
        return row.official_value if row.official_unit == "ms" else None
    if metric == "first_answer":
        return first_answer_spread(row.cold_start_ms).value if row.scenario == "cold_start" else None
    if metric == "throughput":
        return _rate(row)
    if metric == "energy":
        return None if row.energy_j is None else row.energy_j * 1000
    if metric == "accuracy":
        return None if row.accuracy_value is None else row.accuracy_value * 100
    return _latency(row, metric)


def spread_of_metric(row: ComparableRow, metric: str) -> Spread:
    """The value with what its record says about its sureness; a declared value and energy have nothing beside them."""
    value = value_of(row, metric)
    if metric == "first_answer" and value is not None:
        return first_answer_spread(row.cold_start_ms)
    if metric in PERCENTILES:
        return spread_of((row.quantiles or {}).get(metric), value)
    if metric == "throughput" and value == row.throughput_per_s:
        return spread_of(row.throughput, value)
    return spread_of(None, value)


def _percentile(row: ComparableRow, baseline: ComparableRow | None, name: str) -> Figure:
    value = _latency(row, name)
    reason = None if value is not None else _latency_reason(row, name)
    other = _latency(baseline, name) if baseline is not None else None
    return _figure(name, name, "ms", "lower", value, reason, other, baseline)


def _official_latency(row: ComparableRow, baseline: ComparableRow | None) -> Figure:
    """The value that the source itself declares; over the baseline's declared one, if it is the same statistic."""
    statistic = statistic_name(row.official_metric)
    same = baseline is not None and baseline.official_metric == row.official_metric
    other = baseline.official_value if baseline is not None and same else None
    return _figure("official", statistic, "ms", "lower", row.official_value, None, other, baseline)


def _throughput(row: ComparableRow, baseline: ComparableRow | None) -> Figure:
    value = _rate(row)
    other = _rate(baseline) if baseline is not None else None
    reason = None if value is not None else NOT_GIVEN if _imported(row) else NOT_MEASURED
    return _figure("throughput", _rate_statistic(row), "samples/s", "higher", value, reason, other, baseline)


def _energy(row: ComparableRow, baseline: ComparableRow | None) -> Figure:
    value = None if row.energy_j is None else row.energy_j * 1000
    other = None if baseline is None or baseline.energy_j is None else baseline.energy_j * 1000
    reason = None if value is not None else row.energy_reason or NOT_MEASURED
    statistic = f"energy per inference, {row.energy_scope}" if row.energy_scope else "energy per inference"
    figure = _figure("energy", statistic, "mJ", "lower", value, reason, other, baseline)
    refusal = None
    if figure.ratio is not None and baseline is not None:
        if row.energy_scope is None or row.energy_scope != baseline.energy_scope:
            refusal = f"measured at {_known(row.energy_scope)}, the baseline at {_known(baseline.energy_scope)}"
        elif _seeded(row) or _seeded(baseline):
            refusal = "seeded weights change power"  # published: data values alone move a GPU's power by 40 % and more
    return replace(figure, ratio=None, ratio_reason=refusal) if refusal else figure


def _accuracy(row: ComparableRow, baseline: ComparableRow | None) -> Figure:
    value = None if row.accuracy_value is None else row.accuracy_value * 100
    reason = None if value is not None else row.accuracy_reason or NOT_MEASURED
    statistic = row.accuracy_metric or "accuracy"
    other = None
    if baseline is not None and baseline.accuracy_value is not None:
        other = baseline.accuracy_value * 100
    figure = _figure("accuracy", statistic, "%", "higher", value, reason, other, baseline)
    if figure.ratio is not None and baseline is not None:
        same = (row.accuracy_metric, row.dataset) == (baseline.accuracy_metric, baseline.dataset)
        if not same or row.dataset is None:
            return replace(figure, ratio=None, ratio_reason="other metric or other data")
    return figure


def _figure(
    metric: str,
    statistic: str,
    unit: str,
    better: Better,
    value: float | None,
    reason: str | None,
    other: float | None,
    baseline: ComparableRow | None,
) -> Figure:
    ratio, why = None, None
    if baseline is None:
        why = "the baseline has no result here"
    elif value is None:
        why = reason
    elif other is None:
        why = f"the baseline has no {statistic}"
    elif other <= 0:
        why = "the baseline's value is zero"
    else:
        ratio = value / other
    return Figure(metric, statistic, unit, better, value, reason, ratio, why)


def _latency(row: ComparableRow, name: str) -> float | None:
    return {"p50": row.p50_ms, "p90": row.p90_ms, "p99": row.p99_ms}[name]


def _latency_reason(row: ComparableRow, name: str) -> str:
    """Why a percentile is not there, in the record's own words where it has some ("too few samples: 30 of 100")."""
    told = ((row.quantiles or {}).get(name) or {}).get("reason")
    if told:
        return str(told)
    if row.scenario == "offline":
        return "offline queue times are no latency"
    return NOT_GIVEN if _imported(row) else NOT_MEASURED


def _rate(row: ComparableRow) -> float | None:
    """Samples per second: what the source declares where the scenario is about it, else what was counted."""
    declared = row.official_value if row.official_unit == "samples/s" else None
    return declared if declared is not None else row.throughput_per_s


def _rate_statistic(row: ComparableRow) -> str:
    if row.official_value is not None and row.official_unit == "samples/s":
        return statistic_name(row.official_metric)
    return "samples per second"


def source_name(row: ComparableRow) -> str:
    """Where a number comes from, as shown beside it."""
    return "measured here" if row.source_kind == "measured" else row.source_name


def batch_of(row: ComparableRow) -> int | None:
    """The batch size; None where the source does not tell it (a case can only write that as 0)."""
    return row.batch or None


def statistic_name(metric: str | None) -> str:
    """A declared metric's name in words."""
    return STATISTICS.get(metric or "", (metric or "declared value").replace("_", " "))


def _statistic(row: ComparableRow) -> str:
    """What the source declares as its result: not the same thing as our plain percentiles."""
    if row.scenario in THROUGHPUT_SCENARIOS:
        return _rate_statistic(row)
    return "plain percentiles" if row.official_metric is None else f"declares the {statistic_name(row.official_metric)}"


def weights_of(row: ComparableRow) -> str:
    """The workload in words, which name its weights."""
    return row.workload_title or row.workload


def _precision(row: ComparableRow) -> str | None:
    """Effective precision; where the runtime does not tell, it is not known, whatever was asked for."""
    return row.effective_precision


def runtime_of(row: ComparableRow) -> str | None:
    """The runtime's name and version, as far as they are known."""
    text = " ".join(part for part in (row.runtime, row.runtime_version) if part)
    return text or None


def _samples_per_query(row: ComparableRow) -> str | None:
    """Latency is per query, so its size counts; elsewhere a query's size changes no number that is shown."""
    if row.scenario == "single_stream":
        return "1"
    return _text(row.scenario_parameters.get("samples_per_query")) if row.scenario == "multi_stream" else None


def _boundary(row: ComparableRow) -> str:
    return row.boundary.replace("_", " ")


def _seeded(row: ComparableRow) -> bool:
    return "seeded" in row.workload


def _imported(row: ComparableRow) -> bool:
    return row.source_kind == "imported"


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _known(value: str | None) -> str:
    return NOT_KNOWN if value is None else value
