"""What is to be run, on every chosen device alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.canonical import sha256_hex
from harness.errors import UsageError
from harness.suites import read_suite
from harness.suites.definition import Suite
from harness.toml_files import TomlFile


@dataclass(frozen=True)
class Order:
    """A suite with a selection. Its text travels along, so that all devices run the same version of it."""

    suite: str
    document: TomlFile
    beside: tuple[str, ...] = ()  # the suite's own models and data, relative to its file
    backends: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    offline: bool = False  # the device fetches nothing itself

    def as_document(self) -> dict[str, Any]:
        """Return what the store keeps of the order."""
        return {
            "suite": self.suite,
            "suite_sha256": sha256_hex(self.document.text.encode()),
            "backends": list(self.backends),
            "targets": list(self.targets),
            "workloads": list(self.workloads),
            "offline": self.offline,
        }


def order_for(
    suite: str, backends: Sequence[str], targets: Sequence[str], workloads: Sequence[str], offline: bool = False
) -> Order:
    """Read the suite here, strictly, so that a typo is said before any device is touched.

    A suite file's own models and labelled folders must lie beside it: they travel along under the same names.
    """
    found, document = read_suite(suite)
    beside = tuple(sorted(_own_files(found, document)))
    return Order(found.name, document, beside, tuple(backends), tuple(targets), tuple(workloads), offline)


def _own_files(suite: Suite, document: TomlFile) -> set[str]:
    root = document.path.parent.resolve()
    named: list[Path] = []
    for workload in suite.workloads.values():
        if not isinstance(workload.model, str):
            named.append(workload.model.path)
        if workload.dataset is not None:
            named += [path for path in (workload.dataset.folder, workload.dataset.labels) if path is not None]
    files = set()
    for path in named:
        inside = path.resolve()
        if not inside.is_relative_to(root):
            raise UsageError(
                f"{path} does not lie beside the suite file {document.path}, so it cannot be sent along.",
                "Put it into the same folder, and name it by a relative path.",
            )
        contents = [inside] if inside.is_file() else [item for item in inside.rglob("*") if item.is_file()]
        files |= {item.relative_to(root).as_posix() for item in contents}
    return files
