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

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

WIDE = 150  # characters that all columns need to be read with ease
STATUS_STYLES = {"ok": "green", "invalid": "red", "failed": "red", "unsupported": "yellow", "skipped": "dim"}
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
    columns = [column for column in _columns(labels) if wide or column.narrow]
    for column in columns:
        whole = column.title in {"Workload", "Scenario"}  # names that a reader searches for are not broken
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
        return lambda row: Text(clean(read(row)))

    def number(read: Callable[[ResultRow], float | None]) -> Callable[[ResultRow], Text]:
        return lambda row: Text(figure(read(row)))

    return (
        Column("Device", words(lambda row: labels[row.device_uuid]), narrow=False),
        Column("Hardware", words(_hardware)),
        Column("Workload", words(lambda row: row.workload)),
        Column("Backend", words(lambda row: f"{row.backend} {row.target}")),
        Column("Scenario", words(lambda row: row.scenario)),
        Column("Precision", words(_precision), narrow=False),
        Column("p50 ms", number(lambda row: row.p50_ms), number=True),
        Column("p99 ms", number(lambda row: row.p99_ms), number=True, narrow=False),
        Column("per s", number(lambda row: row.throughput_per_s), number=True),
        Column("Accuracy", words(_accuracy), number=True, narrow=False),
        Column("J each", words(_energy), number=True, narrow=False),
        Column("Status", lambda row: Text(row.status, style=STATUS_STYLES.get(row.status, ""))),
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


def clean(text: str) -> str:
    """`text` without control characters, which could steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _hardware(row: ResultRow) -> str:
    if row.hardware_model is None:
        return "-"  # asked of a processor that this device has not: its other hardware must not stand here
    return f"{row.unit_count} x {row.hardware_model}" if row.unit_count and row.unit_count > 1 else row.hardware_model


def _accuracy(row: ResultRow) -> str:
    return "-" if row.accuracy_value is None else f"{row.accuracy_value * 100:.2f} %"


def _energy(row: ResultRow) -> str:
    return ("~" if row.energy_quality == "estimated" else "") + figure(row.energy_j)


def _precision(row: ResultRow) -> str:
    ran = row.effective_precision
    return row.artifact_precision if ran in {None, row.artifact_precision} else f"{row.artifact_precision} as {ran}"


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
        text = clean(value)
        return f"'{text}" if text.startswith(FORMULA_STARTS) else text
    return value
