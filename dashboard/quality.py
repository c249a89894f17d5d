"""How good a measurement is: accuracy and its gate, fidelity, the harness's own share, the doubts behind its grade. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.grids import Grid
from dashboard.wording import number
from harness.judgement.flags import KINDS
from harness.judgement.self_cost import share_of
from harness.judgement.trust import Trust
from harness.records import SelfCost

if TYPE_CHECKING:
    from db.queries import ResultRow

Line = tuple[str, str, str, str]  # what, value, unit, how it was taken
WEIGHTS = ("told", "slight", "serious", "grave")


def accuracy_lines(row: ResultRow) -> list[Line]:
    """Accuracy, its share of the reference with the interval, and what the gate says of it."""
    found = row.accuracy or {}
    if row.accuracy_value is None:
        return [("Accuracy", "", "%", row.accuracy_reason or "not measured")]
    samples = "" if row.accuracy_samples is None else f"{row.accuracy_samples:,} samples"
    data = f"of {row.dataset.partition('@')[0]}" if row.dataset else ""
    how = " ".join(part for part in (samples, data) if part)
    words = ". ".join(part for part in (how, row.accuracy_note or "") if part) or "not recorded"
    lines = [(f"Accuracy, {row.accuracy_metric}", number(row.accuracy_value * 100), "%", words)]
    if found.get("reference") is not None:
        lines.append(("Accuracy of the fp32 reference", number(found["reference"] * 100), "%", how))
    if found.get("relative") is not None:
        low, high = found.get("relative_low"), found.get("relative_high")
        sure = f"95 % interval {low * 100:.2f} to {high * 100:.2f} %" if low is not None and high is not None else ""
        method = str(found.get("method") or "")
        lines.append(
            (
                "Share of the reference kept",
                f"{found['relative'] * 100:.2f}",
                "%",
                ", ".join(filter(None, (sure, method))),
            )
        )
    if found.get("gate"):
        asked = (
            f"{found['target'] * 100:.3g} % of the reference is asked for" if found.get("target") is not None else ""
        )
        more = found.get("samples_needed")
        decide = f"about {more:,} samples would decide" if more and found["gate"] == "undecided" else ""
        lines.append(("Accuracy gate", str(found["gate"]), "", ", ".join(filter(None, (asked, decide)))))
    if found.get("disagreement") is not None:
        lines.append(("Answers that changed sides", number(found["disagreement"] * 100), "%",
                      "right here and wrong in the reference, or the reverse"))  # fmt: skip
    for name, value in (found.get("details") or {}).items():
        lines.append((f"Accuracy, {name}", number(value), "", how))
    return lines


def fidelity_lines(row: ResultRow) -> list[Line]:
    """How near the raw outputs are to the fp32 reference's; needs no labels."""
    found = row.fidelity or {}
    if not found:
        return []
    against = (
        f"against {found.get('reference') or 'a reference that is not named'}, {found.get('samples') or 0:,} samples"
    )
    if found.get("reason"):
        return [("Fidelity", "", "", str(found["reason"]))]
    lines: list[Line] = []
    for name, title, unit, factor in (
        ("agreement", "Fidelity, same answer", "%", 100.0),
        ("cosine", "Fidelity, smallest cosine", "", 1.0),
        ("worst_absolute", "Fidelity, largest difference of an output", "", 1.0),
        ("worst_relative", "Fidelity, largest difference over the largest output", "%", 100.0),
    ):
        if found.get(name) is not None:
            value = found[name] * factor
            text = f"{value:.6f}" if name == "cosine" else number(value)
            lines.append((title, text, unit, against))
    return lines


def self_cost_lines(row: ResultRow) -> list[Line]:
    """What the harness itself put into every recorded latency of this run, and its share of this median."""
    found = row.self_cost or {}
    if not found:
        return []
    if found.get("recorded_us") is None:
        return [("Harness inside a latency", "", "us", str(found.get("reason") or "not measured"))]
    recorded = float(found["recorded_us"])
    how = f"the same loop around a session that does nothing, {found.get('trials') or 0} trials; it is not subtracted"
    lines: list[Line] = [("Harness inside a latency", number(recorded), "us", how)]
    share = self_cost_share(row)
    if share is not None:
        lines.append(("Harness's share of the median", number(share * 100), "%", "of this measurement's p50"))
    if found.get("wall_us") is not None:
        lines.append(
            ("Harness per query, by the wall clock", number(found["wall_us"]), "us", "most of it between two queries")
        )
    return lines


def self_cost_share(row: ResultRow) -> float | None:
    """The harness's share of the median latency; None where one of the two is not known."""
    share = share_of(SelfCost(**row.self_cost) if row.self_cost else None, row.p50_ms)
    return None if share is None else share.recorded


def doubts_grid(trust: Trust) -> Grid:
    """The reasons for doubt, the gravest first, with what each flag means in general."""
    lines = []
    for doubt in trust.doubts:
        kind = KINDS.get(doubt.code)
        meaning = kind.meaning if kind is not None and kind.meaning != doubt.sentence else ""
        weight = WEIGHTS[doubt.weight] if doubt.weight < len(WEIGHTS) else "no number to use"
        lines.append((weight, doubt.sentence, meaning, "" if doubt.weight >= len(WEIGHTS) else str(doubt.weight)))
    return Grid(("Doubt", "Why", "What that means", "Weight"), tuple(lines), frozenset({"Weight"}))
