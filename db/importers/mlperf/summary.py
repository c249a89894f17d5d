"""Reading LoadGen's mlperf_log_summary.txt. Pure: text in, numbers out exactly as printed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness.errors import RecordError

SCENARIOS = {
    "SingleStream": "single_stream",
    "MultiStream": "multi_stream",
    "Server": "server",
    "Offline": "offline",
}
PERCENTILES = {"50.00": "p50", "90.00": "p90", "95.00": "p95", "97.00": "p97", "99.00": "p99", "99.90": "p99_9"}
_LINE = re.compile(r"^\s*(?P<name>[A-Za-z0-9][^:]*?)\s*:\s*(?P<value>.*?)\s*$")
_NUMBER = re.compile(r"^\d{1,20}(\.\d{1,18})?([eE][+-]?\d{1,2})?$")
_NOTE = re.compile(r"^\s*\*\s*(?P<text>.+?)\s*$")
_ESTIMATE = re.compile(r"^Early stopping (?P<percent>\d+(?:\.\d+)?)th percentile estimate: (?P<ns>\d+)$")
_PROCESSED = re.compile(r"^Processed at least \d+ queries \((?P<count>\d+)\)\.$")
_COUNTED = re.compile(r"^(?P<count>\d+|No) (?P<kind>warning|error)s? encountered", re.IGNORECASE)


@dataclass(frozen=True)
class Summary:
    """One LoadGen execution as its summary prints it. Latencies in whole nanoseconds; None where nothing is printed."""

    scenario: str  # our name for it
    valid: bool
    unsatisfied: tuple[str, ...]  # conditions printed as "NO"
    recommendations: tuple[str, ...]
    min_ns: int | None
    mean_ns: int | None
    max_ns: int | None
    percentiles_ns: dict[str, int]  # p50, p90, p95, p97, p99, p99_9
    early_stopping_ns: dict[str, int]  # by percent as printed: "90", "99"
    queries: int | None
    samples_per_second: float | None  # Offline
    scheduled_per_second: float | None  # Server
    completed_per_second: float | None  # Server
    qps_with_overhead: float | None
    qps_without_overhead: float | None
    warnings: int
    errors: int
    sut: str | None = None
    parameters: dict[str, float] = field(default_factory=dict)  # "Test Parameters Used", as printed


def read_summary(text: str) -> Summary:
    """Read a summary. Raises RecordError, without the file's name, when it is none or a needed line is missing."""
    lines = text.splitlines()
    if not any("MLPerf Results Summary" in line for line in lines[:5]):
        raise RecordError("it is not a LoadGen summary (its first lines do not say so)")
    values, notes, parameters = _sorted_lines(lines)
    for printed, again in (("90th", "90.00"), ("99th", "99.00")):
        names = (f"{printed} percentile latency (ns)", f"{again} percentile latency (ns)")
        if len({values[name] for name in names if name in values}) > 1:
            raise RecordError(f"its lines {names[0]!r} and {names[1]!r} differ")
    scenario = SCENARIOS.get(values.get("Scenario", ""))
    if scenario is None:
        raise RecordError(f"its scenario is {values.get('Scenario')!r}, which is none of {', '.join(SCENARIOS)}")
    mode = values.get("Mode", "")
    if mode not in {"PerformanceOnly", "Performance"}:
        raise RecordError(f"its mode is {mode!r}, not PerformanceOnly, so its times are no result")
    verdict = values.get("Result is")
    if verdict not in {"VALID", "INVALID"}:
        raise RecordError(f"its result is {verdict!r}, neither VALID nor INVALID")
    return Summary(
        scenario=scenario,
        valid=verdict == "VALID",
        unsatisfied=tuple(
            name for name, value in values.items() if name.endswith("satisfied") and value.lower() == "no"
        ),
        recommendations=tuple(note for note in notes if not note.startswith(("Early stopping", "Processed", "Would"))),
        min_ns=_whole(values, "Min latency (ns)"),
        mean_ns=_whole(values, "Mean latency (ns)"),
        max_ns=_whole(values, "Max latency (ns)"),
        percentiles_ns={
            ours: nanoseconds
            for printed, ours in PERCENTILES.items()
            if (nanoseconds := _whole(values, f"{printed} percentile latency (ns)")) is not None
        },
        early_stopping_ns={
            found["percent"]: int(found["ns"]) for note in notes if (found := _ESTIMATE.match(note)) is not None
        },
        queries=next((int(found["count"]) for note in notes if (found := _PROCESSED.match(note)) is not None), None),
        samples_per_second=_number(values, "Samples per second"),
        scheduled_per_second=_number(values, "Scheduled samples per second"),
        completed_per_second=_number(values, "Completed samples per second"),
        qps_with_overhead=_number(values, "QPS w/ loadgen overhead"),
        qps_without_overhead=_number(values, "QPS w/o loadgen overhead"),
        warnings=_counted(lines, "warning"),
        errors=_counted(lines, "error"),
        sut=values.get("SUT name") or None,
        parameters=parameters,
    )


def _sorted_lines(lines: list[str]) -> tuple[dict[str, str], list[str], dict[str, float]]:
    """Split into "name : value" lines, bulleted notes, and the numbers under "Test Parameters Used"."""
    values: dict[str, str] = {}
    notes: list[str] = []
    parameters: dict[str, float] = {}
    in_parameters = False
    for line in lines:
        if "Test Parameters Used" in line:
            in_parameters = True
        elif (note := _NOTE.match(line)) is not None:
            notes.append(note["text"])
        elif (pair := _LINE.match(line)) is not None:
            name, value = pair["name"], pair["value"]
            if in_parameters:
                if _NUMBER.match(value):
                    parameters[name] = float(value) if "." in value or "e" in value.lower() else int(value)
            elif values.setdefault(name, value) != value:
                raise RecordError(f"it says {name!r} twice and differently")
    return values, notes, parameters


def _number(values: dict[str, str], name: str) -> float | None:
    text = values.get(name)
    if text is None:
        return None
    if not _NUMBER.match(text):
        raise RecordError(f"its line {name!r} holds {text!r}, which is not a number")
    return float(text)


def _whole(values: dict[str, str], name: str) -> int | None:
    text = values.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RecordError(f"its line {name!r} holds {text!r}, which is not a whole number of nanoseconds")
    return int(text)


def _counted(lines: list[str], kind: str) -> int:
    """The number in "2 warnings encountered."; 0 for "No errors encountered"."""
    for line in lines:
        found = _COUNTED.match(line.strip())
        if found is not None and found["kind"].lower() == kind:
            return 0 if found["count"].lower() == "no" else int(found["count"][:9])
    return 0
