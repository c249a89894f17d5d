"""The folder of an .mlpackage beside the zip file that the cache knows by its digest."""

from __future__ import annotations

import os
from pathlib import Path

from harness.models.archives import extract_folder, folder_matches, remove_tree
from harness.models.cache import Cache


def unpacked_folder(cache: Cache, packed: Path, sha256: str, suffix: str) -> Path:
    """Return the folder with exactly the files of `packed`; it is made, or made anew, where it is not so."""
    folder = cache.path_of(sha256, suffix)
    if folder.is_dir() and folder_matches(folder, packed):
        return folder
    with cache.lock(f"unpack-{sha256}"):
        if folder.is_dir() and folder_matches(folder, packed):
            return folder
        with cache.writing(), cache.working_folder() as work:
            fresh = work / "folder"
            fresh.mkdir()
            extract_folder(packed, "", fresh)
            if folder.exists():
                os.replace(folder, work / "damaged")
            os.replace(fresh, folder)
            remove_tree(work / "damaged")
    return folder
