"""Which execution provider took which share of the nodes and of the time, and in which types the kernels answered."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NODE_SUFFIX = "_kernel_time"
INSERTED_CAST = "InsertedPrecisionFreeCast"
# Element types of a kernel's results, as the profile names them. Other types (indices, shapes) are no arithmetic.
PRECISIONS = {
    "float": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "double": "fp64",
    "int8": "int8",
    "uint8": "int8",
}


@dataclass(frozen=True)
class Profile:
    """What really executed, after fusion: shares of kernels and of their time, by provider.

    Each kernel's first call is left out where there are more: it allocates, packs weights, and chooses algorithms.
    """

    kernels: dict[str, float]
    time: dict[str, float]
    casts_inserted: bool  # nodes without a kernel in the file's precision were computed in fp32
    time_by_precision: dict[str, float]  # by the type of the kernels' results; empty where the profile does not tell


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
    kernels = [event for event in (events if isinstance(events, list) else []) if _is_kernel(event)]
    calls = Counter(str(event["name"]) for event in kernels)
    started: set[str] = set()
    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    precisions: Counter[str] = Counter()
    for event in kernels:
        name, arguments = str(event["name"]), event["args"]
        if calls[name] > 1 and name not in started:
            started.add(name)
            continue
        spent = int(event.get("dur", 0))
        counts[arguments["provider"]] += 1
        times[arguments["provider"]] += spent
        precision = _precision(arguments.get("output_type_shape"))
        if precision is not None:
            precisions[precision] += spent
    casts = any(name.startswith(INSERTED_CAST) for name in calls)
    return Profile(_shares(counts), _shares(times), casts, _shares(precisions)) if counts else None


def _is_kernel(event: Any) -> bool:
    if not isinstance(event, dict) or event.get("cat") != "Node" or not str(event.get("name")).endswith(NODE_SUFFIX):
        return False
    arguments = event.get("args")
    return isinstance(arguments, dict) and bool(arguments.get("provider"))


def _precision(outputs: Any) -> str | None:
    """The precision of a kernel's first result that holds numbers: outputs are listed as {type: shape}."""
    for output in outputs if isinstance(outputs, list) else []:
        for kind in output if isinstance(output, dict) else ():
            if kind in PRECISIONS:
                return PRECISIONS[kind]
    return None


def _shares(counts: Counter[str]) -> dict[str, float]:
    total = sum(counts.values())
    if total == 0:
        return {}
    return {name: count / total for name, count in sorted(counts.items())}
