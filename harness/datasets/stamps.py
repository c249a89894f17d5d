"""stamps-imagenet: 113 cut-out photographs of animals and things, with the ImageNet classes that count as right.

The pictures are those of Debian's package tuxpaint-stamps-default (GPL-2), fetched when they are needed and never shipped;
the labels are ours. The result is not ImageNet accuracy, and not to be quoted as such: few pictures, easy ones, on white.
"""

from __future__ import annotations

import csv
import shutil
from importlib.resources import files
from pathlib import Path

from harness.datasets.debian import scratch_folder, unpack_package
from harness.datasets.definition import Dataset, samples_digest
from harness.datasets.files import file_sha256, kept_folder
from harness.errors import ModelError
from harness.models.progress import Progress
from harness.tasks.base import Sample

NAME = "stamps-imagenet"
PACKAGE = "tuxpaint-stamps-default"
DEB_SHA256 = "6db6c1bfc870a47f1499d6203b083522eacb57c5f9c87d468f2e92eb6d9d5f34"  # 2022.06.04-1
INSIDE = Path("usr/share/tuxpaint/stamps")
NOTE = (
    "113 cut-out photographs with our own labels, on white: it tells whether a network still works as it should on a "
    "backend. It is not ImageNet accuracy."
)


def open_stamps(cache: Path, offline: bool, progress: Progress | None = None) -> Dataset:
    """Return the dataset, fetching the pictures where they are not in the cache. Raises ModelError."""
    rows = _rows()
    expected = {f"{row['stamp']}.png": row["sha256"] for row in rows}

    def make(folder: Path) -> None:
        with scratch_folder(folder.parent) as scratch:
            deb = unpack_package(PACKAGE, Path(scratch), NAME, offline, progress)
            for name in expected:
                source = Path(scratch) / "root" / INSIDE / name
                if not source.is_file():
                    known = "the pinned one" if file_sha256(deb) == DEB_SHA256 else f"{deb.name}, not the pinned one"
                    raise ModelError(
                        f"The Debian package {PACKAGE} ({known}) has no picture {name}.",
                        "Copy the cache's folder from a Debian 12 machine, or use a labelled folder of your own.",
                    )
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, folder / name)

    folder, hashes = kept_folder(cache, NAME, make, expected)
    samples = tuple(
        Sample(
            id=row["stamp"],
            files=(str(folder / f"{row['stamp']}.png"),),
            label=[int(index) for index in row["imagenet_indices"].split(",")],
        )
        for row in rows
    )
    absolute = {str(folder / name): sha256 for name, sha256 in hashes.items()}
    return Dataset(
        name=NAME,
        title="Stamps with ImageNet labels",
        digest=samples_digest(samples, absolute),
        samples=samples,
        licence="GPL-2 (pictures), Apache-2.0 (labels)",
        source=f"debian:{PACKAGE}",
        note=NOTE,
        files=absolute,
    )


def labelled_stamps() -> dict[str, str]:
    """Return the SHA-256 of each labelled picture, by its stamp's name."""
    return {row["stamp"]: row["sha256"] for row in _rows()}


def _rows() -> list[dict[str, str]]:
    text = (files("harness.datasets") / "stamps-imagenet-labels.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))
