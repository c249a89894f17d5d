"""`weigh compare`: the Compare page's tables in the terminal, and as CSV, Markdown and JSON. No Streamlit, no pandas.

Two names alone are put beside each other and judged (`dashboard.pair_command`).
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dashboard.grids import Grid, gaps, section_grid
from dashboard.wording import markdown_cell, spreadsheet_safe
from harness.errors import NotDone, StoreError, UsageError
from harness.judgement.comparison import Comparison, Section, compare, scenario_title
from harness.judgement.figures import batch_of
from harness.judgement.systems import System, default_baseline, matching, one_matching, systems_of
from harness.judgement.trust import trust_of_row
from harness.judgement.verdict import gate_of
from harness.terminal import printable

if TYPE_CHECKING:
    from db.queries import Facets, ResultRow

WIDE = 130  # characters that a row needs with model and source in it
SYSTEM_WIDTH = 16
LIMIT = 100_000


def run(
    names: Sequence[str],
    family: str | None,
    workload: str | None,
    baseline: str | None,
    store: str | None,
    exports: Mapping[str, Path | None],
) -> None:
    """Read, compare, print or export. Two names alone are judged beside each other; else everything stands in tables.

    Raises UsageError, StoreError, NotDone.
    """
    if len(names) == 2 and baseline is None and not exports.get("csv") and not exports.get("markdown"):
        _run_pair(names[0], names[1], family, workload, store, exports.get("json"))
        return
    rows = _rows(store, family, workload)
    comparison = choose(rows, names, baseline)
    writers = {"csv": comparison_csv, "markdown": comparison_markdown, "json": comparison_json}
    wanted = {kind: place for kind, place in exports.items() if place is not None}
    for kind, place in wanted.items():
        _write(writers[kind](comparison), place)
    if not wanted:
        _print(comparison)


def _run_pair(a: str, b: str, family: str | None, workload: str | None, store: str | None, place: Path | None) -> None:
    """Judge A beside B, print or write it; NotDone (exit status 1) where nothing of it may be compared."""
    from contextlib import closing

    from dashboard import pair_command
    from db.queries import Filter, facets, results
    from db.store import open_store
    from harness.folders import default_store

    with closing(open_store(store or default_store(), create=False)) as opened:
        known = facets(opened.engine)
        _check_names(known, family, workload)
        wanted = Filter(
            families=(family,) if family else (),
            workloads=(workload,) if workload else (),
            newest_only=True,
            limit=LIMIT,
        )
        rows = results(opened.engine, wanted)
        document = pair_command.run(a, b, rows, opened)
    if place is None:
        from rich.text import Text

        from harness.terminal import output_console

        console = output_console()
        for line in pair_command.pair_lines(document):
            console.print(Text(printable(line)), soft_wrap=True)
    else:
        _write(pair_command.as_json(document | _tables(rows, a, b)), place)
    if not pair_command.comparable(document):
        raise NotDone(
            f"Nothing of {a!r} and {b!r} may be compared; the reasons are above.",
            "`weigh results` lists what each has.",
        )


def _tables(rows: Sequence[ResultRow], a: str, b: str) -> dict[str, Any]:
    """The many-systems document of the same two, where words named systems of one family."""
    if len({row.family for row in rows}) != 1 or not all(matching(systems_of(rows), name) for name in (a, b)):
        return {}
    return comparison_document(choose(rows, (a, b), None))


def choose(rows: Sequence[ResultRow], names: Sequence[str], baseline: str | None) -> Comparison:
    """The comparison that the command line asks for: the first name is the baseline where none is given."""
    systems = systems_of(rows)
    chosen: list[System] = []
    for name in names:
        found = matching(systems, name)
        if not found:
            one_matching(systems, name)  # says what there is
        chosen += [system for system in found if system not in chosen]
    if baseline is not None:
        base: System | None = one_matching(systems, baseline)
    else:
        base = chosen[0] if chosen else default_baseline(rows)
    if base is None:
        raise NotDone("There is nothing to compare.", "Measure with `weigh run quick`, or `weigh import reference`.")
    return compare(rows, base.id, [system.id for system in chosen] or None)


def comparison_csv(comparison: Comparison) -> str:
    """One line for each system and scenario, with the differences and gaps in full."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    document = comparison_document(comparison)
    names = (
        "scenario", "system", "hardware", "device", "backend", "target", "model", "source", "gap",
        "metric", "statistic", "value", "unit", "ratio_to_baseline", "reason", "differences", "run_id",
    )  # fmt: skip
    writer.writerow(names)
    for entry in document["entries"]:
        shared = [entry[name] for name in names[:9]]
        differences = "; ".join(
            f"{item['field']}: {item['here']} (baseline: {item['baseline']})" for item in entry["differences"]
        )
        for figure in entry["figures"] or [{}]:
            reason = figure.get("reason") or figure.get("ratio_reason")
            numbers = [figure.get(name) for name in ("metric", "statistic", "value", "unit", "ratio")]
            cells = [*shared, *numbers, reason, differences, entry["run_id"]]
            writer.writerow(
                ["" if cell is None else spreadsheet_safe(cell) if isinstance(cell, str) else cell for cell in cells]
            )
    return text.getvalue()


def comparison_markdown(comparison: Comparison) -> str:
    """A heading and a table for each scenario, then the gaps with their reasons."""
    lines = [f"# {markdown_cell(comparison.family)}", "", f"Baseline: {markdown_cell(comparison.baseline.label)}.", ""]
    for section in comparison.sections:
        grid = section_grid(section, comparison.baseline).without_empty()
        lines += [f"## {scenario_title(section.scenario)}", "", *_markdown_table(grid), ""]
        lines += [f"- {markdown_cell(system.label)}: {markdown_cell(reason)}" for system, reason in gaps(section)]
        lines += [""] if gaps(section) else []
    return "\n".join(lines).rstrip() + "\n"


def comparison_json(comparison: Comparison) -> str:
    """The comparison at full precision."""
    return json.dumps(comparison_document(comparison), indent=2, ensure_ascii=False) + "\n"


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain data: entries with figures (value, unit, statistic, ratio) and differences."""
    entries = []
    for section in comparison.sections:
        for entry in section.entries:
            system, row = entry.system, entry.row
            entries.append(
                {
                    "scenario": section.scenario,
                    "system": system.label,
                    "system_id": system.id,
                    "hardware": system.hardware,
                    "device": system.device,
                    "backend": system.backend,
                    "target": system.target,
                    "model": system.title,
                    "source": system.source,
                    "batch": batch_of(row) if row is not None else None,
                    "gap": entry.gap,
                    "note": entry.note,
                    "figures": [vars(figure) for figure in entry.figures],
                    "beside_baseline": [item.as_document() for item in entry.beside],
                    "gate": gate_of(row) if row is not None else None,
                    "trust": trust_of_row(row).as_document() if row is not None else None,
                    "differences": [vars(difference) for difference in entry.differences],
                    "run_id": row.run_id if row is not None else None,
                    "measurement_id": row.measurement_id if row is not None else None,
                }
            )
    return {"family": comparison.family, "baseline": comparison.baseline.id, "entries": entries}


def _rows(store: str | None, family: str | None, workload: str | None) -> list[ResultRow]:
    from db.queries import Filter, facets, results
    from db.store import open_store
    from harness.folders import default_store

    opened = open_store(store or default_store(), create=False)
    try:
        known = facets(opened.engine)
        _check_names(known, family, workload)
        if workload is not None:
            wanted = Filter(workloads=(workload,), newest_only=True, limit=LIMIT)
        else:
            if family is None and len(known.families) > 1:
                choices = ", ".join(known.families)
                raise UsageError("The store has several workload families.", f"Choose with --family one of: {choices}.")
            wanted = Filter(families=(family or known.families[0],), newest_only=True, limit=LIMIT)
        return results(opened.engine, wanted)
    finally:
        opened.close()


def _check_names(known: Facets, family: str | None, workload: str | None) -> None:
    if not known.families:
        raise NotDone("The store holds no results.", "Measure with `weigh run quick`, or `weigh import reference`.")
    for what, name, names in (("family", family, known.families), ("workload", workload, known.workloads)):
        if name is not None and name not in names:
            raise UsageError(f"The store has no {what} {name!r}.", f"It has: {', '.join(names)}.")


def _print(comparison: Comparison) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from harness.terminal import output_console

    console = output_console()
    aside = () if console.width >= WIDE else ("Model", "p90 (ms)", "Declared (ms)", "Source")
    for section in comparison.sections:
        # What differs goes beneath, in words: a terminal has no room for it beside the numbers.
        grid = section_grid(section, comparison.baseline).without(("Ran as", "Differs in"))
        unknown = grid.holding_only("not measured", "not given") if not _only_gaps(section) else ()
        provenance = _aside(grid, aside)
        grid = grid.without((*unknown, *aside))
        title = f"{comparison.family}: {scenario_title(section.scenario)}"
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for header in grid.headers:
            numeric = header in grid.numeric
            room = SYSTEM_WIDTH if header == grid.headers[0] else None
            table.add_column(Text(header), justify="right" if numeric else "left", overflow="fold", min_width=room)
        for cells in grid.rows:
            table.add_row(*(Text(cell) for cell in cells))
        console.print(table)
        for line in (*provenance, *_notes(section, comparison.baseline)):
            console.print(Text(f"  {line}", style="dim"), soft_wrap=True)
        console.print()
    sentence = "÷ baseline: the value over the baseline's; below 1 is faster for latency, above 1 for throughput."
    console.print(Text(sentence), soft_wrap=True)


def _aside(grid: Grid, headers: Sequence[str]) -> list[str]:
    """One line a system with these columns, for a terminal that has no room for them in the table."""
    places = [grid.headers.index(header) for header in headers if header in grid.headers]
    lines = []
    for cells in grid.rows:
        words = [f"{grid.headers[place]}: {cells[place]}" for place in places if cells[place]]
        if words:
            lines.append(f"{cells[0]}. {'; '.join(words)}")
    return lines


def _only_gaps(section: Section) -> bool:
    return all(entry.gap is not None for entry in section.entries)


def _notes(section: Section, baseline: System) -> list[str]:
    """Gaps with their reasons, and what differs from the baseline, in words."""
    lines = [f"{system.label}: {reason}" for system, reason in gaps(section)]
    for entry in section.entries:
        if entry.system.id != baseline.id and entry.differences:
            lines.append(f"{entry.system.label} differs in {'; '.join(str(item) for item in entry.differences)}")
        if entry.note:
            lines.append(f"{entry.system.label}: {entry.note}")
    return lines


def _markdown_table(grid: Grid) -> list[str]:
    rule = ["---:" if header in grid.numeric else "---" for header in grid.headers]
    rows = [
        [markdown_cell(header) for header in grid.headers],
        rule,
        *([markdown_cell(cell) for cell in row] for row in grid.rows),
    ]
    return ["| " + " | ".join(row) + " |" for row in rows]


def _write(text: str, place: Path) -> None:
    if str(place) == "-":
        sys.stdout.write(text)
        return
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{place} cannot be written: {error.strerror}.", "Name another file.") from error
