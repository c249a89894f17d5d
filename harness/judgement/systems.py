"""What is compared: systems, made out of rows. Each has a stable id, a label of its own, and words that name it. Pure."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.errors import UsageError
from harness.judgement.comparable import ComparableRow
from harness.judgement.figures import source_name
from harness.judgement.validity import CHOOSING_TARGETS


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
    precision: str = ""  # in words, asked for and run: "int8 model", "fp32 model at vendor default, ran bf16"

    @property
    def words(self) -> str:
        """Everything that a person may type to name this system."""
        parts = (self.id, self.label, self.hardware, self.device, self.backend, self.target, self.workload, self.title)
        return " ".join((*parts, self.precision, self.source)).casefold()


def grouped(rows: Sequence[ComparableRow]) -> dict[str, list[ComparableRow]]:
    """The rows of each system, by its id.

    A case that could not run often names no compute unit. It belongs to the unit that the same backend and target have
    elsewhere on that device, if there is just one.
    """
    units: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in rows:
        if row.hardware_model is not None:
            units[_place(row)].add(_unit(row))
    groups: dict[str, list[ComparableRow]] = defaultdict(list)
    for row in rows:
        known = units[_place(row)]
        unit = _unit(row) if row.hardware_model is not None else next(iter(known)) if len(known) == 1 else ""
        groups[_identity(row, unit)].append(row)
    return dict(groups)


def systems_of(rows: Sequence[ComparableRow]) -> tuple[System, ...]:
    """The systems in `rows`: those measured here first, then by label."""
    groups = grouped(rows)
    labels = _labels(groups)
    found = []
    for identity, members in groups.items():
        row = _face(members)
        found.append(
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
                precision=f"{_precision_words(row)}, ran {row.effective_precision or 'unknown'}",
            )
        )
    return tuple(sorted(found, key=lambda system: (system.imported, system.label.casefold(), system.id)))


def default_baseline(rows: Sequence[ComparableRow]) -> System | None:
    """A system measured here with the most results that hold, else any; None without rows."""
    good = {name: sum(row.status == "ok" for row in members) for name, members in grouped(rows).items()}
    return min(systems_of(rows), key=lambda system: (system.imported, -good[system.id]), default=None)


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


def hardware_name(row: ComparableRow) -> str:
    """The compute unit's hardware model, with the number of units that worked as one."""
    name = row.hardware_model or row.device
    return f"{row.unit_count} x {name}" if row.unit_count and row.unit_count > 1 else name


def _face(rows: Sequence[ComparableRow]) -> ComparableRow:
    """The row that stands for its system: one that knows its hardware, if there is one."""
    return next((row for row in rows if row.hardware_model is not None), rows[0])


def _place(row: ComparableRow) -> tuple[str, ...]:
    return (row.source_kind, row.source_name, row.device_uuid, row.backend, row.target)


def _unit(row: ComparableRow) -> str:
    return f"{row.compute_unit or ''} {hardware_name(row)}"


def _identity(row: ComparableRow, unit: str) -> str:
    """A stable id: readable words and a digest of what makes a system."""
    parts = (
        *_place(row),
        unit,
        row.workload,
        row.artifact_precision or "",
        row.requested_precision or "",
        str(row.threads or ""),
    )
    digest = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:8]
    words = re.sub(r"[^a-z0-9]+", "-", f"{row.device} {row.backend} {row.target}".casefold()).strip("-")
    return f"{words[:48]}-{digest}"


def _labels(groups: Mapping[str, Sequence[ComparableRow]]) -> dict[str, str]:
    """Hardware, backend and target, and after them only what tells equal labels apart."""
    faces = {identity: _face(rows) for identity, rows in groups.items()}
    details = {
        identity: (
            row.device,
            row.workload_title or row.workload,
            _precision_words(row),
            "" if row.threads is None else f"{row.threads} threads",
            source_name(row),
            identity,
        )
        for identity, row in faces.items()
    }
    labels = {identity: f"{hardware_name(row)}, {route_name(row)}" for identity, row in faces.items()}
    for position in range(6):
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


def route_name(row: ComparableRow) -> str:
    """Backend and target, as far as they are known: "onnxruntime cpu", "tensorrt".

    Where the target leaves the choice to the runtime, its word is no device: what it chose is named with it.
    """
    known = [part for part in (row.backend, row.target) if part and part != "unknown"]
    name = " ".join(known) or "backend not known"
    if row.target.lower().partition(":")[0] not in CHOOSING_TARGETS or row.status != "ok":
        return name
    devices = [str(device) for device in (row.effective or {}).get("devices") or ()]
    return f"{name} (ran on {', '.join(devices) or row.effective_target or 'devices it does not tell'})"


def _precision_words(row: ComparableRow) -> str:
    """Such as: "int8 model", "fp32 model at bf16", "fp32 model at vendor default"."""
    artifact, requested = row.artifact_precision, row.requested_precision
    if requested in (None, "unknown") or requested == artifact:
        return f"{artifact} model" if artifact else ""
    return f"{artifact or 'unknown'} model at {'vendor default' if requested == 'default' else requested}"
