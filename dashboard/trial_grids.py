"""The trials of a measurement: why there were so many, what each discarded, and what else went on meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dashboard.grids import Grid
from dashboard.wording import bounds, number
from harness.judgement.spread import spread_of

if TYPE_CHECKING:
    from db.queries import ResultRow

STOPPED = {
    "narrow_enough": "the interval was narrow enough",
    "budget_spent": "the budget was spent",
    "fixed": "the suite fixes the number of trials",
    "interrupted": "the run was interrupted",
}


def sampling_grid(row: ResultRow, trials: Sequence[Mapping[str, Any]]) -> Grid:
    """How often the case was repeated, why it ended there, how sure it became, and of how many units it speaks."""
    found = row.sampling or {}
    timing = [trial for trial in trials if trial["kind"] in ("timing", "cold")]
    discarded = [trial["discarded_unsteady"] for trial in timing if trial.get("discarded_unsteady")]
    lines = [("Units measured", _units(row), "intervals speak of this one; another unit may differ by more")]
    lines.append(("Trials", str(found.get("trials") or len(timing) or "none recorded"), "fresh processes"))
    if found:
        asked, reached = found.get("asked_half_width"), found.get("reached_half_width")
        looks = ", ".join(str(look) for look in found.get("looks") or ())
        lines += [
            (
                "Why it stopped",
                STOPPED.get(str(found.get("stopped")), str(found.get("stopped"))),
                found.get("sentence") or "",
            ),
            ("Half of the interval reached", _percent(reached) or "a range, or nothing", ""),
        ]
        figure = f"of the value of {found.get('figure') or 'the figure'}"
        lines += [("Half of the interval asked for", _percent(asked), figure)] if asked is not None else []
        lines += [("Looked at after", looks, "trials; the numbers are fixed beforehand")] if looks else []
    if timing:
        said = f"{sum(discarded):,} samples in {len(discarded)} trials" if discarded else "none"
        lines.append(("Left out as not yet steady", said, "found in each trial, see the table of trials"))
    return Grid(("", "Value", "What it says"), tuple(lines))


def trials_grid(trials: Sequence[Mapping[str, Any]]) -> Grid:
    """The trials of one measurement: each is one fresh process."""
    lines = []
    for trial in trials:
        start, end = trial.get("window_start_ns"), trial.get("window_end_ns")
        window = number((end - start) / 1e9) if start is not None and end is not None else ""
        blobs = ", ".join(f"{blob['what']}: {blob['count']}" for blob in trial["samples"])
        warm = trial.get("discarded_warmup")
        lines.append(
            (
                trial["trial_id"],
                trial["kind"],
                trial["status"],
                window,
                number(trial.get("throughput_per_s")),
                "" if warm is None else str(warm),
                _unsteady(trial),
                conditions_words(trial.get("conditions") or {}),
                blobs,
                trial.get("reason") or "",
            )
        )
    headers = (
        "Trial", "Kind", "Status", "Window (s)", "Throughput (samples/s)", "Warm-up discarded", "Not steady, discarded",
        "Meanwhile", "Samples", "Reason",
    )  # fmt: skip
    return Grid(headers, tuple(lines), frozenset({"Window (s)", "Throughput (samples/s)", "Warm-up discarded"}))


def blob_lines(trials: Sequence[Mapping[str, Any]]) -> list[str]:
    """The whole digest of every blob of raw samples, one a line."""
    return [f"{blob['sha256']}  {trial['trial_id']} {blob['what']}" for trial in trials for blob in trial["samples"]]


def conditions_words(conditions: Mapping[str, Any]) -> str:
    """What else went on during a window: "other load 31 %, steal 0 %, 2,400 to 3,100 MHz, 61 to 72 °C"."""
    parts = [
        f"{name.replace('_', ' ')} {number(conditions[name] * 100)} %"
        for name in ("other_load", "steal")
        if _told(conditions.get(name))
    ]
    limited = _part(conditions, "cgroup").get("throttled")
    parts += [f"held back by its container {number(limited)} times"] if limited and _told(limited) else []
    for name, unit in (("frequency_mhz", "MHz"), ("temperature_c", "°C"), ("gpu_clock_mhz", "MHz (GPU)"),
                       ("gpu_temperature_c", "°C (GPU)")):  # fmt: skip
        level = _part(conditions, name)
        if _told(level.get("low")) and _told(level.get("high")):
            parts.append(f"{number(level['low'])} to {number(level['high'])} {unit}")
    swap = _part(conditions, "swap")
    pages = sum(swap[name] for name in ("pages_in", "pages_out") if _told(swap.get(name)))
    parts += [f"{number(pages)} pages swapped"] if pages else []
    signs = conditions.get("signs")
    if signs and isinstance(signs, (list, tuple)):
        parts.append(f"signs: {', '.join(str(sign).replace('_', ' ') for sign in signs)}")
    return ", ".join(parts)


def _part(conditions: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A group of conditions. A record may come from anybody, and the schema leaves conditions open."""
    found = conditions.get(name)
    return found if isinstance(found, Mapping) else {}


def _told(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _unsteady(trial: Mapping[str, Any]) -> str:
    if trial.get("unsteady_reason"):
        return f"none: {trial['unsteady_reason']}"
    found = trial.get("discarded_unsteady")
    return "" if found is None else str(found)


def _units(row: ResultRow) -> str:
    """One physical machine; where several boards worked as one, that is said."""
    if row.unit_count and row.unit_count > 1:
        return f"1 unit measured, of {row.unit_count} boards or sockets that worked as one"
    return "1 unit measured"


def _percent(share: float | None) -> str:
    return "" if share is None else f"± {number(share * 100)} %"


def rates_grid(curve: Mapping[str, Any], meets: Mapping[str | None, str]) -> Grid:
    """The rate curve as a table, one offered rate a line."""
    lines = []
    for point in curve.get("points") or ():
        percentiles = [spread_of(point.get(name)) for name in ("p50", "p90", "p99")]
        keeps_up = point.get("keeps_up")
        lines.append(
            (
                number(point["offered_per_s"]),
                number(point.get("completed_per_s")),
                f"{point.get('count') or 0:,}",
                *(number(spread.value, "too few") for spread in percentiles),
                bounds(percentiles[-1]),
                "" if keeps_up is None else "yes" if keeps_up else "no, the queue grew",
                meets.get(point.get("meets_limit"), str(point.get("meets_limit"))),
            )
        )
    headers = (
        "Offered (queries/s)", "Completed (queries/s)", "Queries", "p50 (ms)", "p90 (ms)", "p99 (ms)",
        "p99, interval or range", "Keeps up", "Limit",
    )  # fmt: skip
    return Grid(headers, tuple(lines), frozenset(headers[:6]))
