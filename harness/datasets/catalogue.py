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

# What each is for. Photos have no labels: they serve the timed loop only.
TASKS_OF: Mapping[str, tuple[str, ...]] = {
    "stamps-imagenet": ("image_classification",),
    "imagenet-val": ("image_classification",),
    "photos": ("image_classification", "face_detection"),
    "composed-faces": ("face_detection",),
    "synthesised-notes": ("note_transcription",),
    "rated-tweets": ("sentence_embedding",),
    "prompts-and-music": ("voice_activity",),
}
UNLABELLED = ("photos",)
OWN_FOLDER_TASKS = ("image_classification", "sentence_embedding")  # classes; texts by a table of labels

# Data that set the scales of quantised models. They have no labels, are no evaluation data, and share nothing with any.
CALIBRATION: Mapping[str, str] = {
    "stamps-unlabelled": "harness.datasets.stamps_unlabelled:open_unlabelled",
    "more-faces": "harness.datasets.more_faces:open_more_faces",
    "more-notes": "harness.datasets.more_notes:open_more_notes",
    "more-voices": "harness.datasets.more_voices:open_more_voices",
    "rated-snippets": "harness.datasets.rated_snippets:open_snippets",
}

PREFERABLE: Mapping[str, str] = {"imagenet-val": "imagenet"}  # dataset -> its key in [datasets] of config.toml
