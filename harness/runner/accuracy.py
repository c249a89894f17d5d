"""From predictions to an accuracy: the parent has the labels, the worker never saw them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from harness.canonical import sha256_hex
from harness.errors import WeighbridgeError
from harness.judgement.accuracy_gate import judge_gate
from harness.records import Accuracy
from harness.runner.cases import PlannedCase
from harness.runner.trial_process import Outcome
from harness.tasks.metrics import evaluate


def accuracy_of(planned: PlannedCase, outcome: Outcome | None, suite: str) -> Accuracy | None:
    """Return the accuracy of a case's artifact, or one without a value that says why and how to get it."""
    workload = planned.intent.workload
    metric = workload.metric or "accuracy"
    data = planned.accuracy_data
    if data is None:
        if planned.accuracy_reason is None and workload.metric is None:
            return None  # a workload that has no accuracy, such as a bare model file
        default = f"Not measured: the suite {suite} does not measure the accuracy of {workload.name}."
        return Accuracy(metric, None, reason=planned.accuracy_reason or default)
    if outcome is None:
        return Accuracy(metric, None, reason="Not measured: the run was interrupted before.", dataset=data.identity)
    if outcome.status != "ok":
        return Accuracy(metric, None, reason=f"The accuracy trial failed: {outcome.reason}", dataset=data.identity)
    lines = outcome.files["predictions"]
    try:
        evaluation = evaluate(workload.task, _predictions(lines), data.samples)
    except (WeighbridgeError, ValueError, KeyError, TypeError, IndexError) as error:
        return Accuracy(metric, None, reason=f"The predictions cannot be judged: {error}", dataset=data.identity)
    return Accuracy(
        metric=evaluation.metric,
        value=evaluation.value,
        samples=len(data.samples),
        dataset=data.identity,
        predictions=sha256_hex(zlib.compress(lines, 6)),
        details=dict(evaluation.details),
        note=data.note,
    )


def with_reference(accuracy: Accuracy, reference: float | None, target: float | None) -> Accuracy:
    """Return the accuracy beside its fp32 reference of the same run, and the gate's verdict."""
    from dataclasses import replace

    if accuracy.value is None:
        return accuracy
    relative = accuracy.value / reference if reference else None
    gate = judge_gate(accuracy.value, reference, target, accuracy.samples or 0)
    return replace(accuracy, reference=reference, relative=relative, gate=gate)


def _predictions(lines: bytes) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for line in lines.decode("utf-8").splitlines():
        entry = json.loads(line)
        found[entry["id"]] = entry["prediction"]
    return found
