"""What a dataset is: labelled samples of a known origin, known by name and digest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.canonical import digest_of
from harness.tasks.base import Sample


@dataclass(frozen=True)
class Dataset:
    """Samples with absolute file paths. The digest is over identifiers, file contents and labels, in their order."""

    name: str
    title: str
    digest: str  # SHA-256
    samples: tuple[Sample, ...]
    licence: str | None = None
    source: str | None = None
    note: str | None = None  # what a number on this data does not mean
    files: Mapping[str, str] | None = None  # absolute path -> SHA-256, for synchronising to another machine

    @property
    def identity(self) -> str:
        """Return name@digest, as a case's key names it."""
        return f"{self.name}@{self.digest[:16]}"


def samples_digest(samples: Iterable[Sample], hashes: Mapping[str, str]) -> str:
    """Return the SHA-256 of what the samples are: identifiers, contents, labels and data; paths play no part."""
    rows: list[Any] = [
        [sample.id, [hashes[name] for name in sample.files], sample.label, dict(sample.data)] for sample in samples
    ]
    return digest_of(rows)


def subset(dataset: Dataset, limit: int | None) -> Dataset:
    """Return the dataset, or `limit` of its samples chosen by a fixed seed; the name then says so."""
    if limit is None or limit >= len(dataset.samples):
        return dataset
    order = np.random.RandomState(0).permutation(len(dataset.samples))[:limit]
    chosen = tuple(dataset.samples[position] for position in sorted(order.tolist()))
    used = {name for sample in chosen for name in sample.files}
    files = {name: sha256 for name, sha256 in (dataset.files or {}).items() if name in used}
    rows = digest_of([dataset.digest, [sample.id for sample in chosen]])
    note = f"{limit} of {len(dataset.samples)} samples, chosen by a fixed seed."
    return replace(
        dataset,
        name=f"{dataset.name}-{limit}",
        samples=chosen,
        digest=rows,
        files=files,
        note=f"{dataset.note} {note}" if dataset.note else note,
    )
