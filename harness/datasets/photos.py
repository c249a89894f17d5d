"""photos: eight photographs, real JPEGs for decoding and for the timed loop. They have no labels.

Two come out of the scikit-learn package (CC BY). Six, with faces, come out of the source archive of the face-recognition
package: official White House photographs, works of the United States government. They are fetched, never shipped or shown.
"""

from __future__ import annotations

from pathlib import Path

from harness.datasets.definition import Dataset, samples_digest
from harness.models.progress import Progress
from harness.models.sources import Pinned, fetch_all
from harness.tasks.base import Sample

NAME = "photos"
WHEEL = "pypi:scikit-learn==1.7.2!sklearn/datasets/images/"
SDIST = (
    "sdist:face-recognition==1.3.0#sha256=5e5efdd1686aa566af0d3cc1313b131e4b197657a8ffd03669e6d3fad92705ec"
    "!face_recognition-1.3.0/tests/test_images/"
)
PICTURES = (
    Pinned(f"{WHEEL}china.jpg", "8378025ad2519d649d02e32bd98990db4ab572357d9f09841c2fbfbb4fefad29", 196653),
    Pinned(f"{WHEEL}flower.jpg", "a77f6ec41e353afdf8bdff2ea981b2955535d8d83294f8cfa49cf4e423dd5638", 142987),
    Pinned(f"{SDIST}biden.jpg", "3c17508bb91554c637a2eabddfae790e5bb1caba93130814fc2ac50be9760c4c", 353723),
    Pinned(f"{SDIST}obama.jpg", "0930e3aa8cae5920329c0c8cbc6a2ab70f47b0e67b432875beaa95cbf7e741f6", 279922),
    Pinned(f"{SDIST}obama2.jpg", "a7efcc907375274796f39646510704aa86672d59f6d5469d69af3c85590976a6", 184455),
    Pinned(f"{SDIST}obama3.jpg", "76ac6bf97c36dc2da0ad16a537d6a5ac1b10f48d49aac29a0cca9a17cdbc3ca3", 595944),
    Pinned(
        f"{SDIST}obama_partial_face.jpg", "c2d1f09e7ef3042352b41e41286e6eb0522f64f88308be13886991b95db52117", 423060
    ),
    Pinned(
        f"{SDIST}obama_partial_face2.jpg", "9a812347f97633542b8cd9992de22def11b74f79d82056bc3ee830f13878e028", 478346
    ),
)


def open_photos(cache: Path, offline: bool = False, progress: Progress | None = None) -> Dataset:
    """Return the dataset, fetching the pictures where they are not in the cache. Raises ModelError."""
    paths = fetch_all(PICTURES, cache, offline, progress)
    samples = tuple(
        Sample(id=Path(pin.source).stem, files=(str(path.absolute()),))
        for pin, path in zip(PICTURES, paths, strict=True)
    )
    absolute = {sample.files[0]: pin.sha256 for sample, pin in zip(samples, PICTURES, strict=True)}
    return Dataset(
        name=NAME,
        title="Eight photographs",
        digest=samples_digest(samples, absolute),
        samples=samples,
        licence="CC BY 2.0 (china: danielbuechele, flower: vultilion); works of the United States government (others)",
        source="pypi:scikit-learn==1.7.2, sdist:face-recognition==1.3.0",
        note="Photographs without labels, for latency only.",
        files=absolute,
    )
