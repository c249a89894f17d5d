"""Whether the files that a suite's own workloads name are there: said before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.errors import UsageError
from harness.workloads.definition import Workload


def check_own_models(workloads: Iterable[Workload], where: str) -> None:
    """Raise UsageError that names every model file that is not there: nothing could run. `where` is the suite file."""
    missing = [
        f"there is no model file {workload.model.path} for the workload {workload.name}"
        for workload in workloads
        if not isinstance(workload.model, str) and not workload.model.path.exists()
    ]
    if missing:
        raise UsageError(
            f"{where}: {'; '.join(missing)}.", "Correct the path; it is taken from the suite file's folder."
        )


def missing_data(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """Return a sentence for each folder or table of labels that is not there, with what follows from it."""
    return tuple(sentence for workload in workloads for sentence in _missing(workload))


def _missing(workload: Workload) -> Iterator[str]:
    spec = workload.dataset
    if spec is None or spec.folder is None:
        return
    without = f"{workload.name} is measured on random inputs, its accuracy not at all."
    if not spec.folder.is_dir():
        yield f"The folder {spec.folder} of the dataset {spec.name} does not exist: {without}"
    elif spec.labels is not None and not spec.labels.is_file():
        yield f"The table of labels {spec.labels} of the dataset {spec.name} does not exist: {without}"
