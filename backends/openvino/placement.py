"""Which device ran which share of the layers and of the time, in which precision: from OpenVINO's own split and counters.

A plugin for one device runs the whole graph or refuses it. Only HETERO splits a graph; its split is asked for by
`Core.query_model`, which names a device for each operation of the file, before any are fused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PRECISIONS = {
    "float32": "fp32",
    "f32": "fp32",
    "float16": "fp16",
    "f16": "fp16",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "i8": "int8",
    "u8": "int8",
}
HOLDING = ("Constant", "Parameter", "Result")  # operations that compute nothing
WHOLE_GRAPH = "EXECUTION_DEVICES: an OpenVINO plugin runs the whole graph or refuses it"
SPLIT = "Core.query_model: the device of each operation of the file, before any are fused"


@dataclass(frozen=True)
class LayerTimes:
    """Shares of the time of the last request, by kind of layer, by precision of its kernel, by device."""

    by_type: dict[str, float]
    by_precision: dict[str, float]
    by_device: dict[str, float] | None


def split_of(core: Any, model: Any, device: str) -> dict[str, str]:
    """The device of each computing operation, by its name in the file. Empty where OpenVINO does not tell."""
    try:
        assigned = core.query_model(model, device)
    except RuntimeError:
        return {}
    kinds = {operation.get_friendly_name(): operation.get_type_name() for operation in model.get_ops()}
    return {str(name): str(where) for name, where in assigned.items() if kinds.get(name) not in (*HOLDING, None)}


def node_shares(split: Mapping[str, str]) -> dict[str, float] | None:
    """Shares of operations by device."""
    return shares(Counter(split.values())) or None


def layer_times(layers: Iterable[Any], split: Mapping[str, str]) -> LayerTimes:
    """Shares from a request's profiling info (ov::ProfilingInfo).

    Of a split graph each layer's name begins with its part ("subgraph1: conv"); layers that OpenVINO put in itself, such as
    reorders, count for the device of the rest of their part.
    """
    kinds: Counter[str] = Counter()
    precisions: Counter[str] = Counter()
    parts: dict[str, Counter[str]] = {}
    votes: dict[str, Counter[str]] = {}
    for layer in layers:
        spent = int(layer.real_time.total_seconds() * 1e6)
        kinds[layer.node_type] += spent
        precision = PRECISIONS.get(str(layer.exec_type).rsplit("_", 1)[-1].lower())
        if precision is not None:
            precisions[precision] += spent
        part, _, name = str(layer.node_name).rpartition(": ")
        where = split.get(name)
        parts.setdefault(part, Counter())[where or ""] += spent
        if where is not None:
            votes.setdefault(part, Counter())[where] += 1
    devices: Counter[str] = Counter()
    for part, spent_by in parts.items():
        usual = votes[part].most_common(1)[0][0] if part in votes else ""
        for where, spent in spent_by.items():
            devices[where or usual] += spent
    known = bool(split) and not devices.get("")
    return LayerTimes(shares(kinds), shares(precisions), shares(devices) if known else None)


def shares(counts: Counter[str]) -> dict[str, float]:
    """Counts as shares of their sum, largest first, without those that are nothing."""
    total = sum(counts.values())
    return {name: count / total for name, count in counts.most_common() if count} if total else {}
