"""What a person sees at the end of a run: one table, and what did not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from harness.judgement.first_answer import first_answer_spread
from harness.judgement.flags import NOT_NARROW, RANDOM_INPUTS, TRIALS_DISAGREE
from harness.judgement.sweeps import sweeps_of
from harness.judgement.trust import trust_of_measurement
from harness.records import Case, Measurement, Run, Source
from harness.runner.plan import Selection, own_name

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = (
    "workload", "backend", "target", "precision", "scenario", "p50 ms", "p99 ms", "per s", "within", "accuracy", "trust",
    "status", "reason",
)  # fmt: skip
NUMBERS = COLUMNS[5:10]
SPARSE = ("within", "accuracy")  # columns that are left out where no case has them
MEASURED = Source("measured", "weighbridge")
UNSTEADY = "ok, unsteady"
GATE_FAILED = "gate failed"  # a valid number of a model that answers too badly to win anything
QUIET = ("unsupported", "skipped")  # no case of its own row: one line for all that share the reason


def table_rows(measurements: Iterable[Measurement]) -> list[tuple[str, ...]]:
    """Return the rows. What cannot run for one and the same reason is one row per backend and target."""
    measurements = tuple(measurements)
    several = len({m.case.threads for m in measurements if m.status == "ok" and m.case.threads is not None}) > 1
    rows: dict[tuple[str, ...], list[Measurement]] = {}
    for measurement in measurements:
        case = measurement.case
        alone = measurement.status not in QUIET
        key = (measurement.measurement_id,) if alone else (case.backend, case.target, measurement.reason or "")
        rows.setdefault(key, []).append(measurement)
    ordered = sorted(rows.values(), key=lambda group: group[0].status in QUIET)  # gaps come last
    return [_row(group, several) for group in ordered]


def _row(group: Sequence[Measurement], several_threads: bool) -> tuple[str, ...]:
    first = group[0]
    case, latency, accuracy = first.case, first.latency_ms, first.accuracy
    workloads = list(dict.fromkeys(one.case.workload for one in group))
    scenarios = list(dict.fromkeys(one.case.scenario for one in group))
    scenario = " ".join(scenarios)
    if len(group) == 1:
        scenario += f" b{case.batch}" if case.batch > 1 else ""
        scenario += "".join(f" {word}" for word in parameters_in_words(case))
        scenario += f" t{case.threads}" if several_threads and case.threads is not None else ""
    ran = first.effective.precision if first.effective else None
    # The vendor's own choice is measured under its own name.
    precision = f"{ran} (default)" if ran and case.requested_precision == "default" else ran or case.requested_precision
    return (
        workloads[0] if len(workloads) == 1 else f"{len(workloads)} workloads",
        case.backend,
        case.target,
        precision,
        scenario,
        _number(latency.p50.value if latency else None),
        _number(latency.p99.value if latency else None),
        _number(first.throughput_per_s),
        _within(first),
        f"{accuracy.value:.1%}" if accuracy is not None and accuracy.value is not None else "",
        trust_of_measurement(first, MEASURED).grade if first.status == "ok" else "",
        _status(first),
        first.reason
        or "; ".join(
            [*_first_answer(first), *_no_rate(first), *(f.message for f in first.flags if f.code == RANDOM_INPUTS)]
        ),
    )


def parameters_in_words(case: Case) -> list[str]:
    """Return what tells one case of a scenario from another, as short as a table needs it."""
    given = case.scenario_parameters
    words = []
    if "samples_per_query" in given:
        words.append(f"n{given['samples_per_query']}")
    if given.get("limit_ms") is not None:
        words.append(f"{given['limit_ms']:g} ms")
    words += [f"{given[name]:g} s" for name in ("period_s", "duration_s") if isinstance(given.get(name), float)]
    if "file_cache" in given:
        words.append(f"{given['file_cache']} file")
    if given.get("compile_cache", "off") != "off":
        words.append(f"{given['compile_cache']} compile cache")
    return words + ([f"s{case.streams}"] if case.streams is not None else [])


def _within(measurement: Measurement) -> str:
    """How far the interval of the case's own figure reaches from it; empty where there is no interval."""
    width = measurement.sampling.reached_half_width if measurement.sampling is not None else None
    return f"{width:.1%}" if width is not None else ""


def _first_answer(measurement: Measurement) -> list[str]:
    cold = measurement.cold_start_ms
    if cold is None or measurement.case.scenario != "cold_start":
        return []
    found = first_answer_spread({**asdict(cold), "import": cold.import_})
    if found.value is None:
        return []
    return [
        f"the first answer came after {_number(found.value)} ms ({' '.join(parameters_in_words(measurement.case))})"
    ]


def _no_rate(measurement: Measurement) -> list[str]:
    """Why a server case names no rate: beside the empty cell, what was missing."""
    curve = measurement.rate_curve
    return [curve.reason.rstrip(".")] if curve is not None and curve.highest_met_per_s is None and curve.reason else []


def _status(measurement: Measurement) -> str:
    if measurement.status != "ok":
        return measurement.status
    if measurement.accuracy is not None and measurement.accuracy.gate == "failed":
        return GATE_FAILED
    return UNSTEADY if _unsteady(measurement) else "ok"


def _unsteady(measurement: Measurement) -> bool:
    return any(flag.code == TRIALS_DISAGREE for flag in measurement.flags)


def _number(value: float | None) -> str:
    """Return at least three significant digits, without an exponent."""
    if value is None:
        return ""
    digits = 0 if value >= 1000 else 1 if value >= 100 else 2 if value >= 10 else 3 if value >= 0.1 else 4
    return f"{value:.{digits}f}"


def complaints(run: Run, selection: Selection) -> list[str]:
    """Return what was asked for and does not hold; empty means exit status 0.

    A case that failed or is invalid always counts. What is unsupported counts where it was asked for by name, and nothing of
    that name ran, or where nothing ran at all.
    """
    found = []
    broken = [m for m in run.measurements if m.status in ("failed", "invalid")]
    if broken:
        found.append(f"{len(broken)} of {len(run.measurements)} cases failed or are invalid; the reasons are above.")
    lost = [t for m in run.measurements for t in m.trials if t.status == "failed" and m.status == "ok"]
    if lost:
        trials = "trial" if len(lost) == 1 else "trials"
        found.append(f"{len(lost)} {trials} beside the timing failed: {lost[0].reason}")
    asked = (("backend", selection.backends), ("target", selection.targets), ("workload", selection.workloads))
    reasons: dict[str, list[str]] = {}
    for kind, names in asked:
        for name in names:
            named = [m for m in run.measurements if getattr(m.case, kind) == _own(kind, name, m.case.backend)]
            if named and not any(m.status == "ok" or m in broken for m in named):
                reasons.setdefault(named[0].reason or "No reason is known.", []).append(name)
    found += [f"What was asked for did not run ({', '.join(names)}): {reason}" for reason, names in reasons.items()]
    if run.status == "complete" and not found and not any(m.status == "ok" for m in run.measurements):
        found.append("Nothing of it could run here; the reasons are above.")
    if run.status == "interrupted":
        found.append(f"The run was interrupted; `weigh run --resume {run.run_id}` goes on with it.")
    return found


def _own(kind: str, name: str, backend: str) -> str | None:
    return own_name(backend, name) if kind == "target" else name


def print_table(run: Run) -> None:
    """Print the table on standard output, and below it why something did not run as asked."""
    from rich.text import Text

    rows = table_rows(run.measurements)
    reason = COLUMNS.index("reason")
    shown = [
        position
        for position, name in enumerate(COLUMNS)
        if position != reason and (name not in SPARSE or any(row[position] for row in rows))
    ]
    table = plain_table(f"{run.suite.name} on {run.device.name}", [COLUMNS[position] for position in shown], NUMBERS)
    colours = {"ok": "green", "failed": "red", "invalid": "red"}
    for row in rows:
        cells = [Text(row[position]) for position in shown]
        cells[-1].stylize(colours.get(row[COLUMNS.index("status")], "yellow"))
        table.add_row(*cells)
    from harness.terminal import output_console

    console = output_console()
    console.print(table)
    for row in rows:
        if row[reason]:
            console.print(Text(f"{row[0]}, {row[1]} {row[2]}: {row[reason]}"), soft_wrap=True)
    for sweep in sweeps_of(run.measurements):
        case = sweep.case
        where = f"{case.workload}, {case.backend} {case.target}, {case.scenario}"
        console.print(Text(f"{where}: {sweep.sentence}"), soft_wrap=True)
    wide = [m for m in run.measurements if m.status == "ok" and any(flag.code == NOT_NARROW for flag in m.flags)]
    if wide:
        reasons = Counter(
            m.sampling.sentence.rpartition("; ")[2].partition(".")[0] for m in wide if m.sampling is not None
        )
        why = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
        console.print(Text(f"{len(wide)} cases are less sure than was asked for ({why})."), soft_wrap=True)
    for line in blank_percentiles(run.measurements):
        console.print(Text(line), soft_wrap=True)
    if any(row[COLUMNS.index("status")] == UNSTEADY for row in rows):
        words = "Unsteady: the medians of a case's trials lie far apart. Is the machine busy, or its clock not steady?"
        console.print(Text(words), soft_wrap=True)


def blank_percentiles(measurements: Iterable[Measurement]) -> list[str]:
    """Return why cells of a percentile's column are empty though there is a latency: a line for each column and reason."""
    from harness.judgement.summary import PER_MILLE, samples_needed  # numpy, which a table without a run does not need

    measured = [m.latency_ms for m in measurements if m.status == "ok" and m.latency_ms is not None]
    lines = []
    for name in ("p50", "p99"):
        needed = f"it takes {samples_needed(PER_MILLE[name])} independent samples"
        reasons = [
            q.reason or "no reason is recorded" for q in (getattr(one, name) for one in measured) if q.value is None
        ]
        counted = Counter(needed if reason.startswith("too few") else reason for reason in reasons)
        for why, count in counted.most_common():
            where = f" in {count} of {len(measured)} cases" if len(measured) > 1 else ""
            lines.append(f"No {name}{where}: {why}; see `weigh results --json`.")
    return lines


def plain_table(title: str, columns: Sequence[str], right: Iterable[str]) -> Table:
    """Return an empty table that stays readable in 80 columns and in a file."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table
