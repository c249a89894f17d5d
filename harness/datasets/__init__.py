"""Opening datasets by what a workload asks for, and choosing the samples of the timed loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from harness.datasets.catalogue import CALIBRATION, DATASETS, PREFERABLE
from harness.datasets.definition import Dataset, subset
from harness.datasets.specification import DatasetSpec
from harness.errors import ModelError
from harness.models.progress import Progress
from harness.tasks.base import Sample

__all__ = ["Dataset", "DatasetSpec", "LatencyPool", "latency_samples", "open_calibration", "open_dataset"]

POOL_SIZE = 32


class Folders(Protocol):
    """The part of the user's configuration that is needed here: `[datasets]` of config.toml."""

    @property
    def datasets(self) -> Mapping[str, Path]:
        """Folders by the configuration's key, such as "imagenet"."""
        ...


class Asking(Protocol):
    """The part of a workload that is needed here."""

    @property
    def dataset(self) -> DatasetSpec | None:
        """The labelled data."""
        ...

    @property
    def latency_samples(self) -> str:
        """ "dataset", "random", or the name of a dataset."""
        ...


@dataclass(frozen=True)
class LatencyPool:
    """At most 32 samples that rotate in the timed loop. `dataset` is name@digest, None for random inputs."""

    samples: tuple[Sample, ...]
    dataset: str | None
    random: bool = False  # True: use the task random_inputs with the model's ports
    note: str | None = None  # why not what was asked for
    files: Mapping[str, str] | None = None


def open_dataset(
    spec: DatasetSpec,
    *,
    cache: Path,
    offline: bool = False,
    configuration: Folders | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Return the dataset, fetched or made in `cache` where it is not there yet.

    Raises ModelError that says why it cannot be had and how to get it.
    """
    configured: Mapping[str, Path] = configuration.datasets if configuration else {}
    if spec.folder is not None:
        from harness.datasets.labelled_folder import open_folder

        return subset(open_folder(spec.name, spec.folder, spec.labels, cache), spec.limit)
    name = spec.name
    if spec.prefer is not None and PREFERABLE[spec.prefer] in configured:
        name = spec.prefer
    if name in PREFERABLE:
        from harness.datasets.imagenet import open_imagenet

        return open_imagenet(configured.get(PREFERABLE[name]), spec.limit, cache)
    if name not in DATASETS:
        raise ModelError(f"There is no dataset {name!r}.", f"Known are {', '.join(DATASETS)}.")
    return subset(_opener(DATASETS[name])(cache, offline, progress), spec.limit)


def open_calibration(name: str, *, cache: Path, offline: bool = False, progress: Progress | None = None) -> Dataset:
    """Return calibration data, fetched or made where the cache lacks them. Raises ModelError."""
    if name not in CALIBRATION:
        raise ModelError(f"There are no calibration data {name!r}.", f"Known are {', '.join(CALIBRATION)}.")
    return _opener(CALIBRATION[name])(cache, offline, progress)


def _opener(where: str) -> Callable[..., Dataset]:
    module, _, function = where.partition(":")
    return cast(Callable[..., Dataset], getattr(import_module(module), function))


def latency_samples(
    workload: Asking,
    *,
    cache: Path,
    offline: bool = False,
    configuration: Folders | None = None,
    progress: Progress | None = None,
) -> LatencyPool:
    """Return real samples for the timed loop: the first 32 of what the workload names.

    Where that cannot be had, seeded random inputs stand in; the pool's note then says so, and its dataset is None.
    """
    if workload.latency_samples == "random":
        return _random_pool(None)
    spec = workload.dataset if workload.latency_samples == "dataset" else DatasetSpec(workload.latency_samples)
    if spec is None:
        return _random_pool("The workload has no dataset; inputs are random.")
    try:
        limit = min(spec.limit or POOL_SIZE, POOL_SIZE) if spec.name in PREFERABLE or spec.prefer else spec.limit
        dataset = open_dataset(
            replace(spec, limit=limit), cache=cache, offline=offline, configuration=configuration, progress=progress
        )
    except ModelError as error:
        return _random_pool(f"Inputs are random, and nothing is decoded: {error}")
    chosen = dataset.samples[:POOL_SIZE]
    used = {name for sample in chosen for name in sample.files}
    files = {name: sha256 for name, sha256 in (dataset.files or {}).items() if name in used}
    return LatencyPool(chosen, dataset.identity, note=dataset.note, files=files)


def _random_pool(note: str | None) -> LatencyPool:
    samples = tuple(Sample(id=f"random-{seed}", data={"seed": seed}) for seed in range(POOL_SIZE))
    return LatencyPool(samples, None, random=True, note=note)
