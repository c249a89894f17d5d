"""stamps-unlabelled: the other 683 pictures of Debian's tuxpaint-stamps-default, for calibration only.

The 113 labelled pictures of stamps-imagenet are left out, and so is any other file with the content of one of them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.datasets.debian import scratch_folder, unpack_package
from harness.datasets.definition import Dataset, samples_digest
from harness.datasets.files import file_sha256, kept_folder
from harness.datasets.stamps import INSIDE, PACKAGE, labelled_stamps
from harness.models.progress import Progress
from harness.tasks.base import Sample

NAME = "stamps-unlabelled"


def open_unlabelled(cache: Path, offline: bool = False, progress: Progress | None = None) -> Dataset:
    """Return the pictures, fetching them where they are not in the cache. Raises ModelError."""
    labelled = labelled_stamps()

    def make(folder: Path) -> None:
        with scratch_folder(folder.parent) as scratch:
            unpack_package(PACKAGE, Path(scratch), NAME, offline, progress)
            stamps = Path(scratch) / "root" / INSIDE
            for source in sorted(stamps.rglob("*.png")):
                if source.is_file() and not source.is_symlink() and file_sha256(source) not in labelled.values():
                    target = folder / source.relative_to(stamps)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)

    folder, hashes = kept_folder(cache, NAME, make)
    samples = tuple(Sample(id=name.removesuffix(".png"), files=(str(folder / name),)) for name in sorted(hashes))
    absolute = {str(folder / name): sha256 for name, sha256 in hashes.items()}
    return Dataset(
        name=NAME,
        title="Stamps without labels",
        digest=samples_digest(samples, absolute),
        samples=samples,
        licence="GPL-2",
        source=f"debian:{PACKAGE}",
        note="Pictures for calibration; none of them is among the 113 that accuracy is measured on.",
        files=absolute,
    )
