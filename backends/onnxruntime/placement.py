"""Which execution provider took which share of the nodes, and of the time."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NODE_SUFFIX = "_kernel_time"
INSERTED_CAST = "InsertedPrecisionFreeCast"


@dataclass(frozen=True)
class Profile:
    """What really executed, after fusion: shares of kernels and of their time, by provider."""

    kernels: dict[str, float]
    time: dict[str, float]
    casts_inserted: bool  # nodes without a kernel in the file's precision were computed in fp32


def node_shares(session: Any) -> dict[str, float] | None:
    """Shares of nodes by provider as onnxruntime split the graph, or None where it does not record them (before 1.24)."""
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return None
    counts: Counter[str] = Counter()
    try:
        for part in session.get_provider_graph_assignment_info():
            counts[part.ep_name] += len(part.get_nodes())
    except Exception:  # the record is a comfort; a session without it still measures
        return None
    return _shares(counts) or None


def read_profile(path: Path) -> Profile | None:
    """Read onnxruntime's profile: events of category Node whose names end in `_kernel_time`, with args.provider."""
    try:
        events = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    casts = False
    for event in events if isinstance(events, list) else []:
        name = str(event.get("name", ""))
        provider = event.get("args", {}).get("provider")
        if event.get("cat") == "Node" and name.endswith(NODE_SUFFIX) and provider:
            counts[provider] += 1
            times[provider] += int(event.get("dur", 0))
            casts = casts or name.startswith(INSERTED_CAST)
    return Profile(_shares(counts), _shares(times), casts) if counts else None


def _shares(counts: Counter[str]) -> dict[str, float]:
    total = sum(counts.values())
    if total == 0:
        return {}
    return {name: count / total for name, count in sorted(counts.items())}
