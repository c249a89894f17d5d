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
from harness.judgement.figures import batch_of, runtime_of, value_of, weights_of
from harness.judgement.systems import hardware_name
from harness.judgement.validity import CHOOSING_TARGETS, NO_PROMISE
from harness.records import Accuracy, Gate

Kind = Literal["like_for_like", "tuned", "with_caveats", "not_comparable"]
Names = tuple[str, str]

TITLES: dict[Kind, str] = {
    "like_for_like": "like for like",
    "tuned": "tuned",
    "with_caveats": "with caveats",
    "not_comparable": "not comparable",
}
METRIC_WORDS = {"official": "declared value", "first_answer": "time of a first answer"}
# What a scenario's parameters mean for its numbers. Others (how long a window lasts) change no number's meaning; an unknown
# scenario is compared by all it has.
PARAMETERS = {
    "single_stream": (),
    "offline": (),
    "multi_stream": ("samples_per_query",),
    "server": ("limit_ms", "percentile"),
    "duty_cycle": ("period_s",),
    "sustained": ("duration_s",),
    "cold_start": ("file_cache", "compile_cache"),
}
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
    broken, unknown = _contract(a, b, names)
    broken = [*_sides(a, b, metric, names), *broken]
    if metric == "energy":
        broken += _energy(a, b, names)
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


def _contract(a: ComparableRow, b: ComparableRow, names: Names) -> tuple[list[str], list[str]]:
    """What of the contract differs, and what of it is not known on a side."""
    broken: list[str] = []
    unknown: list[str] = []
    if a.workload != b.workload:
        family = f" of the family {a.family}" if a.family and a.family == b.family else ""
        broken.append(f"Other workloads{family}: {weights_of(a)} ({names[0]}), {weights_of(b)} ({names[1]}).")
    _dataset(a, b, names, broken, unknown)
    if a.scenario != b.scenario:
        pair = (a.scenario.replace("_", " "), b.scenario.replace("_", " "))
        broken.append(_differs("scenario", *pair, names))
    else:
        keys = PARAMETERS.get(a.scenario, tuple(sorted({*a.scenario_parameters, *b.scenario_parameters})))
        for key in keys:
            here, there = a.scenario_parameters.get(key), b.scenario_parameters.get(key)
            if here != there:
                broken.append(_differs(f"scenario's {key.replace('_', ' ')}", _said(here), _said(there), names))
    metrics = (a.accuracy_metric, b.accuracy_metric)
    if None not in metrics and metrics[0] != metrics[1] and a.workload == b.workload:
        broken.append(_differs("accuracy metric", str(metrics[0]), str(metrics[1]), names))
    for field, here, there in (
        ("batch", batch_of(a), batch_of(b)),
        ("input size", a.input_size, b.input_size),
        ("timed boundary", a.boundary.replace("_", " "), b.boundary.replace("_", " ")),
    ):
        if here == there and (here is not None or field == "input size"):
            continue
        if here is not None and there is not None:
            broken.append(_differs(field, str(here), str(there), names))
        for value, name in ((here, names[0]), (there, names[1])):
            if value is None:
                unknown.append(f"The {field} of {name} is not known.")
    return broken, unknown


def _dataset(a: ComparableRow, b: ComparableRow, names: Names, broken: list[str], unknown: list[str]) -> None:
    """Data by name and digest. Of what we measured, None means seeded noise; of what is imported, that it is not told."""
    if a.dataset == b.dataset and (a.dataset is not None or a.source_kind == b.source_kind == "measured"):
        return
    for row, name in zip((a, b), names, strict=True):
        if row.dataset is None and row.source_kind != "measured":
            unknown.append(f"The data of {name} are not known.")
            return
    here, there = (row.dataset or "random inputs" for row in (a, b))
    if here.partition("@")[0] != there.partition("@")[0]:
        broken.append(_differs("dataset", here.partition("@")[0], there.partition("@")[0], names))
    elif "" in (here.partition("@")[2], there.partition("@")[2]):
        unknown.append(f"Whether both used the same edition of {here.partition('@')[0]} is not known.")
    else:
        broken.append(f"Other editions of the dataset {here.partition('@')[0]} (their digests differ).")


def _energy(a: ComparableRow, b: ComparableRow, names: Names) -> list[str]:
    """Energy also needs one place of metering, one kind of reading, and weights whose values are those of the network."""
    found = []
    if a.energy_scope is None or a.energy_scope != b.energy_scope:
        found.append(_differs("place of metering", _said(a.energy_scope), _said(b.energy_scope), names))
    if (a.energy_quality == "estimated") != (b.energy_quality == "estimated"):
        found.append("An estimate of energy is never compared with a measurement.")
    if "seeded" in a.workload or "seeded" in b.workload:
        # Published: the values of the data alone move a GPU's power by 40 % and more.
        found.append("Seeded weights change power, so their energy says nothing about the trained network.")
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
        found.append(_differs("statistic", here, there, names))
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
    return [_differs(field, _said(here), _said(there), names) for field, here, there in pairs if here != there]


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


def _differs(field: str, here: str, there: str, names: Names) -> str:
    return f"Differs in {field}: {here} ({names[0]}), {there} ({names[1]})."


def _said(value: object) -> str:
    return "not known" if value is None else str(value)


def _short(digest: str | None) -> str | None:
    return None if digest is None else digest[:12]
