"""Which dataset is asked for: pure data, so that reading a suite file needs no numpy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset by name. `prefer` is taken instead where the user's configuration names a folder for it."""

    name: str  # a name of the catalogue, or a name for the user's own folder
    folder: Path | None = None  # the user's labelled folder
    labels: Path | None = None  # its table "file <tab> class"; None: one sub-folder per class
    limit: int | None = None  # at most so many samples, chosen by a fixed seed
    prefer: str | None = None
