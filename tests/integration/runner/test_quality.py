"""Accuracy, gate and fidelity of real runs: what is sound passes, what is broken on purpose does not."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import backends
from harness.artifacts import ModelFile
from harness.configuration import Configuration
from harness.datasets import Dataset, DatasetSpec, open_dataset
from harness.datasets.definition import contents_of
from harness.folders import cache_dir
from harness.judgement import flags
from harness.judgement.accuracy_gate import may_win
from harness.models.store import ModelStore
from harness.models.user_model import UserModel
from harness.records import Device, Environment, Measurement
from harness.runner.assembly import assemble_run
from harness.runner.case_builder import CaseBuilder
from harness.runner.plan import Selection, expand
from harness.runner.references import REFERENCE_BACKEND
from harness.runner.run_folder import RunFolder
from harness.runner.runner import run_trials
from harness.suites.reader import known_workloads, read_suite
from harness.worker.pack import worker_archive
from tests.fixtures.broken_int8 import broken

pytestmark = pytest.mark.slow

SUITE = """
name = "quality"
version = "1"
title = "Quality"
trials = 1
accuracy = ["efficientnet-lite0"]
[targets]
{targets}
[[measure]]
scenario = "single_stream"
workloads = ["{workload}"]
precisions = ["fp32"]
artifact_precisions = ["{artifact}"]
duration_s = 0.1
warmup_s = 0
min_queries = 2
"""


class BrokenStore(ModelStore):
    """Gives other files than the right ones in one format and precision; the record says what the right one would."""

    def __init__(self, folder: Path, precision: str, spoil: str) -> None:
        super().__init__(cache_dir())
        self.folder, self.precision, self.spoil = folder, precision, spoil

    def ensure(self, model: str | UserModel, model_format: str, precision: str = "fp32", batch: int = 1) -> ModelFile:
        if (model_format, precision) != ("onnx", self.precision):
            return super().ensure(model, model_format, precision, batch)
        if self.spoil == "scales":
            good = super().ensure(model, model_format, precision, batch)
            return self._written(good, broken(good.path.read_bytes()))
        if self.spoil == "calibration":
            good = super().ensure(model, model_format, precision, batch)
            evaluation = open_dataset(DatasetSpec("stamps-imagenet"), cache=cache_dir())
            return replace(good, calibrated_on=contents_of(evaluation)[:7])
        sound = super().ensure(model, model_format, "fp32", batch)
        artifact = replace(sound.artifact, precision=precision)
        return self._written(replace(sound, artifact=artifact), with_nan(sound.path.read_bytes()))

    def _written(self, model: ModelFile, data: bytes) -> ModelFile:
        path = self.folder / "spoilt.onnx"
        path.write_bytes(data)
        return replace(model, path=path)


def with_nan(data: bytes) -> bytes:
    """Return the ONNX model with one weight of its last layer that is not a number."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load_model_from_string(data)
    last = [weight for weight in model.graph.initializer if len(weight.dims) >= 2][-1]
    values = numpy_helper.to_array(last).copy()
    values.reshape(-1)[0] = np.nan
    last.CopyFrom(numpy_helper.from_array(values, last.name))
    return bytes(model.SerializeToString())


def measured(
    tmp_path: Path, workload: str, backend: str, artifact: str = "fp32", spoil: str | None = None
) -> Measurement:
    """Run one case with whatever it is held against, as `weigh run` does."""
    path = tmp_path / "suite.toml"
    path.write_text(SUITE.format(targets=f'{backend} = ["cpu"]', workload=workload, artifact=artifact))
    suite, _ = read_suite(str(path))
    targets = {name: backends.create(name).targets() for name in backends.BACKENDS}
    intents = expand(suite, known_workloads(suite), Selection(), targets, 2)
    store = BrokenStore(tmp_path, artifact, spoil) if spoil is not None else ModelStore(cache_dir())
    run_id = str(uuid.uuid4())
    builder = CaseBuilder(run_id, suite, store, cache_dir(), False, Configuration())
    formats = {name: backends.create(name).formats for name in backends.BACKENDS}
    cases = [builder.build(intent, None, formats[intent.backend]) for intent in intents]
    cases += builder.references(cases, formats[REFERENCE_BACKEND])
    folder = RunFolder.create(tmp_path / "runs", run_id, {})
    assert run_trials(cases, 1, folder, worker_archive(cache_dir()), {}, lambda progress: None)
    run, _ = assemble_run(
        cases, folder, status="complete", device=Device("d", run_id, "m"), environment=Environment({}, {}),
        suite=suite.reference, trigger="manual", started_at="2026-12-01T00:00:00Z",
        finished_at="2026-12-01T00:01:00Z", version="0", processors=2,
    )  # fmt: skip
    (measurement,) = run.measurements
    return measurement


def codes(measurement: Measurement) -> set[str]:
    quality = {flags.GATE_FAILED, flags.GATE_UNDECIDED, flags.LOW_FIDELITY, flags.OVERLAPPING_CALIBRATION}
    return {flag.code for flag in measurement.flags} & quality


def test_fp32_on_another_runtime_passes_beside_a_reference_that_is_measured_for_it(tmp_path: Path) -> None:
    found = measured(tmp_path, "efficientnet-lite0", "openvino")
    accuracy, fidelity = found.accuracy, found.fidelity
    assert accuracy is not None and fidelity is not None and found.status == "ok", found.reason
    # 98 of 113 was measured with the published weights in another framework.
    assert (accuracy.reference, accuracy.gate) == (pytest.approx(98 / 113, abs=0.001), "passed")
    assert (accuracy.relative, accuracy.disagreement) == (1.0, 0.0)
    assert accuracy.relative_low == pytest.approx(98 / (98 + 3.8415), abs=1e-4)
    assert fidelity.samples == 8 and fidelity.agreement == 1.0
    assert fidelity.worst_relative is not None and 0 < fidelity.worst_relative < 1e-4
    assert codes(found) == set()
    assert {trial.kind for trial in found.trials} == {"timing", "accuracy"}  # one process did both
    assert {blob.what for trial in found.trials for blob in trial.samples} >= {"predictions", "latency_ns"}
    assert "outputs" not in {blob.what for trial in found.trials for blob in trial.samples}


def test_a_broken_int8_file_fails_the_gate_on_the_113_photos(tmp_path: Path) -> None:
    found = measured(tmp_path, "efficientnet-lite0", "onnxruntime", "int8", "scales")
    accuracy = found.accuracy
    assert accuracy is not None and accuracy.value is not None and found.status == "ok", found.reason
    assert accuracy.reference == pytest.approx(98 / 113, abs=0.001)
    assert accuracy.gate == "failed" and accuracy.relative_high is not None and accuracy.relative_high < 0.99
    assert flags.GATE_FAILED in codes(found)
    assert may_win(accuracy, found.fidelity, [flag.code for flag in found.flags])[0] is False


def test_a_network_of_nan_fails_instead_of_guessing(tmp_path: Path) -> None:
    found = measured(tmp_path, "efficientnet-lite0", "onnxruntime", "fp16", "nan")
    accuracy = found.accuracy
    assert accuracy is not None and accuracy.value is None
    assert accuracy.gate == "failed" and "not finite" in (accuracy.reason or "")
    assert codes(found) == {flags.GATE_FAILED, flags.LOW_FIDELITY}


def test_a_network_without_labels_has_its_fidelity(tmp_path: Path) -> None:
    found = measured(tmp_path, "resnet50-seeded", "openvino")
    assert found.fidelity is not None and found.accuracy is not None
    assert (found.accuracy.value, found.accuracy.gate) == (None, None)
    assert found.fidelity.samples == 8 and found.fidelity.agreement == 1.0
    assert found.fidelity.worst_relative is not None and 0 < found.fidelity.worst_relative < 1e-4
    assert codes(found) == set()
    assert {trial.kind for trial in found.trials} == {"timing", "fidelity"}


def test_a_file_calibrated_on_the_photos_that_judge_it_passes_no_gate(tmp_path: Path) -> None:
    found = measured(tmp_path, "efficientnet-lite0", "onnxruntime", "int8", "calibration")
    assert found.accuracy is not None and found.accuracy.gate == "undecided"
    assert flags.OVERLAPPING_CALIBRATION in codes(found)
    said = next(flag.message for flag in found.flags if flag.code == flags.OVERLAPPING_CALIBRATION)
    assert said.startswith("7 of the 113 contents of stamps-imagenet@")
    assert may_win(found.accuracy, found.fidelity, [flag.code for flag in found.flags])[0] is False


def test_calibration_on_the_evaluation_data_is_refused_when_a_file_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue's calibration data exchanged for the 113 photos themselves."""
    from harness.errors import ModelError
    from harness.models import calibration
    from harness.models.catalog import find_model

    store = ModelStore(cache_dir())
    entry = find_model("efficientnet-lite0")
    evaluation = open_dataset(DatasetSpec("stamps-imagenet"), cache=cache_dir())

    def opened(*_: object, **__: object) -> Dataset:
        return evaluation

    monkeypatch.setattr(calibration, "open_calibration", opened)
    assert entry.calibration is not None
    wrong = replace(entry, calibration=replace(entry.calibration, digest=evaluation.digest[:16], samples=100))
    with pytest.raises(ModelError, match="share 100 contents with the evaluation data stamps-imagenet@"):
        calibration.calibration_of(wrong, wrong.artifact("onnx", "int8"), store)
