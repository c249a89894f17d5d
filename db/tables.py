"""Result rows as a terminal table and as CSV. Pure: rows in, renderables and text out.

Text from devices and records is untrusted: control characters are taken out, and nothing is read as markup.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from db.answers import ResultRow

if TYPE_CHECKING:
    from rich.table import Table

STATUS_STYLES = {"ok": "green", "invalid": "red", "failed": "red", "unsupported": "yellow", "skipped": "dim"}
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run a cell that begins so


def results_table(rows: Sequence[ResultRow]) -> Table:
    """One line per measurement: what ran where, how fast, how right, how much energy, and whether to believe it."""
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold", row_styles=("", "dim") if len(rows) > 8 else ())
    for name, right in (
        ("Device", False),
        ("Hardware", False),
        ("Workload", False),
        ("Backend", False),
        ("Scenario", False),
        ("Precision", False),
        ("p50 ms", True),
        ("p99 ms", True),
        ("per s", True),
        ("Accuracy", True),
        ("J each", True),
        ("Status", False),
        ("Source", False),
    ):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    labels = device_labels(rows)
    for row in rows:
        table.add_row(
            Text(clean(labels[row.device_uuid])),
            Text(clean(_hardware(row))),
            Text(clean(row.workload)),
            Text(clean(f"{row.backend} {row.target}")),
            Text(clean(row.scenario)),
            Text(clean(_precision(row))),
            figure(row.p50_ms),
            figure(row.p99_ms),
            figure(row.throughput_per_s),
            "-" if row.accuracy_value is None else f"{row.accuracy_value * 100:.2f} %",
            ("~" if row.energy_quality == "estimated" else "") + figure(row.energy_j),
            Text(row.status, style=STATUS_STYLES.get(row.status, "")),
            Text(clean(row.source_name)),
        )
    return table


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
    name = row.hardware_model or row.device_model
    return f"{row.unit_count} x {name}" if row.unit_count and row.unit_count > 1 else name


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
