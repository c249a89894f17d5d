"""The model files and data of a plan, each got once, however many cases use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from harness.artifacts import ModelFile
from harness.datasets import Dataset, LatencyPool, latency_samples, open_dataset
from harness.errors import ModelError
from harness.models.progress import Progress
from harness.models.store import ModelStore
from harness.runner.plan import Intent
from harness.workloads.definition import Workload
from harness.workloads.preparation import fit_ports


class Configured(Protocol):
    """The part of the user's configuration that is needed here."""

    @property
    def datasets(self) -> Mapping[str, Path]: ...


class CaseSources:
    """Keeps what was fetched or built, and the error of what cannot be had."""

    def __init__(
        self,
        store: ModelStore,
        cache: Path,
        offline: bool,
        configuration: Configured,
        progress: Progress | None = None,
    ) -> None:
        self.store = store
        self._cache = cache
        self._offline = offline
        self._configuration = configuration
        self._progress = progress
        self._models: dict[tuple[str, str, str, int], ModelFile | ModelError] = {}
        self._pools: dict[str, LatencyPool] = {}
        self._datasets: dict[str, Dataset | ModelError] = {}

    def prefetch(self, runnable: Sequence[tuple[Intent, Sequence[str]]]) -> None:
        """Fetch the model files of these intents (each with the formats its backend reads) in one go.

        What cannot be had is said case by case in `build`, so an error is no news here.
        """
        wanted = [
            (intent.workload.model, chosen, intent.artifact_precision)
            for intent, formats in runnable
            if isinstance(intent.workload.model, str) and (chosen := self.model_format(intent, formats))
        ]
        with suppress(ModelError):
            self.store.prefetch(dict.fromkeys(wanted))

    def model_format(self, intent: Intent, formats: Sequence[str]) -> str | None:
        """Return the first of the backend's formats in which there is a file of the precision; None where there is none.

        In lower precision the format of the runtime's own maker goes first, where it can be had here: OpenVINO reads ONNX
        too, but its users quantise with NNCF, for its kernels.
        """
        statuses = [s for s in self.store.formats(intent.workload.model) if s.precision == intent.artifact_precision]
        there = {item.format for item in statuses}
        if intent.artifact_precision != "fp32" and any(s.format == intent.backend and not s.reason for s in statuses):
            formats = (intent.backend, *formats)
        return next((name for name in formats if name in there), None)

    def model(self, workload: Workload, model_format: str, precision: str, batch: int) -> ModelFile | ModelError:
        """Return the model file, or why there is none."""
        key = (workload.name, model_format, precision, batch)
        if key not in self._models:
            try:
                self._models[key] = fit_ports(
                    workload, self.store.ensure(workload.model, model_format, precision, batch)
                )
            except ModelError as error:
                self._models[key] = error
        return self._models[key]

    def pool(self, workload: Workload) -> LatencyPool:
        """Return the samples that rotate in the timed loop."""
        if workload.name not in self._pools:
            self._pools[workload.name] = latency_samples(
                workload,
                cache=self._cache,
                offline=self._offline,
                configuration=self._configuration,
                progress=self._progress,
            )
        return self._pools[workload.name]

    def labelled(self, workload: Workload) -> Dataset | ModelError:
        """Return the labelled data of a workload, or why there are none."""
        if workload.name not in self._datasets:
            try:
                if workload.dataset is None:
                    raise ModelError(f"The workload {workload.name} has no labelled data.")
                self._datasets[workload.name] = open_dataset(
                    workload.dataset,
                    cache=self._cache,
                    offline=self._offline,
                    configuration=self._configuration,
                    progress=self._progress,
                )
            except ModelError as error:
                self._datasets[workload.name] = error
        return self._datasets[workload.name]
