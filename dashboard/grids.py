"""Comparisons and results as plain grids of text: headers and rows, the same for the page, the terminal and the exports.

Pure, standard library only: `weigh compare` uses it without pandas or Streamlit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.wording import number, ratio
from harness.judgement.comparison import Comparison, Entry, Section, scenario_title
from harness.judgement.figures import NOT_MEASURED, THROUGHPUT_SCENARIOS, Figure, batch_of, headline_metric
from harness.judgement.systems import System

METRIC_TITLES = {
    "p50": "p50 (ms)",
    "p90": "p90 (ms)",
    "p99": "p99 (ms)",
    "official": "Declared (ms)",
    "throughput": "Throughput (samples/s)",
    "energy": "Energy (mJ/inference)",
    "accuracy": "Accuracy (%)",
}
TO_BASELINE = "÷ baseline"


@dataclass(frozen=True)
class Grid:
    """A table of text. `numeric` names the columns that are aligned to the right."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[str] = frozenset()

    def column(self, header: str) -> tuple[str, ...]:
        """One column, top to bottom."""
        position = self.headers.index(header)
        return tuple(row[position] for row in self.rows)

    def without_empty(self) -> Grid:
        """The same without columns that hold nothing in any row."""
        return self.without(self.holding_only())

    def without(self, dropped: Iterable[str]) -> Grid:
        """The same without these columns."""
        kept = [position for position, header in enumerate(self.headers) if header not in set(dropped)]
        headers = tuple(self.headers[position] for position in kept)
        rows = tuple(tuple(row[position] for position in kept) for row in self.rows)
        return Grid(headers, rows, self.numeric & set(headers))

    def holding_only(self, *texts: str) -> tuple[str, ...]:
        """The columns in which every row says one of these texts or nothing."""
        return tuple(header for header in self.headers if set(self.column(header)) <= {"", *texts})


def overview_grid(comparison: Comparison) -> Grid:
    """One row for each system, the scenarios side by side: their figure, its ratio to the baseline, or the named gap."""
    headers = ["System", "Model"]
    for section in comparison.sections:
        metric = headline_metric(section.scenario)
        headers.append(f"{scenario_title(section.scenario)}: {METRIC_TITLES[metric]}")
        headers.append(f"{scenario_title(section.scenario)} {TO_BASELINE}")
    headers += [METRIC_TITLES["energy"], METRIC_TITLES["accuracy"], "Source"]
    rows = tuple(_overview_row(comparison, system) for system in comparison.systems)
    return Grid(tuple(headers), rows, frozenset(headers[2:-1]))


def section_grid(section: Section, baseline: System, with_gaps: bool = True) -> Grid:
    """One scenario: every figure of every system with its statistic, source, and what differs from the baseline."""
    metrics = _metrics(section)
    headline = headline_metric(section.scenario)
    headers = ["System", "Model", METRIC_TITLES[headline], TO_BASELINE]
    headers += [METRIC_TITLES[metric] for metric in metrics if metric != headline]
    headers += ["Ran as", "Source", "Differs in"]
    rows = []
    for entry in section.entries:
        if entry.gap is not None and not with_gaps:
            continue
        cells = [_name(entry, baseline), entry.system.title, _cell(entry, headline), _headline_ratio(entry)]
        cells += [_cell(entry, metric) if entry.gap is None else "" for metric in metrics if metric != headline]
        cells += [_how(entry), entry.system.source, _differs(entry, baseline)]
        rows.append(tuple(cells))
    numeric = frozenset({TO_BASELINE, *METRIC_TITLES.values()})
    return Grid(tuple(headers), tuple(rows), numeric & set(headers))


def gaps(section: Section) -> tuple[tuple[System, str], ...]:
    """The systems without a result in this scenario, each with the whole reason."""
    return tuple((entry.system, entry.gap) for entry in section.entries if entry.gap is not None)


def short_gap(gap: str) -> str:
    """A gap for a cell: its name without the long reason, which is shown beneath."""
    return gap.partition(":")[0].removesuffix(" by the source")


def _overview_row(comparison: Comparison, system: System) -> tuple[str, ...]:
    cells = [system.label + (" (baseline)" if system == comparison.baseline else ""), system.title]
    energies: list[Figure] = []
    accuracies: list[Figure] = []
    for section in comparison.sections:
        entries = section.of(system)
        entry = next((item for item in entries if item.gap is None), entries[0])
        metric = headline_metric(section.scenario)
        cells.append(_cell(entry, metric) + _batch_note(entry, entries))
        cells.append(_headline_ratio(entry))
        energies += [figure for figure in [entry.figure("energy")] if figure is not None]
        accuracies += [figure for figure in [entry.figure("accuracy")] if figure is not None]
    return (*cells, _first(energies), _first(accuracies), system.source)


def _first(figures: list[Figure]) -> str:
    measured = [figure for figure in figures if figure.value is not None]
    if measured:
        return number(measured[0].value)
    return "not measured" if figures else ""


def _batch_note(entry: Entry, entries: tuple[Entry, ...]) -> str:
    batch = batch_of(entry.row) if entry.row is not None and len(entries) > 1 else None
    return "" if batch is None else f" (batch {batch})"


def _metrics(section: Section) -> list[str]:
    """The figures worth a column: percentiles have no place where load is offered in bulk and nothing was timed."""
    present = {figure.metric for entry in section.entries for figure in entry.figures if figure.value is not None}
    always = {"energy", "accuracy", "throughput"}
    if section.scenario not in THROUGHPUT_SCENARIOS:
        always |= {"p50", "p90"}
    return [metric for metric in METRIC_TITLES if metric in present | always]


def _cell(entry: Entry, metric: str) -> str:
    if entry.gap is not None:
        return short_gap(entry.gap)
    figure = entry.figure(metric)
    if figure is None:
        return ""
    if figure.value is None:
        return NOT_MEASURED if metric in {"energy", "accuracy"} else short_gap(figure.reason or NOT_MEASURED)
    if metric in {"official", "accuracy"}:
        return f"{number(figure.value)} ({figure.statistic})"
    return number(figure.value)


def _headline_ratio(entry: Entry) -> str:
    figure = entry.headline
    return "" if figure is None else ratio(figure.ratio)


def _name(entry: Entry, baseline: System) -> str:
    return entry.system.label + (" (baseline)" if entry.system == baseline else "")


def _how(entry: Entry) -> str:
    """Precision that ran, batch, runtime: "int8, batch 8, TensorRT 8.6"."""
    row = entry.row
    if row is None or entry.gap is not None:
        return ""
    batch = batch_of(row)
    runtime = " ".join(part for part in (row.runtime, row.runtime_version) if part)
    precision = row.effective_precision or "precision not known"
    return ", ".join(
        (precision, "batch not known" if batch is None else f"batch {batch}", runtime or "runtime not known")
    )


def _differs(entry: Entry, baseline: System) -> str:
    if entry.gap is not None or entry.system == baseline:
        return ""
    differing = ", ".join(item.field for item in entry.differences if item.known)
    unknown = ", ".join(item.field for item in entry.differences if not item.known)
    return "; ".join(part for part in (differing, f"not known: {unknown}" if unknown else "") if part)
