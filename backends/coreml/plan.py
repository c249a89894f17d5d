"""Which processor Core ML prefers for each operation, from MLComputePlan (macOS 14.4 and newer).

Written after coremltools' documentation of models.compute_plan; not verified on hardware, tested with a stand-in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

UNITS = {"MLCPUComputeDevice": "cpu", "MLGPUComputeDevice": "gpu", "MLNeuralEngineComputeDevice": "ane"}


@dataclass(frozen=True)
class Plan:
    """Shares of operations, and of Core ML's own estimate of their cost, by processor."""

    nodes: dict[str, float]
    estimated_cost: dict[str, float]


def read_plan(ct: Any, compiled: str, units: Any) -> Plan | None:
    """Return the plan of a compiled model (.mlmodelc), or None where this system has none to give."""
    try:
        from coremltools.models.compute_plan import MLComputePlan

        plan = MLComputePlan.load_from_path(path=compiled, compute_units=units)
        return _shares(plan)
    except Exception:  # older systems raise several kinds; the measurement stands without a plan
        return None


def unit_name(device: Any) -> str:
    """cpu, gpu or ane, by the class that coremltools gives the device."""
    return UNITS.get(type(device).__name__, type(device).__name__)


def available_units(ct: Any) -> set[str]:
    """The processors that Core ML may use here. Empty where it does not tell (before macOS 14)."""
    try:
        return {unit_name(device) for device in ct.models.MLModel.get_available_compute_devices()}
    except Exception:  # absent in older coremltools and on other systems
        return set()


def _shares(plan: Any) -> Plan | None:
    nodes: Counter[str] = Counter()
    costs: dict[str, float] = {}
    structure = plan.model_structure
    if structure.program is not None:
        for operation in _walk(structure.program):
            usage = plan.get_compute_device_usage_for_mlprogram_operation(operation)
            if usage is None:  # constants are placed nowhere
                continue
            name = unit_name(usage.preferred_compute_device)
            nodes[name] += 1
            cost = plan.get_estimated_cost_for_mlprogram_operation(operation)
            if cost is not None:
                costs[name] = costs.get(name, 0.0) + float(cost.weight)
    elif structure.neuralnetwork is not None:
        for layer in structure.neuralnetwork.layers:
            usage = plan.get_compute_device_usage_for_neuralnetwork_layer(layer)
            if usage is not None:
                nodes[unit_name(usage.preferred_compute_device)] += 1
    total = sum(nodes.values())
    if not total:
        return None
    whole = sum(costs.values())
    estimated = {name: cost / whole for name, cost in sorted(costs.items())} if whole else {}
    return Plan({name: count / total for name, count in sorted(nodes.items())}, estimated)


def _walk(program: Any) -> Iterator[Any]:
    pending = [function.block for function in program.functions.values()]
    while pending:
        block = pending.pop()
        for operation in block.operations:
            yield operation
            pending.extend(operation.blocks)
