"""Systems of one workload family beside a baseline: which scenarios each has, its figures there, and its named gaps.

Pure, the same for the Compare page and for `weigh compare`. A *system* is what a meeting compares: a compute unit of a
device with a backend, a target, and the weights and precision that were asked for. Nothing here judges.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.errors import UsageError
from harness.judgement.figures import (
    ComparableRow,
    Difference,
    Figure,
    differences_of,
    figures_of,
    headline_metric,
)

Chosen = tuple[ComparableRow, "str | None"]  # a row, and the note that belongs to it

SCENARIO_ORDER = ("single_stream", "multi_stream", "server", "offline")


@dataclass(frozen=True)
class System:
    """One thing that is compared. `id` is stable: it may stand in an address."""

    id: str
    label: str  # short, unlike every other label of the comparison
    hardware: str  # with the number of units: "2 x NVIDIA T4"
    hardware_model: str
    device: str
    backend: str
    target: str
    workload: str
    title: str  # the weights, in words: "ResNet-50, seeded weights"
    source: str  # "measured here", or the name of the imported source
    imported: bool

    @property
    def words(self) -> str:
        """Everything that a person may type to name this system."""
        parts = (self.id, self.label, self.hardware, self.device, self.backend, self.target, self.workload, self.title)
        return " ".join((*parts, self.source)).casefold()


@dataclass(frozen=True)
class Entry:
    """A system in one scenario: a row with figures and differences, or a gap with its name."""

    system: System
    scenario: str
    row: ComparableRow | None = None
    gap: str | None = None  # "not measured", "no offline result", "unsupported: ..."
    figures: tuple[Figure, ...] = ()
    differences: tuple[Difference, ...] = ()
    note: str | None = None  # e.g. a newer run that failed

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


def systems_of(rows: Sequence[ComparableRow]) -> tuple[System, ...]:
    """The systems in `rows`: those measured here first, then by label."""
    firsts: dict[str, ComparableRow] = {}
    for row in rows:
        firsts.setdefault(_identity(row), row)
    labels = _labels(firsts)
    found = [
        System(
            id=identity,
            label=labels[identity],
            hardware=hardware_name(row),
            hardware_model=row.hardware_model or row.device,
            device=row.device,
            backend=row.backend,
            target=row.target,
            workload=row.workload,
            title=row.workload_title or row.workload,
            source=source_name(row),
            imported=row.source_kind == "imported",
        )
        for identity, row in firsts.items()
    ]
    return tuple(sorted(found, key=lambda system: (system.imported, system.label.casefold(), system.id)))


def default_baseline(rows: Sequence[ComparableRow]) -> System | None:
    """A system measured here with the most results that hold, else any; None without rows."""
    good = Counter(_identity(row) for row in rows if row.status == "ok")
    systems = systems_of(rows)
    return min(systems, key=lambda system: (system.imported, -good[system.id]), default=None)


def matching(systems: Iterable[System], text: str) -> tuple[System, ...]:
    """The systems that `text` names: the one with that id, else all that contain each of its words."""
    systems = tuple(systems)
    exact = tuple(system for system in systems if text in (system.id, system.label))
    words = text.casefold().split()
    return exact or tuple(system for system in systems if words and all(word in system.words for word in words))


def one_matching(systems: Iterable[System], text: str) -> System:
    """The one system that `text` names. Raises UsageError that lists what it could have meant."""
    systems = tuple(systems)
    found = matching(systems, text)
    if len(found) == 1:
        return found[0]
    choices = "; ".join(system.label for system in found or systems)
    what = f"{text!r} names {len(found)} systems" if found else f"No system of this family is named by {text!r}"
    raise UsageError(f"{what}.", f"Say one of: {choices}.")


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
    for row in rows:
        by_place[_identity(row), row.scenario].append(row)
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


def source_name(row: ComparableRow) -> str:
    """Where a number comes from, as shown beside it."""
    return "measured here" if row.source_kind == "measured" else row.source_name


def hardware_name(row: ComparableRow) -> str:
    """The compute unit's hardware model, with the number of units that worked as one."""
    name = row.hardware_model or row.device
    return f"{row.unit_count} x {name}" if row.unit_count and row.unit_count > 1 else name


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
        entries.append(Entry(system, scenario, row, None, figures_of(row, against), differences, note))
    return entries


def _missing(system: System, scenario: str) -> str:
    return f"no {scenario.replace('_', ' ')} result" if system.imported else "not measured"


def _counterpart(row: ComparableRow, base: Sequence[Chosen]) -> ComparableRow | None:
    """The baseline's row of the same batch if there is one, else of its smallest batch."""
    good = [other for other, _ in base if other.status == "ok"]
    same = [other for other in good if other.batch == row.batch]
    return min(same or good, key=lambda other: other.batch or 0, default=None)


def _newest(rows: Sequence[ComparableRow]) -> list[Chosen]:
    """One row for each batch: the newest that holds, with a note where a newer one does not; else the newest."""
    groups: dict[int | None, list[ComparableRow]] = defaultdict(list)
    for row in rows:
        groups[row.batch].append(row)
    chosen: list[Chosen] = []
    for batch in sorted(groups, key=lambda value: value or 0):
        ordered = sorted(groups[batch], key=lambda row: (row.ingest_sequence, row.measurement_id))
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


def _identity(row: ComparableRow) -> str:
    """A stable id: readable words and a digest of what makes a system."""
    parts = (
        row.source_kind,
        row.source_name if row.source_kind == "imported" else "",
        row.device,
        hardware_name(row),
        row.workload,
        row.backend,
        row.target,
        row.artifact_format or "",
        row.artifact_precision or "",
        row.requested_precision or "",
        str(row.threads or ""),
    )
    digest = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:8]
    words = re.sub(r"[^a-z0-9]+", "-", f"{row.device} {row.backend} {row.target}".casefold()).strip("-")
    return f"{words[:48]}-{digest}"


def _labels(firsts: dict[str, ComparableRow]) -> dict[str, str]:
    """Hardware, backend and target, and after them only what tells equal labels apart."""
    details = {
        identity: (
            row.device,
            row.workload_title or row.workload,
            _precision_words(row),
            row.artifact_format or "",
            "" if row.threads is None else f"{row.threads} threads",
            source_name(row),
            identity,
        )
        for identity, row in firsts.items()
    }
    labels = {identity: f"{hardware_name(row)}, {_route(row)}" for identity, row in firsts.items()}
    for position in range(7):
        counts = Counter(labels.values())
        twins: dict[str, set[str]] = defaultdict(set)
        for identity, label in labels.items():
            twins[label].add(details[identity][position])
        labels = {
            identity: f"{label}, {details[identity][position]}"
            if counts[label] > 1 and len(twins[label]) > 1 and details[identity][position]
            else label
            for identity, label in labels.items()
        }
    return labels


def _route(row: ComparableRow) -> str:
    known = [part for part in (row.backend, row.target) if part and part != "unknown"]
    return " ".join(known) or "backend not known"


def _precision_words(row: ComparableRow) -> str:
    """Such as: "int8 model", "fp32 model at bf16", "fp32 model at vendor default"."""
    artifact, requested = row.artifact_precision, row.requested_precision
    if requested in (None, "unknown") or requested == artifact:
        return f"{artifact} model" if artifact else ""
    return f"{artifact or 'unknown'} model at {'vendor default' if requested == 'default' else requested}"


def _scenario_rank(scenario: str) -> tuple[int, str]:
    known = SCENARIO_ORDER.index(scenario) if scenario in SCENARIO_ORDER else len(SCENARIO_ORDER)
    return (known, scenario)
