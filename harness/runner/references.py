"""The fp32 reference that accuracy and fidelity are held against: onnxruntime on the CPU, of the same workload and run."""

from __future__ import annotations

from harness.runner.plan import Intent

REFERENCE_BACKEND = "onnxruntime"  # its fp32 on the CPU runs the source graph as it is
REFERENCE_TARGET = "cpu"
FULL = "fp32"


def is_reference(intent: Intent) -> bool:
    """Say whether a case is what others of its workload are held against."""
    return (intent.backend, intent.target, intent.artifact_precision, intent.precision) == (
        REFERENCE_BACKEND, REFERENCE_TARGET, FULL, FULL,
    )  # fmt: skip
