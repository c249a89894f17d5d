"""rated-tweets: tweets whose feeling twenty people rated, from the source archive of vaderSentiment (MIT licence).

C. J. Hutto and E. Gilbert, VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text, ICWSM-14.
The label is the sign of the mean rating; tweets whose mean rating is below 0.5 either way, of 4, are
left out as neither.
"""

from __future__ import annotations

from pathlib import Path

from harness.datasets.definition import Dataset, samples_digest
from harness.errors import ModelError
from harness.models.progress import Progress
from harness.models.sources import fetch
from harness.tasks.base import Sample

NAME = "rated-tweets"
SOURCE = (
    "sdist:vaderSentiment==2.5#sha256=b960c954831f5ca58afee61780cc04ed48e551b91e783bfcbfb2c18bb8081a84"
    "!vaderSentiment-2.5/additional_resources/hutto_ICWSM_2014.tar.gz"
    "!hutto_ICWSM_2014/tweets_GroundTruth.txt"
)
SHA256 = "dfbe7102e2f92579ed8b19df9a3822491880697c67adf712fb66e520cc05102f"
BYTES = 389886
LEAST_RATING = 0.5


def open_tweets(cache: Path, offline: bool = False, progress: Progress | None = None) -> Dataset:
    """Return the dataset, fetching the table where it is not in the cache. Raises ModelError."""
    table = fetch(SOURCE, SHA256, cache, offline, progress, BYTES)
    samples = parse_ratings(table.read_text(encoding="utf-8", errors="replace"))
    return Dataset(
        name=NAME,
        title="Rated tweets",
        digest=samples_digest(samples, {}),
        samples=samples,
        licence="MIT",
        source=SOURCE,
        note="A linear classifier on the frozen embeddings: it tells how much of the feeling they keep.",
        files={},
    )


def parse_ratings(text: str) -> tuple[Sample, ...]:
    """Read lines of `number <tab> mean rating <tab> text`. Raises ModelError that names a wrong line."""
    samples = []
    for number, line in enumerate(text.splitlines(), start=1):
        parts = line.split("\t", 2)
        try:
            key, rating, words = parts[0], float(parts[1]), parts[2].strip()
        except (IndexError, ValueError):
            raise ModelError(f"Line {number} of the rated texts is not `number, rating, text`.") from None
        if abs(rating) >= LEAST_RATING and words:
            samples.append(Sample(id=key, label=rating > 0.0, data={"text": words}))
    return tuple(samples)
