"""What the workers of a case told about what really ran: joined, or refused where they do not agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.records import Effective, Memory, Placement
from harness.runner.cases import compute_unit_of
from harness.runner.trial_process import Outcome

PROFILED = ("time_by_precision", "time_by_layer_type")  # details that need the profiler


def unlike(good: Sequence[Outcome]) -> str | None:
    """Say what differed between the trials of a case: a runtime that chooses may choose anew in each process."""
    for name in ("target", "precision", "devices"):
        told = [(outcome.document.get("report") or {}).get(name) for outcome in good]
        different = dict.fromkeys(
            ", ".join(map(str, value)) if isinstance(value, list) else str(value or "unknown") for value in told
        )
        if len(different) > 1:
            return f"The trials did not run alike, so their times do not belong together: {name} {' and '.join(different)}."
    return None


def effective_of(device_index: int, good: Sequence[Outcome], placements: Sequence[Outcome]) -> Effective:
    """Return what the first trial's runtime reports, with what only the placement trial can see, if there is one.

    That is shares of nodes and time; the precision, where the session alone does not tell it; and the target: a profile of
    executed kernels shows a fallback that the session hides.
    """
    report: Mapping[str, Any] = good[0].document.get("report") or {}
    placed: Mapping[str, Any] = (placements[0].document.get("report") if placements else None) or report
    nodes = placed.get("placement_nodes")
    target = placed.get("target") or report.get("target")
    seen = placed.get("details") or {}
    details = {
        **(report.get("details") or {}),
        **{name: seen[name] for name in PROFILED if seen.get(name)},
        "slots": good[0].document.get("slots"),
        "python": good[0].document["python"],
    }
    return Effective(
        target=target,
        compute_unit=compute_unit_of(str(target), device_index) if target else None,
        precision=report.get("precision") or placed.get("precision"),
        threads=report.get("threads"),
        streams=report.get("streams"),
        runtime=report.get("runtime"),
        runtime_version=report.get("runtime_version"),
        devices=tuple(report.get("devices") or ()),
        placement=Placement(dict(nodes), placed.get("placement_time"), placed.get("placement_method"))
        if nodes
        else None,
        details=details,
    )


def memory_of(good: Sequence[Outcome]) -> Memory:
    """Return the largest over trials of what the workers held."""
    resident = [outcome.document["peak_rss_bytes"] for outcome in good if outcome.document.get("peak_rss_bytes")]
    reports = [outcome.document.get("report") or {} for outcome in good]
    device = [report["device_memory_mb"] for report in reports if report.get("device_memory_mb") is not None]
    return Memory(max(resident) / 1e6 if resident else None, max(device) if device else None)
