"""Which execution provider took which share of the nodes, and of the time."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NODE_SUFFIX = "_kernel_time"


@dataclass(frozen=True)
class Assignment:
    """What onnxruntime recorded while it split the graph among providers."""

    shares: dict[str, float]
    inserted_casts: int  # nodes that had no kernel in the file's precision and were computed in fp32


def assignment(session: Any) -> Assignment | None:
    """Node shares by provider, or None where this onnxruntime (before 1.24) does not record them."""
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return None
    counts: Counter[str] = Counter()
    casts = 0
    try:
        for part in session.get_provider_graph_assignment_info():
            nodes = part.get_nodes()
            counts[part.ep_name] += len(nodes)
            casts += sum(1 for node in nodes if node.name.startswith("InsertedPrecisionFreeCast"))
    except Exception:  # the record is a comfort; a session without it still measures
        return None
    return Assignment(_shares(counts), casts) if counts else None


def time_shares(profile: Path) -> tuple[dict[str, float], dict[str, float]] | None:
    """Shares of executed kernels and of their time by provider, from onnxruntime's profile. None where it has none.

    This is the truth after fusion: events of category Node whose names end in `_kernel_time`, with args.provider.
    """
    try:
        events = json.loads(profile.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for event in events if isinstance(events, list) else []:
        if event.get("cat") == "Node" and str(event.get("name", "")).endswith(NODE_SUFFIX):
            provider = event.get("args", {}).get("provider")
            if provider:
                counts[provider] += 1
                times[provider] += int(event.get("dur", 0))
    if not counts:
        return None
    return _shares(counts), _shares(times)


def _shares(counts: Counter[str]) -> dict[str, float]:
    total = sum(counts.values())
    if total == 0:
        return {}
    return {name: count / total for name, count in sorted(counts.items())}
