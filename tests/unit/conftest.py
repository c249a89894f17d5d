"""One row of the store, as `db.queries.results` gives it; a test changes what it is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from typing import Any

import pytest

from db.queries import ResultRow

_GIVEN: dict[str, Any] = {
    "measurement_id": "m-1", "run_id": "r-1", "ingest_sequence": 1, "started_at": datetime(2026, 5, 1, 10, tzinfo=UTC),
    "source_kind": "measured", "source_name": "weighbridge", "device": "bench-1", "device_uuid": "u-1",
    "device_model": "Acme Server", "hardware_model": "Acme CPU 9000", "unit_kind": "cpu", "unit_count": 1,
    "workload": "resnet50-seeded", "family": "resnet50", "workload_title": "ResNet-50, seeded weights",
    "backend": "onnxruntime", "target": "cpu", "scenario": "single_stream", "scenario_parameters": {}, "batch": 1,
    "status": "ok",
    "artifact_format": "onnx", "artifact_precision": "fp32", "requested_precision": "fp32", "effective_target": "cpu",
    "effective_precision": "fp32", "effective_threads": 2, "runtime": "onnxruntime", "runtime_version": "1.32.0",
    "p50_ms": 50.0, "p90_ms": 60.0, "p99_ms": 80.0, "latency_min_ms": 45.0, "latency_count": 1000, "throughput_per_s": 20.0,
    "flags": (), "suite": "quick", "trials": 1, "environment_digest": "e" * 64, "compute_unit": "cpu",
}  # fmt: skip


@pytest.fixture
def make_row() -> Callable[..., ResultRow]:
    """Make a row: `make_row(p50_ms=1.0, ...)`. What is neither given nor changed is None, or its own default."""

    def make(**changes: Any) -> ResultRow:
        unset = {item.name: None if item.default is MISSING else item.default for item in fields(ResultRow)}
        assert set(changes) <= set(unset), f"no such field: {set(changes) - set(unset)}"
        return ResultRow(**{**unset, **_GIVEN, **changes})

    return make
