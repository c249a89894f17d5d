"""What must be the same in two measurements, or their numbers answer different questions: a comparison's contract. Pure."""

from __future__ import annotations

from harness.judgement.comparable import ComparableRow
from harness.judgement.figures import batch_of, value_of, weights_of

Names = tuple[str, str]  # what the two sides are called in a reason

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


def contract_of(a: ComparableRow, b: ComparableRow, names: Names) -> tuple[list[str], list[str]]:
    """What of the contract differs, and what of it is not known on a side."""
    broken: list[str] = []
    unknown: list[str] = []
    if a.workload != b.workload:
        family = f" of the family {a.family}" if a.family and a.family == b.family else ""
        broken.append(f"Other workloads{family}: {weights_of(a)} ({names[0]}), {weights_of(b)} ({names[1]}).")
    _dataset(a, b, names, broken, unknown)
    if a.scenario != b.scenario:
        pair = (a.scenario.replace("_", " "), b.scenario.replace("_", " "))
        broken.append(differs("scenario", *pair, names))
    else:
        keys = PARAMETERS.get(a.scenario, tuple(sorted({*a.scenario_parameters, *b.scenario_parameters})))
        for key in keys:
            here, there = a.scenario_parameters.get(key), b.scenario_parameters.get(key)
            if here != there:
                broken.append(differs(f"scenario's {key.replace('_', ' ')}", said(here), said(there), names))
    metrics = (a.accuracy_metric, b.accuracy_metric)
    if None not in metrics and metrics[0] != metrics[1] and a.workload == b.workload:
        broken.append(differs("accuracy metric", str(metrics[0]), str(metrics[1]), names))
    for field, here, there in (
        ("batch", batch_of(a), batch_of(b)),
        ("input size", a.input_size, b.input_size),
        ("timed boundary", a.boundary.replace("_", " "), b.boundary.replace("_", " ")),
    ):
        if here == there and (here is not None or field == "input size"):
            continue
        if field == "input size" and here is not None and there is not None and _extents(a) == _extents(b):
            continue  # channels first or last: the model format's own layout
        if here is not None and there is not None:
            broken.append(differs(field, str(here), str(there), names))
        for value, name in ((here, names[0]), (there, names[1])):
            if value is None:
                unknown.append(f"The {field} of {name} is not known.")
    return broken, unknown


def _extents(row: ComparableRow) -> list[str]:
    """The extents of the input in no order, since formats lay the same picture out in different orders."""
    return sorted((row.input_size or "").split("x"))


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
        broken.append(differs("dataset", here.partition("@")[0], there.partition("@")[0], names))
    elif "" in (here.partition("@")[2], there.partition("@")[2]):
        unknown.append(f"Whether both used the same edition of {here.partition('@')[0]} is not known.")
    else:
        broken.append(f"Other editions of the dataset {here.partition('@')[0]} (their digests differ).")


def energy_contract(a: ComparableRow, b: ComparableRow, names: Names) -> list[str]:
    """Energy also needs one place of metering, one kind of reading, and weights whose values are those of the network."""
    found = []
    if a.energy_scope is None or a.energy_scope != b.energy_scope:
        found.append(differs("place of metering", said(a.energy_scope), said(b.energy_scope), names))
    if (a.energy_quality == "estimated") != (b.energy_quality == "estimated"):
        found.append("An estimate of energy is never compared with a measurement.")
    if "seeded" in a.workload or "seeded" in b.workload:
        # Published: the values of the data alone move a GPU's power by 40 % and more.
        found.append("Seeded weights change power, so their energy says nothing about the trained network.")
    return found


def offered_rate(a: ComparableRow, b: ComparableRow, names: Names) -> list[str]:
    """A server's latency is that of its own highest rate within the limit, or of the lowest offered where none is."""
    rates = [value_of(row, "throughput") for row in (a, b)]
    found = [
        f"{name} kept its limit at no rate that is known, so the load behind its latency is none to compare at."
        for rate, name in zip(rates, names, strict=True)
        if rate is None
    ]
    if not found and rates[0] != rates[1]:
        here, there = (f"{rate:.6g} samples/s" for rate in rates if rate is not None)
        found.append(differs("offered rate behind the latency", here, there, names))
    return found


def differs(field: str, here: str, there: str, names: Names) -> str:
    """The sentence of one difference."""
    return f"Differs in {field}: {here} ({names[0]}), {there} ({names[1]})."


def said(value: object) -> str:
    """A value, or that it is not known."""
    return "not known" if value is None else str(value)
