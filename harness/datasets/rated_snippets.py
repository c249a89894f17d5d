"""rated-snippets: sentences of product reviews, film reviews and editorials, for the calibration of text networks.

They stand beside the tweets of rated-tweets in the source archive of vaderSentiment (MIT licence); no tweet is among them.
Their ratings are not used.
"""

from __future__ import annotations

from pathlib import Path

from harness.datasets.definition import Dataset, samples_digest
from harness.datasets.rated_texts import SOURCE as TWEETS
from harness.errors import ModelError
from harness.models.progress import Progress
from harness.models.sources import Pinned, fetch_all
from harness.tasks.base import Sample

NAME = "rated-snippets"
FOLDER = TWEETS.rpartition("!")[0] + "!hutto_ICWSM_2014/"
TABLES = {
    "amazon": Pinned(
        f"{FOLDER}amazonReviewSnippets_GroundTruth.txt",
        "11a9807a0974a2506a2d3b4851eaf69b3d6d20688ce4923adda2312a4f6dd6c2",
        373157,
    ),
    "films": Pinned(
        f"{FOLDER}movieReviewSnippets_GroundTruth.txt",
        "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350",
        1383098,
    ),
    "editorials": Pinned(
        f"{FOLDER}nytEditorialSnippets_GroundTruth.txt",
        "7d8fbcce7dde5d716da53e78f4ef4be6b706e9ef1e1d51887e6d0ad4b69cc27e",
        607629,
    ),
}


def open_snippets(cache: Path, offline: bool = False, progress: Progress | None = None) -> Dataset:
    """Return the sentences, fetching their tables where they are not in the cache. Raises ModelError."""
    tables = fetch_all(tuple(TABLES.values()), cache, offline, progress)
    samples: list[Sample] = []
    seen: set[str] = set()
    for name, path in zip(TABLES, tables, strict=True):
        for key, text in parse_snippets(path.read_text(encoding="utf-8", errors="replace")):
            if text not in seen:
                seen.add(text)
                samples.append(Sample(id=f"{name}-{key}", data={"text": text}))
    return Dataset(
        name=NAME,
        title="Sentences of reviews and editorials",
        digest=samples_digest(samples, {}),
        samples=tuple(samples),
        licence="MIT",
        source=FOLDER,
        note="Sentences for calibration; no tweet is among them.",
        files={},
    )


def parse_snippets(text: str) -> list[tuple[str, str]]:
    """Read lines of `number <tab> rating <tab> text` to (number, text). Raises ModelError that names a wrong line."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        parts = line.split("\t", 2)
        if len(parts) != 3:
            raise ModelError(f"Line {number} of the rated snippets is not `number, rating, text`.")
        if parts[2].strip():
            found.append((parts[0].strip(), parts[2].strip()))
    return found
