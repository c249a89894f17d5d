"""Which measurements of one selection belong beside which of another. Pure.

Two selections (systems, runs, single measurements) seldom hold the same cases. Each measurement is put beside the one that
is most alike in what a comparison needs, each used once; what finds no partner is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.judgement.comparable import ComparableRow
from harness.judgement.comparison import parameters_of
from harness.judgement.figures import batch_of


@dataclass(frozen=True)
class Pair:
    """Two measurements to be judged beside each other."""

    a: ComparableRow
    b: ComparableRow


@dataclass(frozen=True)
class Pairs:
    """The pairs, and what stands alone on either side."""

    pairs: tuple[Pair, ...]
    only_a: tuple[ComparableRow, ...]
    only_b: tuple[ComparableRow, ...]


def paired(a_rows: Sequence[ComparableRow], b_rows: Sequence[ComparableRow]) -> Pairs:
    """Put each row of A beside the row of B of the same family and scenario that is most alike; each is used once.

    A single row on either side is always put beside the other, so that the verdict can say why they differ. Where neither
    of two is `ok` there is nothing to say about them. A measurement is never put beside itself.
    """
    if len(a_rows) == 1 and len(b_rows) == 1:
        return Pairs((Pair(a_rows[0], b_rows[0]),), (), ())
    candidates = sorted(
        (_unlike(a, b), place_a, place_b)
        for place_a, a in enumerate(a_rows)
        for place_b, b in enumerate(b_rows)
        if (a.family, a.scenario) == (b.family, b.scenario)
        and "ok" in (a.status, b.status)
        and a.measurement_id != b.measurement_id
    )
    taken: dict[int, int] = {}
    used: set[int] = set()
    for _, place_a, place_b in candidates:
        if place_a not in taken and place_b not in used:
            taken[place_a] = place_b
            used.add(place_b)
    return Pairs(
        tuple(Pair(a_rows[place], b_rows[taken[place]]) for place in sorted(taken)),
        tuple(row for place, row in enumerate(a_rows) if place not in taken and row.status == "ok"),
        tuple(row for place, row in enumerate(b_rows) if place not in used and row.status == "ok"),
    )


def _unlike(a: ComparableRow, b: ComparableRow) -> tuple[int, int, int]:
    """How unlike two rows are: first in the contract, then in the model and its precision, then in the rest."""
    contract = (
        a.workload != b.workload,
        parameters_of(a) != parameters_of(b),
        batch_of(a) != batch_of(b),
        a.input_size != b.input_size,
        a.dataset != b.dataset,
        a.boundary != b.boundary,
        a.status != "ok",
        b.status != "ok",
    )
    model = (
        a.artifact_precision != b.artifact_precision,
        a.requested_precision != b.requested_precision,
        a.effective_precision != b.effective_precision,
    )
    rest = (
        a.streams != b.streams,
        a.threads != b.threads,
        a.artifact_format != b.artifact_format,
        a.backend != b.backend,
        a.target != b.target,
        a.device_uuid != b.device_uuid,
    )
    return sum(contract), sum(model), sum(rest)
