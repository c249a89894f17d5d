"""imagenet-val: the ImageNet validation set in the user's own folder, as MLPerf lays it out.

The 50,000 JPEGs lie in the folder (or in `val/`), beside `val_map.txt` with lines "ILSVRC2012_val_00000001.JPEG 65".
Its licence forbids handing it on; a user asks for access at its publisher.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.datasets.definition import Dataset
from harness.datasets.labelled_folder import labelled, read_labels
from harness.errors import ModelError

NAME = "imagenet-val"
COMPLETE = 50_000


def open_imagenet(folder: Path | None, limit: int | None, cache: Path) -> Dataset:
    """Return the dataset, or `limit` pictures of it chosen by a fixed seed: only those are read and hashed.

    Raises ModelError that says how to configure the folder, or what it lacks.
    """
    if folder is None:
        raise ModelError(
            "The dataset imagenet-val is not configured.",
            'Put the 50,000 JPEGs and val_map.txt into one folder and write imagenet = "/that/folder" under [datasets] '
            "in config.toml (docs/workloads.md).",
        )
    table = folder / "val_map.txt"
    if not table.is_file():
        raise ModelError(f"The ImageNet folder {folder} has no val_map.txt.", "It maps each JPEG's name to its class.")
    pictures = folder / "val" if (folder / "val").is_dir() else folder
    pairs = read_labels(table, pictures)
    whole = len(pairs)
    if limit is not None and limit < whole:
        order = np.random.RandomState(0).permutation(whole)[:limit]
        pairs = [pairs[position] for position in sorted(order.tolist())]
    dataset = labelled(NAME, "ImageNet validation", pictures, pairs, cache)
    notes = []
    if whole != COMPLETE:
        notes.append(f"The folder holds {whole} pictures; the complete set has {COMPLETE}.")
    if len(pairs) < whole:
        notes.append(f"{len(pairs)} of {whole} pictures, chosen by a fixed seed.")
    name = NAME if len(pairs) == COMPLETE else f"{NAME}-{len(pairs)}"
    return replace(dataset, name=name, licence="ImageNet terms of access", note=" ".join(notes) or None)
