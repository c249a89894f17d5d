"""What a reader asks of rows of the store: the highest rate within a limit, and how figures go with batch. Pure.

The rules are those of `harness.judgement.rate_curve` and `harness.judgement.sweeps`; here rows become what these take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.judgement.rate_curve import HighestRate, highest_rate
from harness.judgement.sweeps import Sweep, sweeps_of
from harness.records import Case, Latency, Measurement, Quantile, RateCurve, RatePoint

if TYPE_CHECKING:
    from db.queries import ResultRow

QUANTILES = ("p50", "p90", "p95", "p99", "p99_9")


def highest(curve: Mapping[str, Any], percentile: str, limit_ms: float) -> HighestRate:
    """The highest offered rate of a stored curve at which the percentile keeps the limit, or why there is none."""
    points = tuple(
        RatePoint(**{**point, **{name: Quantile(**point[name]) for name in ("p50", "p90", "p99")}})
        for point in curve.get("points") or ()
    )
    return highest_rate(RateCurve(points, percentile, limit_ms), limit_ms, percentile)


def sweeps_with(row: ResultRow, rows: Sequence[ResultRow]) -> tuple[Sweep, ...]:
    """The sweeps of a run that this measurement is a part of."""
    found = sweeps_of(_measurements(rows))
    return tuple(sweep for sweep in found if any(point.measurement_id == row.measurement_id for point in sweep.points))


def _measurements(rows: Iterable[ResultRow]) -> list[Measurement]:
    """Rows as far as a sweep looks at them: the case, the throughput and the latency."""
    found = []
    for row in rows:
        case = Case(
            row.workload, row.dataset, row.source_weights, row.artifact_precision, row.requested_precision, row.backend,
            row.target, row.compute_unit, row.scenario, row.scenario_parameters, row.batch or 0, row.streams, row.threads,
            row.input_size, row.boundary,
        )  # fmt: skip
        quantiles = [Quantile(**((row.quantiles or {}).get(name) or {"value": None})) for name in QUANTILES]
        latency = Latency(row.latency_count, None, None, None, *quantiles) if row.p50_ms is not None else None
        found.append(
            Measurement(
                row.measurement_id,
                case,
                row.case_key,
                "ok" if row.status == "ok" else "failed",
                latency_ms=latency,
                throughput_per_s=row.throughput_per_s,
                throughput=Quantile(**row.throughput) if row.throughput else None,
            )
        )
    return found
