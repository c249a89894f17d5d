"""Whether the files that a suite's own workloads name are there: said before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import UsageError
from harness.workloads.definition import Workload


def check_own_files(workloads: Iterable[Workload], where: str) -> None:
    """Raise UsageError that names what is not there: model files, folders, tables of labels. `where` is the suite file."""
    missing = [line for workload in workloads for line in _missing(workload)]
    if missing:
        raise UsageError(
            f"{where}: {'; '.join(missing)}.", "Correct the path; it is taken from the suite file's folder."
        )


def _missing(workload: Workload) -> Iterable[str]:
    if not isinstance(workload.model, str) and not workload.model.path.exists():
        yield f"there is no model file {workload.model.path} for the workload {workload.name}"
    spec = workload.dataset
    if spec is None or spec.folder is None:
        return
    if not spec.folder.is_dir():
        yield f"there is no folder {spec.folder} for the dataset {spec.name} of the workload {workload.name}"
    elif spec.labels is not None and not spec.labels.is_file():
        yield f"there is no table of labels {spec.labels} for the dataset {spec.name} of the workload {workload.name}"
