"""Whether two measurements may be compared in one metric, and why: like for like, tuned, with caveats, or not at all. Pure.

- *Contract*: what must be the same, or the two numbers answer different questions. Workload, dataset and accuracy metric,
  scenario and its parameters, batch, input size, timed boundary; for energy also where it was metered. A side that is
  not `ok`, that failed its accuracy gate, or that has no value breaks it too: `not_comparable`.
- *Implementation*: what may differ, because it is what is compared. Hardware, runtime, model format, precision, threads.
  Where the effective precision and the model are the same: `like_for_like` (MLPerf's Closed). Where they are not, and both
  passed the accuracy gate: `tuned` (MLPerf's Open).
- *Caveats*: what is not known, imported results, a gate that is undecided or missing where precisions differ, and flags
  that a comparison must name (`harness.judgement.flags`). Any of them: `with_caveats`.

Verdicts are made when they are read and never stored, so that better rules hold for old data too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from harness.judgement import flags
from harness.judgement.comparable import ComparableRow
from harness.judgement.contract import Names, contract_of, differs, energy_contract, offered_rate, said
from harness.judgement.figures import PERCENTILES, runtime_of, value_of
from harness.judgement.systems import hardware_name
from harness.judgement.validity import CHOOSING_TARGETS, NO_PROMISE
from harness.records import Accuracy, Gate

Kind = Literal["like_for_like", "tuned", "with_caveats", "not_comparable"]

TITLES: dict[Kind, str] = {
    "like_for_like": "like for like",
    "tuned": "tuned",
    "with_caveats": "with caveats",
    "not_comparable": "not comparable",
}
METRIC_WORDS = {"official": "declared value", "first_answer": "time of a first answer"}
# Told by the rules below in words of their own.
_TOLD_OTHERWISE = frozenset(
    {flags.IMPORTED, flags.PRECISION_UNKNOWN, flags.BATCH_UNKNOWN, flags.GATE_UNDECIDED, flags.GATE_FAILED}
)


@dataclass(frozen=True)
class Verdict:
    """The kind, and the reasons by their part; each is a sentence."""

    kind: Kind
    contract: tuple[str, ...] = ()
    implementation: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The kind in words."""
        return TITLES[self.kind]

    @property
    def reasons(self) -> tuple[str, ...]:
        """All of them, what weighs most first."""
        return (*self.contract, *self.caveats, *self.implementation)


def barred(row: ComparableRow) -> str | None:
    """Why it may not stand in front of others in any ranking; None where it may (`accuracy_gate.may_win`)."""
    from harness.judgement.accuracy_gate import may_win  # numpy, which a command must not load to say --help

    accuracy = Accuracy(row.accuracy_metric or "", row.accuracy_value, gate=cast(Gate | None, gate_of(row)))
    allowed, reason = may_win(accuracy, None, [code for code, _ in row.flags])
    return None if allowed else reason


def barred_words(row: ComparableRow) -> str:
    """The same in a few words for a label; empty where it may win."""
    if row.status != "ok":
        return ""
    return "failed the accuracy gate" if gate_of(row) == "failed" else "cannot win" if barred(row) else ""


def judge_pair(a: ComparableRow, b: ComparableRow, metric: str, names: Names = ("A", "B")) -> Verdict:
    """Whether `a` and `b` may be compared in `metric` ("p50", "p90", "p99", "official", "first_answer", "throughput",
    "energy", "accuracy"). `names` stand for the two in the reasons."""
    broken, unknown = contract_of(a, b, names)
    broken = [*_sides(a, b, metric, names), *broken]
    if metric == "energy":
        broken += energy_contract(a, b, names)
    if metric in PERCENTILES and a.scenario == b.scenario == "server":
        broken += offered_rate(a, b, names)
    other = _other_model(a, b)
    caveats = [*unknown, *_caveats(a, b, metric, names)]
    if other and not broken and (gate_of(a), gate_of(b)) != ("passed", "passed"):
        caveats += _gates(a, b, names, other)
    implementation = tuple(_implementation(a, b, names))
    if broken:
        kind: Kind = "not_comparable"
    elif caveats:
        kind = "with_caveats"
    else:
        kind = "tuned" if other else "like_for_like"
    return Verdict(kind, _sentences(broken), implementation, _sentences(caveats))


def _sentences(texts: list[str]) -> tuple[str, ...]:
    """Each once, with a capital, because a side may be called "it"."""
    return tuple(dict.fromkeys(text[:1].upper() + text[1:] for text in texts))


def _sides(a: ComparableRow, b: ComparableRow, metric: str, names: Names) -> list[str]:
    """A side that is no valid number cannot be compared, whatever else is the same."""
    found = []
    for row, name in zip((a, b), names, strict=True):
        if row.status != "ok":
            found.append(f"{name} is {row.status}: {row.reason or 'no reason is recorded'}")
        elif gate_of(row) == "failed":
            found.append(f"{name} failed the accuracy gate{_kept(row)}.")
        elif value_of(row, metric) is None:
            found.append(f"{name} has no {METRIC_WORDS.get(metric, metric)}{_why_not(row, metric)}.")
    return found


def _other_model(a: ComparableRow, b: ComparableRow) -> list[str]:
    """In what the arithmetic or the model differs: the things that may cost accuracy."""
    found = []
    if a.effective_precision != b.effective_precision and None not in (a.effective_precision, b.effective_precision):
        found.append(f"precision ({a.effective_precision} and {b.effective_precision})")
    known = {a.artifact_precision, b.artifact_precision} - {None, "unknown"}
    if len(known) == 2:
        found.append(f"precision of the model file ({a.artifact_precision} and {b.artifact_precision})")
    weights = {a.source_weights, b.source_weights} - {None}
    if a.workload == b.workload and len(weights) == 2:
        found.append("source weights")
    return found


def _gates(a: ComparableRow, b: ComparableRow, names: Names, other: list[str]) -> list[str]:
    """Where the model differs, speed is only worth something when both are still right."""
    found = []
    for row, name in zip((a, b), names, strict=True):
        if gate_of(row) is None:
            found.append(f"They differ in {' and '.join(other)}, and {name} has passed no accuracy gate.")
    return found


def _caveats(a: ComparableRow, b: ComparableRow, metric: str, names: Names) -> list[str]:
    found = []
    part: flags.Part = "energy" if metric == "energy" else "accuracy" if metric == "accuracy" else "time"
    for row, name in zip((a, b), names, strict=True):
        if row.source_kind == "imported":
            found.append(f"{name} is imported: {row.source_name}.")
        if row.effective_precision is None:
            found.append(f"The precision in which {name} computed is not known.")
        elif row.effective_precision not in _promised(row):
            found.append(f"{name} was asked for {row.requested_precision} and ran {row.effective_precision}.")
        if gate_of(row) == "undecided":
            found.append(f"The accuracy gate of {name} is undecided{_kept(row)}.")
        if row.target.lower().partition(":")[0] in CHOOSING_TARGETS:
            devices = ", ".join(str(device) for device in (row.effective or {}).get("devices") or ())
            found.append(
                f"{name} let the runtime choose ({row.target}); it used {devices or 'devices it does not tell'}."
            )
        if metric == "energy" and row.energy_quality == "estimated":
            found.append(f"The energy of {name} is an estimate.")
        for code, message in row.flags:
            kind = flags.kind_of(code)
            if kind.caveat and part in kind.touches and code not in _TOLD_OTHERWISE:
                found.append(f"{name}: {message}")
    if metric in ("throughput", "official") and a.official_metric != b.official_metric:
        here, there = ((row.official_metric or "plain count").replace("_", " ") for row in (a, b))
        found.append(differs("statistic", here, there, names))
    return found


def _implementation(a: ComparableRow, b: ComparableRow, names: Names) -> list[str]:
    pairs = (
        ("hardware", hardware_name(a), hardware_name(b)),
        ("backend", a.backend, b.backend),
        ("target", a.target, b.target),
        ("model format", a.artifact_format, b.artifact_format),
        ("precision of the model file", a.artifact_precision, b.artifact_precision),
        ("effective precision", a.effective_precision, b.effective_precision),
        ("threads", a.effective_threads or a.threads, b.effective_threads or b.threads),
        ("streams", a.streams, b.streams),
        ("runtime", runtime_of(a), runtime_of(b)),
        ("source weights", _short(a.source_weights), _short(b.source_weights)),
    )
    return [differs(field, said(here), said(there), names) for field, here, there in pairs if here != there]


def _promised(row: ComparableRow) -> tuple[str | None, ...]:
    """The effective precisions that keep what was asked for: that of the request, or that of a quantised file."""
    asked = row.requested_precision
    if asked is None or asked in NO_PROMISE:
        return (row.effective_precision,)
    file = row.artifact_precision or ""
    return (asked, file, file.partition("-")[0])


def gate_of(row: ComparableRow) -> str | None:
    """ "passed", "failed" or "undecided"; None where the workload asks for nothing or nothing was measured."""
    gate = (row.accuracy or {}).get("gate")
    return None if gate is None else str(gate)


def _kept(row: ComparableRow) -> str:
    """What it keeps and what is asked for, in brackets, as far as it is known."""
    document = row.accuracy or {}
    relative, target = document.get("relative"), document.get("target")
    if relative is None:
        return ""
    asked = f"; {float(target) * 100:.3g} % is asked for" if target is not None else ""
    return f" (it keeps {float(relative) * 100:.3g} % of the reference{asked})"


def _why_not(row: ComparableRow, metric: str) -> str:
    """ ": 62 samples are too few", where the record gives a reason."""
    reasons = {"energy": row.energy_reason, "accuracy": row.accuracy_reason}
    told = reasons.get(metric) or ((row.quantiles or {}).get(metric) or {}).get("reason")
    return f": {str(told).rstrip('.')}" if told else ""


def _short(digest: str | None) -> str | None:
    return None if digest is None else digest[:12]
