"""What a dataset is: labelled samples of a known origin, known by name and digest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    decode: Callable[[Sample], Any] | None = None  # of samples that are made when read; None: the task reads them

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


def contents_of(dataset: Dataset) -> tuple[str, ...]:
    """Return the SHA-256 of what the samples are made of, sorted: each file once; of a sample without files, its data.

    Two sets that share one of these share a picture, a recording or a text, whatever their identifiers and labels are.
    """
    hashes = dataset.files or {}
    found = {hashes[name] for sample in dataset.samples for name in sample.files}
    found |= {digest_of(dict(sample.data)) for sample in dataset.samples if not sample.files}
    return tuple(sorted(found))


def leading(dataset: Dataset, count: int) -> Dataset:
    """Return the dataset, or its first `count` samples; the name then says so."""
    if count >= len(dataset.samples):
        return dataset
    return _part(dataset, dataset.samples[:count], f"The first {count} of {len(dataset.samples)} samples.")


def subset(dataset: Dataset, limit: int | None) -> Dataset:
    """Return the dataset, or `limit` of its samples chosen by a fixed seed; the name then says so."""
    if limit is None or limit >= len(dataset.samples):
        return dataset
    order = np.random.RandomState(0).permutation(len(dataset.samples))[:limit]
    chosen = tuple(dataset.samples[position] for position in sorted(order.tolist()))
    return _part(dataset, chosen, f"{limit} of {len(dataset.samples)} samples, chosen by a fixed seed.")


def _part(dataset: Dataset, chosen: tuple[Sample, ...], note: str) -> Dataset:
    used = {name for sample in chosen for name in sample.files}
    files = {name: sha256 for name, sha256 in (dataset.files or {}).items() if name in used}
    rows = digest_of([dataset.digest, [sample.id for sample in chosen]])
    return replace(
        dataset,
        name=f"{dataset.name}-{len(chosen)}",
        samples=chosen,
        digest=rows,
        files=files,
        note=f"{dataset.note} {note}" if dataset.note else note,
    )
