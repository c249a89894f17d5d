"""The run record: what one execution of a suite on one device found, and everything that says how far to trust it.

Frozen dataclasses of the standard library, so that devices need nothing else. `harness.documents` reads them strictly
from JSON and writes them. Names carry units. None means "not known" or "not measured", and a `reason` beside it says why;
it never means zero. Fields are only ever added, with a default, so that older records stay readable.
"""

from harness.records.case import (
    Artifact,
    Case,
    Effective,
    Placement,
)
from harness.records.figures import (
    ColdStart,
    Energy,
    Latency,
    Memory,
    Official,
    OverTime,
    Quantile,
    RateCurve,
    RatePoint,
    Slice,
    Stages,
)
from harness.records.identity import (
    ComputeUnit,
    Device,
    Environment,
    Source,
    SuiteRef,
)
from harness.records.measurement import (
    SCHEMA,
    Change,
    Flag,
    Measurement,
    MeasurementStatus,
    Preparation,
    Run,
    RunStatus,
    SampleBlob,
    Sampling,
    SelfCost,
    Trial,
    TrialKind,
)
from harness.records.quality import (
    Accuracy,
    Fidelity,
    Gate,
)

__all__ = [
    "SCHEMA",
    "Accuracy",
    "Artifact",
    "Case",
    "Change",
    "ColdStart",
    "ComputeUnit",
    "Device",
    "Effective",
    "Energy",
    "Environment",
    "Fidelity",
    "Flag",
    "Gate",
    "Latency",
    "Measurement",
    "MeasurementStatus",
    "Memory",
    "Official",
    "OverTime",
    "Placement",
    "Preparation",
    "Quantile",
    "RateCurve",
    "RatePoint",
    "Run",
    "RunStatus",
    "SampleBlob",
    "Sampling",
    "SelfCost",
    "Slice",
    "Source",
    "Stages",
    "SuiteRef",
    "Trial",
    "TrialKind",
]
