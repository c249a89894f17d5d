"""Systems of one workload family beside a baseline: which scenarios each has, its figures there, and its named gaps.

Pure, the same for the Compare page and for `weigh compare`. A *system* is what a meeting compares: a compute unit of a
device with a backend, a target, and the weights and precision that were asked for. Whether a system may be compared with
the baseline is judged metric by metric (`harness.judgement.verdict`); no system is called better than another, and one that
failed its accuracy gate stands behind all that did not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from harness.errors import UsageError
from harness.judgement.comparable import ComparableRow
from harness.judgement.contract import PARAMETERS
from harness.judgement.figures import (
    Difference,
    Figure,
    batch_of,
    differences_of,
    figures_of,
    headline_metric,
)
from harness.judgement.flags import TRIALS_DISAGREE
from harness.judgement.side_by_side import SideBySide, metrics_of, side_by_side
from harness.judgement.systems import System, grouped, systems_of
from harness.judgement.verdict import barred, barred_words

CAUTIONS = (TRIALS_DISAGREE,)  # flags that a comparison must not hide
Chosen = tuple[ComparableRow, "str | None"]  # a row, and the note that belongs to it

SCENARIO_ORDER = ("single_stream", "multi_stream", "server", "offline", "sustained", "duty_cycle", "cold_start")
Place = tuple[int, str, str, str]  # batch, streams, scenario's parameters, model format


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
    beside: tuple[SideBySide, ...] = ()  # each metric judged against the baseline's row; empty without one
    variant: str = ""  # what tells it apart from the system's other entries here: "batch 8"

    def judged(self, metric: str) -> SideBySide | None:
        """The metric beside the baseline's, None where there is nothing to put beside it."""
        return next((item for item in self.beside if item.metric == metric), None)

    @property
    def barred(self) -> str:
        """In words why it can win nothing, most of all a failed accuracy gate; empty where it can."""
        return "" if self.row is None or self.gap is not None else barred_words(self.row)

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
        excluded = barred(row)
        said = (
            " ".join([*([note] if note else []), *cautions, *([f"{excluded} It can win nothing."] if excluded else [])])
            or None
        )
        beside = _beside(row, against) if against is not None else ()
        variant = _variant(row, [other for other, _ in newest])
        figures = figures_of(row, against)
        entries.append(Entry(system, scenario, row, None, figures, differences, said, beside, variant))
    return entries


def _beside(row: ComparableRow, against: ComparableRow) -> tuple[SideBySide, ...]:
    names = ("it", "the baseline")
    return tuple(side_by_side(row, against, metric, names) for metric in metrics_of(row, against))


def _variant(row: ComparableRow, others: Sequence[ComparableRow]) -> str:
    """What this row has and the system's other rows of this scenario have not, in words."""
    told: tuple[tuple[str, Callable[[ComparableRow], object]], ...] = (
        ("batch {}", batch_of),
        ("{} streams", lambda other: other.streams),
        ("{}", _parameter_words),
        ("{} file", lambda other: other.artifact_format),
    )
    parts = []
    for words, read in told:
        value = read(row)
        if value not in (None, "") and len({read(other) for other in others}) > 1:
            parts.append(words.format(value))
    return ", ".join(parts)


def _parameter_words(row: ComparableRow) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in parameters_of(row).items())


def parameters_of(row: ComparableRow) -> dict[str, object]:
    """The scenario's parameters that say what its numbers mean; how long a window lasted is none of them."""
    wanted = PARAMETERS.get(row.scenario, tuple(sorted(row.scenario_parameters)))
    return {name: row.scenario_parameters[name] for name in wanted if name in row.scenario_parameters}


def _missing(system: System, scenario: str) -> str:
    return f"no {scenario.replace('_', ' ')} result" if system.imported else "not measured"


def _counterpart(row: ComparableRow, base: Sequence[Chosen]) -> ComparableRow | None:
    """The baseline's row that is most alike: the same parameters, batch and streams where it has them, else its smallest
    batch."""
    good = [other for other, _ in base if other.status == "ok"]

    def unlike(other: ComparableRow) -> tuple[bool, bool, bool, int]:
        return (
            parameters_of(other) != parameters_of(row),
            batch_of(other) != batch_of(row),
            other.streams != row.streams,
            other.batch or 0,
        )

    return min(good, key=unlike, default=None)


def _newest(rows: Sequence[ComparableRow]) -> list[Chosen]:
    """One row for each batch, number of streams, parameters and model format: the newest that holds, noting a newer one
    that does not; else the newest."""
    formats: dict[int, set[str]] = defaultdict(set)
    for row in rows:
        formats[row.batch or 0] |= {row.artifact_format} if row.artifact_format else set()
    groups: dict[Place, list[ComparableRow]] = defaultdict(list)
    for row in rows:
        # What failed before its model was loaded may not say which file it was; it belongs to those of its batch.
        model_format = row.artifact_format or min(formats[row.batch or 0], default="")
        place = (row.batch or 0, f"{row.streams or 0:04d}", str(sorted(parameters_of(row).items())), model_format)
        groups[place].append(row)
    chosen: list[Chosen] = []
    for place in sorted(groups):
        ordered = sorted(groups[place], key=lambda row: (row.ingest_sequence, row.measurement_id))
        holding = [row for row in ordered if row.status == "ok"]
        row = (holding or ordered)[-1]
        newer = ordered[-1]
        chosen.append((row, None if newer is row or newer.status == "ok" else f"a newer run is {gap_of(newer)}"))
    return chosen if any(row.status == "ok" for row, _ in chosen) else chosen[:1]


def _by_headline(entries: Sequence[Entry], baseline: System) -> list[Entry]:
    """The baseline's further rows first, then by the scenario's own figure; then what can win nothing; gaps last."""

    def rank(entry: Entry) -> tuple[bool, bool, bool, float, str]:
        figure, other = entry.headline, entry.system.id != baseline.id
        if figure is None or figure.value is None:
            return (other, True, True, 0.0, entry.system.label)
        value = figure.value if figure.better == "lower" else -figure.value
        return (other, False, bool(entry.barred), value, entry.system.label)

    return sorted(entries, key=rank)


def _scenario_rank(scenario: str) -> tuple[int, str]:
    known = SCENARIO_ORDER.index(scenario) if scenario in SCENARIO_ORDER else len(SCENARIO_ORDER)
    return (known, scenario)
