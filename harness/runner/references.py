"""The fp32 reference that accuracy and fidelity are held against: onnxruntime on the CPU, of the same workload and run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.runner.cases import PlannedCase
from harness.runner.plan import Intent

REFERENCE_BACKEND = "onnxruntime"  # its fp32 on the CPU runs the source graph as it is
REFERENCE_TARGET = "cpu"
FULL = "fp32"


def is_reference(intent: Intent) -> bool:
    """Say whether a case is what others of its workload are held against."""
    return (intent.backend, intent.target, intent.artifact_precision, intent.precision) == (
        REFERENCE_BACKEND, REFERENCE_TARGET, FULL, FULL,
    )  # fmt: skip


def missing_references(cases: Sequence[PlannedCase]) -> list[Intent]:
    """Return one intent for each workload whose planned cases have quality trials, but none of the reference.

    It asks for accuracy where one of them does.
    """
    wanted: dict[str, Intent] = {}
    for case in cases:
        intent = case.intent
        if case.status is not None or not (intent.accuracy or intent.fidelity):
            continue
        known = wanted.get(intent.workload.name)
        wanted[intent.workload.name] = replace(
            intent,
            backend=REFERENCE_BACKEND,
            target=REFERENCE_TARGET,
            scenario="single_stream",
            precision=FULL,
            artifact_precision=FULL,
            batch=1,
            threads=None,
            slots=None,
            device_index=0,
            parameters={},
            accuracy=case.accuracy_data is not None or (known is not None and known.accuracy),
            fidelity=True,
            placement=False,
        )
    there = {case.intent.workload.name for case in cases if case.status is None and is_reference(case.intent)}
    return [intent for name, intent in wanted.items() if name not in there]
