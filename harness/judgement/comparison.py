"""Systems of one workload family beside a baseline: which scenarios each has, its figures there, and its named gaps.

Pure, the same for the Compare page and for `weigh compare`. A *system* is what a meeting compares: a compute unit of a
device with a backend, a target, and the weights and precision that were asked for. Nothing here judges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.errors import UsageError
from harness.judgement.comparable import ComparableRow
from harness.judgement.figures import (
    Difference,
    Figure,
    batch_of,
    differences_of,
    figures_of,
    headline_metric,
)
from harness.judgement.flags import TRIALS_DISAGREE
from harness.judgement.systems import System, grouped, systems_of

CAUTIONS = (TRIALS_DISAGREE,)  # flags that a comparison must not hide
Chosen = tuple[ComparableRow, "str | None"]  # a row, and the note that belongs to it

SCENARIO_ORDER = ("single_stream", "multi_stream", "server", "offline")


@dataclass(frozen=True)
class Entry:
    """A system in one scenario: a row with figures and differences, or a gap with its name."""

    system: System
    scenario: str
    row: ComparableRow | None = None
    gap: str | None = None  # "not measured", "no offline result", "unsupported: ..."
    figures: tuple[Figure, ...] = ()
    differences: tuple[Difference, ...] = ()
    note: str | None = None  # e.g. a newer run that failed, or trials that disagree

    def figure(self, metric: str) -> Figure | None:
        """The figure of that name, None where there is none (a gap, or nothing declared)."""
        return next((item for item in self.figures if item.metric == metric), None)

    @property
    def headline(self) -> Figure | None:
        """The figure that this scenario is about."""
        return self.figure(headline_metric(self.scenario))


@dataclass(frozen=True)
class Section:
    """One scenario: an entry for each system, the baseline first; several where a system has several batch sizes."""

    scenario: str
    entries: tuple[Entry, ...]

    def of(self, system: System) -> tuple[Entry, ...]:
        """The entries of one system."""
        return tuple(entry for entry in self.entries if entry.system.id == system.id)


@dataclass(frozen=True)
class Comparison:
    """All systems of one family, the baseline first."""

    family: str
    baseline: System
    systems: tuple[System, ...]
    sections: tuple[Section, ...] = field(default=())


def scenario_title(scenario: str) -> str:
    """`single_stream` -> "Single stream"."""
    return scenario.replace("_", " ").capitalize()


def compare(rows: Sequence[ComparableRow], baseline_id: str, chosen: Iterable[str] | None = None) -> Comparison:
    """Put every system of `rows` beside the baseline, scenario by scenario.

    `rows` are measurements of one workload family, of any status. Of several runs of the same case the newest that holds is
    taken; where a newer one does not hold, the entry's note says so. `chosen` limits the systems (by id). Raises UsageError
    for an unknown baseline.
    """
    systems = {system.id: system for system in systems_of(rows)}
    if baseline_id not in systems:
        raise UsageError(f"No system {baseline_id!r} in this family.", "Choose one of those listed.")
    wanted = set(systems) if chosen is None else set(chosen) & set(systems)
    baseline = systems[baseline_id]
    ordered = [baseline, *(system for system in systems.values() if system.id in wanted - {baseline_id})]
    by_place: dict[tuple[str, str], list[ComparableRow]] = defaultdict(list)
    for identity, members in grouped(rows).items():
        for row in members:
            by_place[identity, row.scenario].append(row)
    scenarios = {scenario for identity, scenario in by_place if identity in wanted | {baseline_id}}
    sections = []
    for scenario in sorted(scenarios, key=_scenario_rank):
        base_rows = _newest(by_place[baseline_id, scenario])
        entries: list[Entry] = []
        for system in ordered:
            newest = _newest(by_place[system.id, scenario])
            entries += _entries(system, scenario, newest, base_rows)
        sections.append(Section(scenario, (*entries[:1], *_by_headline(entries[1:], baseline))))
    family = next((row.family for row in rows if row.family), "") or baseline.workload
    return Comparison(family, baseline, tuple(ordered), tuple(sections))


def gap_of(row: ComparableRow) -> str | None:
    """The named gap of a row that is not `ok`: its status and reason."""
    return None if row.status == "ok" else f"{row.status}: {row.reason or 'no reason is recorded'}"


def _entries(system: System, scenario: str, newest: Sequence[Chosen], base: Sequence[Chosen]) -> list[Entry]:
    if not newest:
        return [Entry(system, scenario, gap=_missing(system, scenario))]
    entries = []
    for row, note in newest:
        gap = gap_of(row)
        if gap is not None:
            entries.append(Entry(system, scenario, row, gap))
            continue
        against = _counterpart(row, base)
        differences = differences_of(row, against) if against is not None else ()
        cautions = [message for code, message in row.flags if code in CAUTIONS]
        said = " ".join([*([note] if note else []), *cautions]) or None
        entries.append(Entry(system, scenario, row, None, figures_of(row, against), differences, said))
    return entries


def _missing(system: System, scenario: str) -> str:
    return f"no {scenario.replace('_', ' ')} result" if system.imported else "not measured"


def _counterpart(row: ComparableRow, base: Sequence[Chosen]) -> ComparableRow | None:
    """The baseline's row of the same batch if there is one, else of its smallest batch."""
    good = [other for other, _ in base if other.status == "ok"]
    same = [other for other in good if batch_of(other) == batch_of(row)]
    return min(same or good, key=lambda other: other.batch or 0, default=None)


def _newest(rows: Sequence[ComparableRow]) -> list[Chosen]:
    """One row for each batch and model format: the newest that holds, noting a newer one that does not; else the newest."""
    formats: dict[int, set[str]] = defaultdict(set)
    for row in rows:
        formats[row.batch or 0] |= {row.artifact_format} if row.artifact_format else set()
    groups: dict[tuple[int, str], list[ComparableRow]] = defaultdict(list)
    for row in rows:
        # What failed before its model was loaded may not say which file it was; it belongs to those of its batch.
        model_format = row.artifact_format or min(formats[row.batch or 0], default="")
        groups[row.batch or 0, model_format].append(row)
    chosen: list[Chosen] = []
    for place in sorted(groups):
        ordered = sorted(groups[place], key=lambda row: (row.ingest_sequence, row.measurement_id))
        holding = [row for row in ordered if row.status == "ok"]
        row = (holding or ordered)[-1]
        newer = ordered[-1]
        chosen.append((row, None if newer is row or newer.status == "ok" else f"a newer run is {gap_of(newer)}"))
    return chosen if any(row.status == "ok" for row, _ in chosen) else chosen[:1]


def _by_headline(entries: Sequence[Entry], baseline: System) -> list[Entry]:
    """The baseline's further batches first, then by the scenario's own figure, gaps last."""

    def rank(entry: Entry) -> tuple[bool, bool, float, str]:
        figure = entry.headline
        if figure is None or figure.value is None:
            return (entry.system.id != baseline.id, True, 0.0, entry.system.label)
        value = figure.value if figure.better == "lower" else -figure.value
        return (entry.system.id != baseline.id, False, value, entry.system.label)

    return sorted(entries, key=rank)


def _scenario_rank(scenario: str) -> tuple[int, str]:
    known = SCENARIO_ORDER.index(scenario) if scenario in SCENARIO_ORDER else len(SCENARIO_ORDER)
    return (known, scenario)
