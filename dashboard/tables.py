"""Rows as pandas tables for the pages: units in the headers, three significant figures. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dashboard.grids import Grid, placement_words
from dashboard.wording import bounds, plain, significant, spreadsheet_safe, when
from harness.judgement.comparison import parameters_of, scenario_title
from harness.judgement.figures import batch_of, headline_metric, source_name, spread_of_metric, value_of
from harness.judgement.flags import kind_of
from harness.judgement.systems import hardware_name, route_name
from harness.judgement.trust import trust_of_row
from harness.judgement.verdict import barred_words, gate_of

if TYPE_CHECKING:
    import pandas as pd

    from db.queries import ResultRow

SURE = "95 % interval or range"  # of the scenario's own figure
RESULT_COLUMNS = (
    "Run",
    "Workload",
    "Scenario",
    "Hardware",
    "Backend and target",
    "Status",
    "Trust",
    "p50 (ms)",
    "p90 (ms)",
    "p99 (ms)",
    "Throughput (samples/s)",
    SURE,
    "Trials",
    "Accuracy (%)",
    "Gate",
    "Energy (mJ/inference)",
    "Peak memory (MB)",
    "Batch",
    "Threads",
    "Precision asked",
    "Precision ran",
    "Placement",
    "Flags",
    "Doubts",
    "Reason",
    "Device",
    "Source",
    "Started (UTC)",
)


def run_address(run_id: str, measurement_id: str | None = None) -> str:
    """The address of the Run page, relative to the dashboard's own, wherever that is mounted."""
    from urllib.parse import urlencode

    query = {"run": run_id} | ({"measurement": measurement_id} if measurement_id else {})
    return f"run?{urlencode(query)}"


def results_table(rows: Sequence[ResultRow]) -> pd.DataFrame:
    """The Results page's table. Numbers stay numbers, so that a click on a header sorts them."""
    import pandas as pd

    return pd.DataFrame([_result(row) for row in rows], columns=list(RESULT_COLUMNS))


def results_csv(rows: Sequence[ResultRow]) -> str:
    """Every field of every row, at full precision, units in the names; nothing a spreadsheet would run as a formula."""
    from db.queries import ResultRow

    names = [item.name for item in fields(ResultRow)]
    return _csv(names, [[_csv_cell(getattr(row, name)) for name in names] for row in rows])


def grid_csv(grid: Grid) -> str:
    """A grid as CSV."""
    return _csv(grid.headers, [[spreadsheet_safe(cell) for cell in row] for row in grid.rows])


def grid_frame(grid: Grid) -> pd.DataFrame:
    """A grid for `st.table`, which reads markdown: every cell is escaped."""
    import pandas as pd

    return pd.DataFrame([[plain(cell) for cell in row] for row in grid.rows], columns=list(grid.headers))


def flatten(document: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """A nested document as dotted names and text."""
    flat: dict[str, str] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        elif isinstance(value, (list, tuple)):
            flat[f"{prefix}{name}"] = ", ".join(str(item) for item in value)
        else:
            flat[f"{prefix}{name}"] = "not known" if value is None else str(value)
    return flat


def scenario_words(row: ResultRow) -> str:
    """The scenario with its parameters, and the batch above one: "Offline, batch 8", "Multi stream, samples per query 8"."""
    parts = [f"{name.replace('_', ' ')} {value}" for name, value in parameters_of(row).items() if value is not None]
    parts += [f"batch {row.batch}"] if (row.batch or 1) > 1 else []
    return ", ".join([scenario_title(row.scenario), *parts])


def status_words(row: ResultRow) -> str:
    """The status; what failed its accuracy gate, or can win nothing for another reason, is no plain success."""
    return f"{row.status}, {barred_words(row)}" if barred_words(row) else row.status


def asked_precision(row: ResultRow) -> str:
    """What was asked for, and of which file where that is not the same: "vendor's default, file int8"."""
    asked = "vendor's default" if row.requested_precision == "default" else row.requested_precision
    return asked if row.artifact_precision in (asked, "unknown") else f"{asked}, file {row.artifact_precision}"


def _result(row: ResultRow) -> tuple[object, ...]:
    trust = trust_of_row(row)
    metric = headline_metric(row.scenario)
    spread = spread_of_metric(row, metric if value_of(row, metric) is not None else "throughput")
    return (
        run_address(row.run_id, row.measurement_id),
        row.workload_title or row.workload,
        scenario_words(row),
        hardware_name(row) if row.hardware_model else "not known",
        _route(row),
        status_words(row),
        trust.grade,
        _three(row.p50_ms),
        _three(row.p90_ms),
        _three(row.p99_ms),
        _three(row.throughput_per_s),
        bounds(spread),
        spread.trials or (row.sampling or {}).get("trials"),
        _three(row.accuracy_value, 100),
        gate_of(row) or "",
        _three(row.energy_j, 1000),
        _three(row.peak_rss_mb),
        batch_of(row),
        row.effective_threads if row.effective_threads is not None else row.threads,
        asked_precision(row),
        row.effective_precision or "not known",
        placement_words(row.effective),
        ", ".join(kind_of(code).title for code, _ in row.flags),
        " ".join(doubt.sentence for doubt in trust.doubts) if row.status == "ok" else "",
        row.reason or "",
        row.device,
        source_name(row),
        when(row.started_at).removesuffix(" UTC"),
    )


def _route(row: ResultRow) -> str:
    """Backend and requested target, and what really ran where that is something else."""
    name = route_name(row)
    differs = row.effective_target is not None and row.effective_target != row.target and row.target != "unknown"
    return f"{name} (ran on {row.effective_target})" if differs and "(ran on" not in name else name


def _three(value: float | None, factor: float = 1) -> float | None:
    return None if value is None else significant(value * factor)


def _csv(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(headers)
    writer.writerows(rows)
    return text.getvalue()


def _csv_cell(value: Any) -> str:
    import json

    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (dict, list, tuple)):
        return spreadsheet_safe(json.dumps(value, sort_keys=True))
    return spreadsheet_safe(value) if isinstance(value, str) else repr(value)
