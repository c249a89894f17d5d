"""Comparisons and results as plain grids of text: headers and rows, the same for the page, the terminal and the exports.

Pure, standard library only: `weigh compare` uses it without pandas or Streamlit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.wording import bounds, number, ratio_words
from harness.judgement.comparable import ComparableRow
from harness.judgement.comparison import Comparison, Entry, Section, scenario_title
from harness.judgement.figures import NOT_MEASURED, batch_of, headline_metric, spread_of_metric
from harness.judgement.systems import System
from harness.judgement.trust import trust_of_row
from harness.judgement.verdict import gate_of

METRIC_TITLES = {
    "p50": "p50 (ms)",
    "p90": "p90 (ms)",
    "p99": "p99 (ms)",
    "official": "Declared (ms)",
    "first_answer": "First answer (ms)",
    "throughput": "Throughput (samples/s)",
    "energy": "Energy (mJ/inference)",
    "accuracy": "Accuracy (%)",
}
TO_BASELINE = "÷ baseline"
VERDICT = "verdict"
SURE = "95 % interval"


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
        headers.append(f"{scenario_title(section.scenario)} {VERDICT}")
    headers += [METRIC_TITLES["energy"], METRIC_TITLES["accuracy"], "Source"]
    rows = tuple(_overview_row(comparison, system) for system in comparison.systems)
    numeric = frozenset(header for header in headers[2:-1] if not header.endswith(VERDICT))
    return Grid(tuple(headers), rows, numeric)


def section_grid(section: Section, baseline: System, with_gaps: bool = True) -> Grid:
    """One scenario: every figure of every system with its statistic, source, and what differs from the baseline."""
    metrics = _metrics(section)
    headline = headline_metric(section.scenario)
    headers = ["System", "Model", METRIC_TITLES[headline], SURE, TO_BASELINE, "Verdict"]
    headers += [METRIC_TITLES[metric] for metric in metrics if metric != headline]
    headers += ["Trust", "Ran as", "Source", "Differs in"]
    rows = []
    for entry in section.entries:
        if entry.gap is not None and not with_gaps:
            continue
        cells = [_name(entry, baseline), entry.system.title, _cell(entry, headline), _sureness(entry)]
        cells += [_headline_ratio(entry), verdict_words(entry, baseline)]
        cells += [_cell(entry, metric) if entry.gap is None else "" for metric in metrics if metric != headline]
        cells += [_trust(entry), _how(entry), entry.system.source, _differs(entry, baseline)]
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
    energies: list[tuple[str, str]] = []
    accuracies: list[tuple[str, str]] = []
    for section in comparison.sections:
        entries = section.of(system)
        entry = next((item for item in entries if item.gap is None), entries[0])
        metric = headline_metric(section.scenario)
        cells.append(_cell(entry, metric) + _variant_note(entry))
        cells += [_headline_ratio(entry), verdict_words(entry, comparison.baseline)]
        for metric, found in (("energy", energies), ("accuracy", accuracies)):
            figure = entry.figure(metric)
            if figure is not None and figure.value is not None:
                found.append((_cell(entry, metric), scenario_title(section.scenario).lower()))
    measured = any(section.of(system)[0].gap is None for section in comparison.sections)
    return (*cells, _of_scenarios(energies, measured), _of_scenarios(accuracies, measured), system.source)


def _of_scenarios(cells: list[tuple[str, str]], measured: bool) -> str:
    """Values that may differ by scenario, each with its scenario's name; one for all is said once."""
    if not cells:
        return NOT_MEASURED if measured else ""
    if len({cell for cell, _ in cells}) == 1 and len(cells) > 1:
        return cells[0][0]
    return "; ".join(f"{cell}, {scenario}" for cell, scenario in cells)


def _variant_note(entry: Entry) -> str:
    return f" ({entry.variant})" if entry.variant else ""


def verdict_words(entry: Entry, baseline: System) -> str:
    """The verdict of the scenario's own figure against the baseline; of the baseline itself there is none."""
    judged = entry.judged(headline_metric(entry.scenario)) if entry.gap is None else None
    if judged is None or (entry.system == baseline and judged.ratio is not None and judged.ratio.value == 1):
        return ""
    return judged.verdict.title


def _sureness(entry: Entry) -> str:
    if entry.row is None or entry.gap is not None:
        return ""
    return bounds(spread_of_metric(entry.row, headline_metric(entry.scenario)))


def _trust(entry: Entry) -> str:
    return "" if entry.row is None or entry.gap is not None else trust_of_row(entry.row).grade


def _metrics(section: Section) -> list[str]:
    """The figures worth a column: percentiles have no place where load is offered in bulk and nothing was timed."""
    present = {figure.metric for entry in section.entries for figure in entry.figures if figure.value is not None}
    always = {"energy", "accuracy", headline_metric(section.scenario)}
    if "p50" in always:
        always |= {"p90", "throughput"}
    return [metric for metric in METRIC_TITLES if metric in present | always]


def _cell(entry: Entry, metric: str) -> str:
    if entry.gap is not None:
        return short_gap(entry.gap)
    figure = entry.figure(metric)
    if figure is None:
        return ""
    if figure.value is None:
        return NOT_MEASURED if metric in {"energy", "accuracy"} else short_gap(figure.reason or NOT_MEASURED)
    if metric == "accuracy":
        gate = gate_of(entry.row) if entry.row is not None else None
        return f"{number(figure.value)} ({figure.statistic}{f', gate {gate}' if gate else ''})"
    if metric == "energy":
        scope = entry.row.energy_scope if entry.row is not None else None
        return f"{number(figure.value)} ({scope or 'meter not known'})"
    return f"{number(figure.value)} ({figure.statistic})" if metric == "official" else number(figure.value)


def _headline_ratio(entry: Entry) -> str:
    figure = entry.headline
    return "" if figure is None else ratio_words(figure.ratio, entry.judged(figure.metric))


def _name(entry: Entry, baseline: System) -> str:
    barred = f", {entry.barred}" if entry.barred else ""
    variant = f", {entry.variant}" if entry.variant else ""
    return entry.system.label + variant + (" (baseline)" if entry.system == baseline else "") + barred


def _how(entry: Entry) -> str:
    """Precision asked for and run, batch, placement, runtime: "int8, batch 8, TensorRT 8.6"."""
    row = entry.row
    if row is None or entry.gap is not None:
        return ""
    batch = batch_of(row)
    runtime = " ".join(part for part in (row.runtime, row.runtime_version) if part)
    parts = [precision_words(row), "batch not known" if batch is None else f"batch {batch}"]
    parts += [f"{row.streams} streams"] if row.streams else []
    parts += [text for text in [placement_words(row.effective)] if text.startswith("mixed")]
    return ", ".join([*parts, runtime or "runtime not known"])


def precision_words(row: ComparableRow) -> str:
    """What computed, and what was asked for where that is another word: "bf16 (vendor's default)", "int8 (file int8)"."""
    ran, asked, file = row.effective_precision, row.requested_precision, row.artifact_precision
    if ran is None:
        return f"precision not known (asked for {asked})" if asked not in (None, "unknown") else "precision not known"
    if asked == "default":
        return f"{ran} (vendor's default)"
    if asked in (None, "unknown", ran) or (file or "").partition("-")[0] == ran:
        return ran if file in (None, "unknown", ran) else f"{ran} (file {file})"
    return f"{ran} (asked for {asked})"


def placement_words(effective: Mapping[str, Any] | None) -> str:
    """Where the nodes ran: one processor's name, or "mixed" with the shares of nodes and, where known, of time."""
    placement = (effective or {}).get("placement") or {}
    nodes, time = placement.get("nodes") or {}, placement.get("time") or {}
    if not nodes:
        return ""
    if len(nodes) == 1:
        return str(next(iter(nodes)))
    shares = ", ".join(
        f"{name} {share * 100:.0f} %" + (f" ({time[name] * 100:.0f} % of time)" if name in time else "")
        for name, share in nodes.items()
    )
    return f"mixed: {shares}"


def _differs(entry: Entry, baseline: System) -> str:
    if entry.gap is not None or entry.system == baseline:
        return ""
    differing = ", ".join(item.field for item in entry.differences if item.known)
    unknown = ", ".join(item.field for item in entry.differences if not item.known)
    return "; ".join(part for part in (differing, f"not known: {unknown}" if unknown else "") if part)
