"""From predictions to an accuracy: the parent has the labels, the worker never saw them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.canonical import sha256_hex
from harness.errors import WeighbridgeError
from harness.judgement.accuracy_gate import DEFAULT_TARGET, judge_gate
from harness.judgement.paired import Paired, compare_answers, resampled
from harness.records import Accuracy
from harness.runner.cases import PlannedCase
from harness.runner.trial_process import Outcome
from harness.tasks.metrics import Evaluation, evaluate
from harness.worker.finite import NotFinite


@dataclass(frozen=True)
class Judged:
    """An accuracy with what it takes to pair it with its reference, and the gate's sentence once that is done."""

    accuracy: Accuracy
    evaluation: Evaluation | None = None
    sentence: str | None = None


def accuracy_of(planned: PlannedCase, outcome: Outcome | None, suite: str) -> Judged | None:
    """Return the accuracy of a case's artifact, or one without a value that says why and how to get it.

    A network whose outputs are no finite numbers has failed the gate, whichever class comes first among them.
    """
    workload = planned.intent.workload
    metric = workload.metric or "accuracy"
    data = planned.accuracy_data
    if data is None:
        if planned.accuracy_reason is None and workload.metric is None:
            return None  # a workload that has no accuracy, such as a bare model file
        default = f"Not measured: the suite {suite} does not measure the accuracy of {workload.name}."
        return Judged(Accuracy(metric, None, reason=planned.accuracy_reason or default))
    if outcome is None:
        return Judged(
            Accuracy(metric, None, reason="Not measured: the run was interrupted before.", dataset=data.identity)
        )
    if outcome.status != "ok":
        accuracy = Accuracy(metric, None, reason=f"The accuracy trial failed: {outcome.reason}", dataset=data.identity)
        if outcome.document.get("error") != NotFinite.__name__:
            return Judged(accuracy)
        target = DEFAULT_TARGET if workload.quality_target is None else workload.quality_target
        return Judged(replace(accuracy, gate="failed", target=target), sentence=f"Failed: {outcome.reason}")
    lines = outcome.files["predictions"]
    try:
        evaluation = evaluate(workload.task, _predictions(lines), data.samples)
    except (WeighbridgeError, ValueError, KeyError, TypeError, IndexError) as error:
        reason = f"The predictions cannot be judged: {error}"
        return Judged(Accuracy(metric, None, reason=reason, dataset=data.identity))
    accuracy = Accuracy(
        metric=evaluation.metric,
        value=evaluation.value,
        samples=len(data.samples),
        dataset=data.identity,
        predictions=sha256_hex(zlib.compress(lines, 6)),
        details=dict(evaluation.details),
        note=data.note,
    )
    return Judged(accuracy, evaluation)


def with_reference(
    judged: Judged, reference: Judged | None, target: float | None, missing: str, overlap: str | None = None
) -> Judged:
    """Return the accuracy beside its fp32 reference on the same samples, with interval and gate.

    `missing` says why there is no reference, where there is none. `overlap` says that calibration and evaluation share data:
    then no gate can be passed.
    """
    accuracy = judged.accuracy
    if accuracy.value is None or judged.evaluation is None:
        return judged
    asked = DEFAULT_TARGET if target is None else target
    compared: Paired | None = None
    reason = missing
    if reference is not None and reference.evaluation is None:
        reason = f"the reference has no accuracy: {reference.accuracy.reason}"
    elif reference is not None and reference.accuracy.dataset != accuracy.dataset:
        reason = f"the reference was measured on other data, {reference.accuracy.dataset}."
    elif reference is not None and reference.evaluation is not None:
        try:
            compared = compare(judged.evaluation, reference.evaluation)
        except ValueError as error:
            reason = f"the two cannot be compared: {error}."
    verdict = judge_gate(compared, asked, reason)
    gate, sentence = verdict.gate, verdict.sentence
    if overlap is not None and gate != "failed":
        gate, sentence = "undecided", f"Undecided: {overlap}"
    accuracy = replace(
        accuracy,
        reference=compared.reference if compared is not None else None,
        relative=compared.relative if compared is not None else None,
        relative_low=compared.low if compared is not None else None,
        relative_high=_finite(compared.high) if compared is not None else None,
        disagreement=compared.disagreement if compared is not None else None,
        samples_needed=verdict.samples_needed,
        gate=gate,
        target=asked,
        method=f"{compared.method}. {sentence}" if compared is not None else sentence,
    )
    return replace(judged, accuracy=accuracy, sentence=sentence)


def compare(here: Evaluation, there: Evaluation) -> Paired:
    """Pair two evaluations of the same samples. Raises ValueError where that has no meaning."""
    if here.right is not None and there.right is not None:
        return compare_answers(here.right, there.right)
    if here.resampled is None or there.resampled is None or here.resampled.groups != there.resampled.groups:
        raise ValueError("they do not judge the same samples")
    return resampled(here.resampled.value, there.resampled.value, here.resampled.groups, here.resampled.unit)


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None


def _predictions(lines: bytes) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for line in lines.decode("utf-8").splitlines():
        entry = json.loads(line)
        found[entry["id"]] = entry["prediction"]
    return found
