"""What a reader asks of what was measured: the highest rate within a limit, and how figures go with batch. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.judgement.figures import headline_metric, spread_of_metric
from harness.judgement.spread import spread_of

if TYPE_CHECKING:
    from db.queries import ResultRow


@dataclass(frozen=True)
class Sweep:
    """Measurements of one run that differ in one setting only. `points` have `at`, `value`, `low`, `high`, `sure`."""

    axis: str  # "batch", "streams", "threads"
    metric: str
    points: tuple[Mapping[str, Any], ...]


def highest_rate(curve: Mapping[str, Any], percentile: str, limit_ms: float) -> float | None:
    """The highest offered rate at which the percentile meets the limit and the system keeps up; None where none does.

    Where the percentile has an interval or a range, its upper end must meet it: what is undecided does not count. A rate
    above one that misses the limit does not count either, whatever luck it had.
    """
    best: float | None = None
    for point in sorted(curve.get("points") or (), key=lambda item: item["offered_per_s"]):
        spread = spread_of(point.get(percentile))
        worst = spread.high if spread.high is not None else spread.value
        if worst is None or worst > limit_ms or point.get("keeps_up") is False:
            break
        best = float(point["offered_per_s"])
    return best


def sweeps_of(row: ResultRow, rows: Sequence[ResultRow]) -> tuple[Sweep, ...]:
    """The sweeps that this measurement is part of: others of the run that differ in batch, streams or threads only."""
    settings: dict[str, Callable[[ResultRow], int | None]] = {
        "batch": lambda other: other.batch,
        "streams": lambda other: other.streams,
        "threads": lambda other: other.threads,
    }
    found = []
    for axis, read in settings.items():
        others = [name for name in settings if name != axis]
        alike = [
            other
            for other in rows
            if other.status == "ok"
            and read(other)
            and _place(other) == _place(row)
            and all(settings[name](other) == settings[name](row) for name in others)
        ]
        if len({read(other) for other in alike}) < 2:
            continue
        for metric in dict.fromkeys((headline_metric(row.scenario), "throughput")):
            points = [_point(other, metric, read(other)) for other in sorted(alike, key=lambda other: read(other) or 0)]
            found.append(Sweep(axis, metric, tuple(point for point in points if point["value"] is not None)))
    return tuple(sweep for sweep in found if len(sweep.points) > 1)


def _point(row: ResultRow, metric: str, at: int | None) -> dict[str, Any]:
    from dashboard.wording import bounds

    spread = spread_of_metric(row, metric)
    return {"at": at, "value": spread.value, "low": spread.low, "high": spread.high, "sure": bounds(spread) or "none"}


def _place(row: ResultRow) -> tuple[Any, ...]:
    return (
        row.workload, row.backend, row.target, row.scenario, sorted(row.scenario_parameters.items()),
        row.artifact_precision, row.requested_precision, row.compute_unit, row.artifact_format,
    )  # fmt: skip
