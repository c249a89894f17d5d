"""One measurement, number by number: its value, which statistic it is, how it was taken, and why it is not there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dashboard.grids import Grid, placement_words
from dashboard.quality import accuracy_lines, fidelity_lines, self_cost_lines
from dashboard.wording import bounds, number
from harness.judgement.figures import batch_of, statistic_name
from harness.judgement.spread import spread_of
from harness.judgement.validity import CHOOSING_TARGETS

if TYPE_CHECKING:
    from db.queries import ResultRow

PERCENTILES = (("p50", "p50_ms"), ("p90", "p90_ms"), ("p95", "p95_ms"), ("p99", "p99_ms"), ("p99.9", "p99_9_ms"))
NOT_TOLD = "not told by the runtime"
NOT_RECORDED = "not recorded"


def numbers_grid(row: ResultRow) -> Grid:
    """Every number of a measurement with its unit, and how it came about or why it is missing."""
    lines = [
        *_latency(row),
        *_rates(row),
        *_energy(row),
        *accuracy_lines(row),
        *fidelity_lines(row),
        *self_cost_lines(row),
        *_memory(row),
        *_cold_start(row),
        *_stages(row),
    ]
    return Grid(("Number", "Value", "Unit", "How it was taken"), tuple(lines), frozenset({"Value"}))


def execution_grid(row: ResultRow) -> Grid:
    """What was asked for beside what really ran, as the runtime itself says."""
    effective = row.effective or {}
    placement = effective.get("placement") or {}
    lines = [
        ("Backend", row.backend, _runtime(row)),
        ("Target", row.target, _ran_on(row)),
        ("Compute unit", row.compute_unit or "", _unit(row)),
        ("Precision", _requested(row), row.effective_precision or NOT_TOLD),
        ("Threads", _default(row.threads), _told(row.effective_threads)),
        ("Streams", _default(row.streams), _told(row.effective_streams)),
        ("Batch", str(batch_of(row) or "not told by the source"), ""),
        ("Input size", row.input_size or NOT_RECORDED, ""),
        ("Timed boundary", row.boundary.replace("_", " "), ""),
        ("Scenario", row.scenario.replace("_", " "), _pairs(row.scenario_parameters)),
        ("Devices", "", ", ".join(str(name) for name in effective.get("devices") or ()) or NOT_TOLD),
        ("Placement", "", placement_words(effective) or "not looked at"),
        ("Placement of nodes", "", _shares(placement.get("nodes")) or "not looked at"),
        ("Placement of time", "", _shares(placement.get("time")) or "not looked at"),
        ("How placement was found", "", str(placement.get("method") or "not recorded")),
        ("Runtime's settings", "", _pairs(effective.get("details")) or "none recorded"),
    ]
    return Grid(("", "Asked for", "Really ran"), tuple(lines))


def artifact_grid(row: ResultRow, artifact: Mapping[str, Any] | None) -> Grid:
    """The model file and its lineage down to the source's digest."""
    if artifact is None:
        known = "no model file is recorded for this measurement"
        return Grid(("", "Value"), (("Model file", known), ("Precision", row.artifact_precision)))
    size = artifact.get("bytes")
    lines = [
        ("File", artifact.get("name")),
        ("Format", artifact.get("format")),
        ("Precision", artifact.get("precision")),
        ("SHA-256", artifact.get("sha256")),
        ("Size", f"{number(size / 1e6)} MB" if size else None),
        ("Source", artifact.get("source")),
        ("SHA-256 of the source", artifact.get("source_sha256")),
        ("Recipe", artifact.get("recipe")),
        ("SHA-256 of the recipe", artifact.get("recipe_sha256")),
        ("Tools", _pairs(artifact.get("tools"))),
        ("SHA-256 of the weights", artifact.get("source_weights")),
        ("Calibrated with", artifact.get("calibration")),
        ("Licence", artifact.get("licence")),
    ]
    return Grid(("", "Value"), tuple((name, str(value or NOT_RECORDED)) for name, value in lines))


def _latency(row: ResultRow) -> list[tuple[str, str, str, str]]:
    if row.latency_count is None and row.p50_ms is None:
        why = "offline queue times are no latency" if row.scenario == "offline" else row.reason or NOT_RECORDED
        return [("Latency", "", "ms", why)]
    of = (
        "samples of the source's run"
        if row.source_kind == "imported"
        else "samples of all timing trials, warm-up left out"
    )
    count = "" if row.latency_count is None else f"{row.latency_count:,}"
    lines = [("Samples", count, "", of if count else "not given by the source")]
    for name, value in (("Mean", row.latency_mean_ms), ("Min", row.latency_min_ms), ("Max", row.latency_max_ms)):
        lines.append(
            (name, number(value), "ms", "over all samples" if value is not None else "not given by the source")
        )
    for name, field in PERCENTILES:
        value = getattr(row, field)
        quantile = (row.quantiles or {}).get(field.removesuffix("_ms")) or {}
        lines.append((name, number(value), "ms", _quantile_words(quantile, value)))
    return lines


def _quantile_words(quantile: Mapping[str, Any], value: float | None) -> str:
    if value is None:
        return str(quantile.get("reason") or "not given by the source")
    low, high = quantile.get("low"), quantile.get("high")
    # What the two are, an interval or only a range, is said by the method.
    ends = f"{number(low)} to {number(high)} ms" if low is not None and high is not None else ""
    return ", ".join(part for part in (str(quantile.get("method") or "sample at floor(n p)"), ends) if part)


def _rates(row: ResultRow) -> list[tuple[str, str, str, str]]:
    missing = "not given by the source" if row.source_kind == "imported" else row.reason or NOT_RECORDED
    counted = "samples finished over the timed window"
    how = (row.throughput or {}).get("method")
    sure = bounds(spread_of(row.throughput, row.throughput_per_s))
    words = ", ".join(part for part in (counted, str(how) if how else "", f"{sure} per s" if sure else "") if part)
    lines = [("Throughput", number(row.throughput_per_s), "samples/s", words if row.throughput_per_s else missing)]
    if row.official_value is not None:
        words = f"{statistic_name(row.official_metric)}, as declared by {row.source_name}"
        lines.append(("Declared result", number(row.official_value), row.official_unit or "", words))
    return lines


def _energy(row: ResultRow) -> list[tuple[str, str, str, str]]:
    energy = row.energy or {}
    if row.energy_j is None:
        return [("Energy per inference", "", "mJ", row.energy_reason or "not measured")]
    names = ("source", "scope", "method", "quality")
    how = ", ".join(f"{name} {energy[name]}" for name in names if energy.get(name)) or NOT_RECORDED
    lines = [("Energy per inference", number(row.energy_j * 1000), "mJ", f"{how}{_note(row.energy_reason)}")]
    if row.energy_net_j is not None:
        lines.append(("Energy per inference, idle subtracted", number(row.energy_net_j * 1000), "mJ", how))
    for title, value in (
        ("Mean power", row.power_w),
        ("Idle power", energy.get("idle_w")),
        ("Power loaded but waiting", energy.get("loaded_idle_w")),
    ):
        if value is not None:
            lines.append((title, number(value), "W", how))
    return lines


def _memory(row: ResultRow) -> list[tuple[str, str, str, str]]:
    lines = [("Peak memory", number(row.peak_rss_mb), "MB", "resident set of the worker process")]
    if row.peak_rss_mb is None:
        lines = [
            ("Peak memory", "", "MB", "not given by the source" if row.source_kind == "imported" else NOT_RECORDED)
        ]
    if row.device_memory_mb is not None:
        lines.append(("Device memory", number(row.device_memory_mb), "MB", "as the runtime tells"))
    return lines


def _cold_start(row: ResultRow) -> list[tuple[str, str, str, str]]:
    parts = dict(row.cold_start_ms or {})
    caches = parts.pop("caches", None) or {}
    parts.pop("intervals", None)
    words = "median of the trials" + (f"; caches: {_pairs(caches)}" if caches else "")
    return [
        (f"Cold start, {name.replace('_', ' ')}", number(value), "ms", words)
        for name, value in parts.items()
        if value is not None
    ]


def _stages(row: ResultRow) -> list[tuple[str, str, str, str]]:
    return [
        (f"Stage, {name}", number(value), "ms", "median of one sample, timed apart")
        for name, value in (row.stages_ms or {}).items()
        if value is not None
    ]


def _note(reason: str | None) -> str:
    return f". {reason}" if reason else ""


def _runtime(row: ResultRow) -> str:
    return " ".join(part for part in (row.runtime, row.runtime_version) if part) or NOT_TOLD


def _unit(row: ResultRow) -> str:
    if row.hardware_model is None:
        return NOT_TOLD
    return row.hardware_model if (row.unit_count or 1) == 1 else f"{row.unit_count} x {row.hardware_model}"


def _ran_on(row: ResultRow) -> str:
    """The target that ran. A word that leaves the choice to the runtime is none: then the devices it used."""
    if row.target.lower().partition(":")[0] not in CHOOSING_TARGETS:
        return row.effective_target or NOT_TOLD
    devices = ", ".join(str(name) for name in (row.effective or {}).get("devices") or ())
    return f"the runtime chose: {devices or row.effective_target or NOT_TOLD}"


def _requested(row: ResultRow) -> str:
    asked = "the vendor's default" if row.requested_precision == "default" else row.requested_precision
    return f"{asked}, model file {row.artifact_precision}"


def _default(value: int | None) -> str:
    return "the runtime's default" if value is None else str(value)


def _told(value: int | None) -> str:
    return NOT_TOLD if value is None else str(value)


def _pairs(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (values or {}).items())


def _shares(shares: Mapping[str, float] | None) -> str:
    return ", ".join(f"{name} {share * 100:.0f} %" for name, share in (shares or {}).items())
