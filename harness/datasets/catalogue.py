"""The names of the datasets that this product knows, each with the module that opens it."""

from __future__ import annotations

from collections.abc import Mapping

# Called with (cache, offline, progress); imagenet-val and users' folders need a folder and are opened apart.
DATASETS: Mapping[str, str] = {
    "stamps-imagenet": "harness.datasets.stamps:open_stamps",
    "imagenet-val": "",
    "photos": "harness.datasets.photos:open_photos",
    "composed-faces": "harness.datasets.composed_faces:open_faces",
    "synthesised-notes": "harness.datasets.synthesised_notes:open_notes",
    "rated-tweets": "harness.datasets.rated_texts:open_tweets",
    "prompts-and-music": "harness.datasets.voices:open_voices",
}

PREFERABLE: Mapping[str, str] = {"imagenet-val": "imagenet"}  # dataset -> its key in [datasets] of config.toml
