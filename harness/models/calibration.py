"""Calibration data: samples of a dataset that is no evaluation data, prepared as the model's own workload prepares them.

A network with state (a stream) needs the state that the samples before it left. It comes from the fp32 ONNX file, run here
by onnxruntime sample after sample, so that a quantised file is calibrated on states that really occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness.artifacts import ModelFile
from harness.datasets import Dataset, open_calibration, open_dataset
from harness.datasets.definition import contents_of, leading, subset
from harness.datasets.overlap import refuse_shared
from harness.errors import ModelError
from harness.models.build import needs_calibration
from harness.models.cache import Cache
from harness.models.catalog import ArtifactEntry, ModelEntry
from harness.models.progress import Progress
from harness.models.quantisation.contract import Array, Inputs
from harness.tasks import Sample, Task, carried, create

if TYPE_CHECKING:
    from harness.workloads.definition import Workload


class Store(Protocol):
    """The part of the model store that is needed here."""

    cache: Cache
    offline: bool
    progress: Progress

    def ensure(self, model: str, model_format: str, precision: str = "fp32", batch: int = 1) -> ModelFile:
        """Return a model's file."""
        ...

    def source_file(self, model: str, name: str) -> Path:
        """Return one of a model's published files."""
        ...


@dataclass(frozen=True)
class CalibrationSet:
    """Samples that are prepared anew in every pass, so that memory holds one at a time. See quantisation.contract."""

    identity: str  # name@digest
    contents: tuple[str, ...]  # SHA-256 of the files or texts, sorted
    samples: Sequence[Sample]
    task: Task
    decode: Callable[[Sample], Any]
    stream: ModelFile | None = None  # the fp32 ONNX file, for a task that carries state

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Inputs]:
        if not self.task.carry:
            for sample in self.samples:
                yield self.task.preprocess(self.decode(sample))
            return
        yield from self._streamed()

    def _streamed(self) -> Iterator[Inputs]:
        import backends
        from backends.base import LoadOptions
        from harness.worker.tensors import TensorMap

        assert self.stream is not None
        model = self.stream
        options = LoadOptions(threads=1, input_shapes={port.tensor: port.shape for port in model.inputs})
        session = backends.create("onnxruntime").load(model.path, "onnx", "cpu", options)
        try:
            session.prepare(1)
            takes, gives = TensorMap(model.inputs, session.inputs), TensorMap(model.outputs, session.outputs)
            previous: Mapping[str, Array] | None = None
            for sample in self.samples:
                inputs = carried(self.task, sample, self.task.preprocess(self.decode(sample)), previous)
                previous = gives.to_canonical(session.infer(0, takes.to_file([inputs])))
                yield inputs
        finally:
            session.close()


def calibration_of(entry: ModelEntry, artifact: ArtifactEntry, store: Store) -> CalibrationSet | None:
    """Return the calibration data of a catalogue model, fetched or made where needed; None where its recipe needs none.

    Raises ModelError where the data cannot be had, or are not those that the catalogue pins.
    """
    if not needs_calibration(artifact):
        return None
    from harness.workloads.definition import load_workloads
    from harness.workloads.preparation import task_parameters

    asked = entry.calibration
    assert asked is not None  # the catalogue's reader sees to it
    dataset = open_calibration(asked.dataset, cache=store.cache.root, offline=store.offline, progress=store.progress)
    if dataset.digest[:16] != asked.digest:
        raise ModelError(
            f"The calibration data {dataset.identity} of {entry.name} are not the pinned ones ({asked.digest}).",
            "Copy the cache folder of a machine where `weigh models build` was run.",
        )
    workload = load_workloads()[asked.workload]
    task = create(workload.task, task_parameters(workload, store))
    stream = store.ensure(entry.name, "onnx") if task.carry else None
    chosen = calibration_set(dataset, asked.samples, task, stream)
    evaluation = _evaluation(workload, store)
    if evaluation is not None:
        refuse_shared(chosen.identity, chosen.contents, evaluation)
    return chosen


def _evaluation(workload: Workload, store: Store) -> Dataset | None:
    """Return the data that judge the workload; None where they cannot be had: then they judge nothing here."""
    if workload.dataset is None:
        return None
    try:
        return open_dataset(workload.dataset, cache=store.cache.root, offline=store.offline)
    except ModelError:
        return None


def calibration_set(dataset: Dataset, samples: int, task: Task, stream: ModelFile | None = None) -> CalibrationSet:
    """Return so many samples of a dataset for calibration: the first ones of a stream, else ones chosen by a fixed seed."""
    chosen = leading(dataset, samples) if task.carry else subset(dataset, samples)
    return CalibrationSet(
        chosen.identity, contents_of(chosen), chosen.samples, task, chosen.decode or task.decode, stream
    )
