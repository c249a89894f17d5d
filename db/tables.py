"""Result rows as a terminal table and as CSV. Pure: rows in, renderables and text out.

Text from devices and records is untrusted: control characters are taken out, and nothing is read as markup.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from db.answers import ResultRow
from harness.judgement.figures import THROUGHPUT_SCENARIOS
from harness.judgement.spread import Spread, spread_of
from harness.judgement.trust import trust_of_row
from harness.terminal import printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

WIDE = 170  # characters that all columns need to be read with ease
STATUS_STYLES = {"ok": "green", "invalid": "red", "failed": "red", "unsupported": "yellow", "skipped": "dim"}
GATE_STYLES = {"passed": "green", "failed": "bold red", "undecided": "yellow"}
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run a cell that begins so


def results_table(rows: Sequence[ResultRow], width: int) -> Table:
    """One line per measurement: what ran where, how fast, how right, how much energy, and whether to believe it.

    Below `WIDE` characters, columns that a narrow terminal could only fold into single letters are left out.
    """
    from rich.table import Table

    wide = width >= WIDE
    table = Table(
        header_style="bold", row_styles=("", "dim") if len(rows) > 8 else (), padding=(0, 1) if wide else (0, 0)
    )
    labels = device_labels(rows)
    columns = [
        column
        for column in _columns(labels)
        if column.narrow or (wide and any(column.cell(row).plain != "-" for row in rows))
    ]
    for column in columns:
        whole = column.title in {
            "Workload",
            "Scenario",
            "low–high (trials)",
        }  # names that a reader searches for are not broken
        table.add_column(column.title, justify="right" if column.number else "left", overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*(column.cell(row) for column in columns))
    return table


@dataclass(frozen=True)
class Column:
    """One column: its head, what stands in a cell, and whether a narrow terminal still shows it."""

    title: str
    cell: Callable[[ResultRow], Text]
    number: bool = False
    narrow: bool = True


def _columns(labels: dict[str, str]) -> tuple[Column, ...]:
    from rich.text import Text

    def words(read: Callable[[ResultRow], str]) -> Callable[[ResultRow], Text]:
        return lambda row: Text(printable(read(row)))

    def number(read: Callable[[ResultRow], float | None]) -> Callable[[ResultRow], Text]:
        return lambda row: Text(figure(read(row)))

    return (
        Column("Device", words(lambda row: labels[row.device_uuid]), narrow=False),
        Column("Hardware", words(_hardware)),
        Column("Workload", words(lambda row: row.workload)),
        Column("Backend", words(lambda row: f"{row.backend} {row.target}")),
        Column("Scenario", words(_scenario)),
        Column("Precision", words(_precision), narrow=False),
        Column("p50 ms", number(lambda row: row.p50_ms), number=True),
        Column("low–high (trials)", words(_sureness), number=True, narrow=False),
        Column("p99 ms", number(lambda row: row.p99_ms), number=True, narrow=False),
        Column("per s", number(lambda row: row.throughput_per_s), number=True),
        Column("Accuracy", words(_accuracy), number=True, narrow=False),
        Column("Gate", lambda row: Text(_gate(row), style=GATE_STYLES.get(_gate(row), "")), narrow=False),
        Column("J each", words(_energy), number=True, narrow=False),
        Column("Status", lambda row: Text(row.status, style=STATUS_STYLES.get(row.status, ""))),
        Column("Trust", words(lambda row: trust_of_row(row).grade)),
        Column("Source", words(lambda row: row.source_name), narrow=False),
    )


def device_labels(rows: Sequence[ResultRow]) -> dict[str, str]:
    """A name for each UUID; where two devices bear one name, the start of the UUID tells them apart."""
    names = {row.device_uuid: row.device for row in rows}
    bearers = Counter(names.values())
    return {uuid: name if bearers[name] == 1 else f"{name} ({uuid[:8]})" for uuid, name in names.items()}


def to_csv(rows: Sequence[ResultRow]) -> str:
    """All fields of all rows, full digits, one header line. Text that a spreadsheet would run begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [field.name for field in fields(ResultRow)]
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(getattr(row, name)) for name in names])
    return out.getvalue()


def figure(value: float | None) -> str:
    """A number with four significant digits and no exponent; "-" for what was not measured."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    from math import floor, log10

    decimals = max(0, 3 - floor(log10(abs(value))))
    return f"{value:.{decimals}f}"


def _hardware(row: ResultRow) -> str:
    if row.hardware_model is None:
        return "-"  # asked of a processor that this device has not: its other hardware must not stand here
    return f"{row.unit_count} x {row.hardware_model}" if row.unit_count and row.unit_count > 1 else row.hardware_model


def _accuracy(row: ResultRow) -> str:
    return "-" if row.accuracy_value is None else f"{row.accuracy_value * 100:.2f} %"


def _energy(row: ResultRow) -> str:
    return ("~" if row.energy_quality == "estimated" else "") + figure(row.energy_j)


def _precision(row: ResultRow) -> str:
    """The model file's, what was asked for where that is the vendor's choice, and what really computed."""
    asked = f"{row.artifact_precision} default" if row.requested_precision == "default" else row.artifact_precision
    ran = row.effective_precision
    if ran is None:
        return f"{asked}, ran unknown" if row.status == "ok" else asked
    return asked if ran == asked else f"{asked} as {ran}"


def _scenario(row: ResultRow) -> str:
    return f"{row.scenario} b{row.batch}" if (row.batch or 1) > 1 else row.scenario


def _sureness(row: ResultRow) -> str:
    """What stands beside the scenario's own figure, with the number of trials: a 95 % interval over them, or a range,
    which is no interval."""
    spread = headline_spread(row)
    count = spread.trials or (row.sampling or {}).get("trials")
    trials = f" ({count})" if count else ""
    if spread.low is None or spread.high is None:
        return trials.strip() or "-"
    bounds = f"{figure(spread.low)}–{figure(spread.high)}"
    return {"interval": "", "within_one": "inside "}.get(spread.kind, "range ") + bounds + trials


def headline_spread(row: ResultRow) -> Spread:
    """The median latency, or the throughput where a scenario is about that, with its interval or range."""
    rate = spread_of(row.throughput, row.throughput_per_s)
    if rate.value is not None and (row.scenario in THROUGHPUT_SCENARIOS or row.p50_ms is None):
        return rate
    return spread_of((row.quantiles or {}).get("p50"), row.p50_ms)


def _gate(row: ResultRow) -> str:
    return str((row.accuracy or {}).get("gate") or "-")


def _cell(value: Any) -> Any:
    import json
    from datetime import datetime

    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict | tuple | list):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    if isinstance(value, str):
        text = printable(value)
        return f"'{text}" if text.startswith(FORMULA_STARTS) else text
    return value
