"""The tables, split by subject. Import from here, so that every table is known to the metadata."""

from db.schema.base import Base, StoreState
from db.schema.cases import Artifact, Case, Dataset, Suite, Workload
from db.schema.fleet import DISPATCH_STATES, END_STATES, LIVE_STATES, Dispatch, Token
from db.schema.hardware import ComputeUnit, Device, Environment, HardwareModel
from db.schema.runs import Annotation, Measurement, Run, RunHarness, Sample, Trial, TrialSample

__all__ = [
    "DISPATCH_STATES",
    "END_STATES",
    "LIVE_STATES",
    "Annotation",
    "Artifact",
    "Base",
    "Case",
    "ComputeUnit",
    "Dataset",
    "Device",
    "Dispatch",
    "Environment",
    "HardwareModel",
    "Measurement",
    "Run",
    "RunHarness",
    "Sample",
    "StoreState",
    "Suite",
    "Token",
    "Trial",
    "TrialSample",
    "Workload",
]
