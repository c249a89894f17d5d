"""The folder of an .mlpackage, or of an OpenVINO IR, beside the zip file that the cache knows by its digest."""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import ModelError
from harness.models.archives import extract_folder, folder_matches, remove_tree
from harness.models.cache import Cache


def unpacked_model(cache: Cache, packed: Path, sha256: str, model_format: str) -> Path:
    """Return what a runtime opens of a packed model: the folder of a CoreML package, the model.xml of an OpenVINO IR."""
    if model_format != "openvino":
        return unpacked_folder(cache, packed, sha256, ".mlpackage")
    path = unpacked_folder(cache, packed, sha256, ".openvino") / "model.xml"
    if not path.is_file():
        raise ModelError(f"The packed OpenVINO model {packed} holds no model.xml.", "Delete it; it is built again.")
    return path


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
