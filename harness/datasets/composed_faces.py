"""composed-faces: small grey faces and pieces of background, pasted into photographs at known places, under noise.

Faces and backgrounds are those of scikit-image's lfw_subset (Labeled Faces in the Wild), photographs its coffee, grass,
gravel and brick (CC0). Integers only, and uncompressed files: the bytes are the same on every machine.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from harness.datasets.definition import Dataset, samples_digest
from harness.datasets.files import kept_folder
from harness.models.progress import Progress, SilentProgress
from harness.models.sources import Pinned, fetch_all
from harness.tasks.base import Sample

NAME = "composed-faces"
WHEEL = "pypi:scikit-image==0.26.0!skimage/data/"
FACES = Pinned(f"{WHEEL}lfw_subset.npy", "9560ec2f5edfac01973f63a8a99d00053fecd11e21877e18038fbe500f8e872c", 1000080)
PHOTOS = (
    Pinned(f"{WHEEL}coffee.png", "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7", 466706),
    Pinned(f"{WHEEL}grass.png", "b6b6022426b38936c43a4ac09635cd78af074e90f42ffa8227ac8b7452d39f89", 217893),
    Pinned(f"{WHEEL}gravel.png", "c48615b451bf1e606fbd72c0aa9f8cc0f068ab7111ef7d93bb9b0f2586440c12", 194247),
    Pinned(f"{WHEEL}brick.png", "7966caf324f6ba843118d98f7a07746d22f6a343430add0233eca5f6eaaa8fcf", 106634),
)
PICTURES = 24
WIDTH, HEIGHT = 640, 480
COLUMNS, ROWS = 4, 2  # of patches in a picture, every second one a face
NOISE = 25  # without it the network finds every face, and no damage to it would show
SEED = 5

Pixels = npt.NDArray[np.int64]


def open_faces(cache: Path, offline: bool = False, progress: Progress | None = None) -> Dataset:
    """Return the dataset, fetching its parts and composing the pictures where the cache lacks them. Raises ModelError."""

    def make(folder: Path) -> None:
        patches, *photos = fetch_all((FACES, *PHOTOS), cache, offline, progress)
        grey = np.rint(np.load(patches, allow_pickle=False) * 255.0).astype(np.int64)
        grounds = [np.asarray(Image.open(path).convert("RGB"), dtype=np.int64) for path in photos]
        with (progress or SilentProgress()).step(f"{NAME}: composing", None):
            for number in range(PICTURES):
                picture = compose(number, grey, grounds[number % len(grounds)])
                Image.fromarray(picture).save(folder / f"{number:02d}.bmp")

    folder, hashes = kept_folder(cache, NAME, make)
    samples = tuple(
        Sample(
            id=f"{number:02d}",
            files=(str(folder / f"{number:02d}.bmp"),),
            label=[list(box) for box, is_face in _places(number) if is_face],
        )
        for number in range(PICTURES)
    )
    absolute = {str(folder / name): sha256 for name, sha256 in hashes.items()}
    return Dataset(
        name=NAME,
        title="Composed pictures with faces",
        digest=samples_digest(samples, absolute),
        samples=samples,
        licence="CC0 (photographs), Labeled Faces in the Wild for research (faces)",
        source="pypi:scikit-image==0.26.0",
        note="Small grey faces pasted into photographs: it tells whether the network still works as it should.",
        files=absolute,
    )


def compose(number: int, patches: Pixels, ground: Pixels) -> npt.NDArray[np.uint8]:
    """Return one picture [480,640,3]. `patches` are 100 faces, then 100 pieces of background, 25 by 25 each."""
    canvas = np.tile(ground, (2, 2, 1))[:HEIGHT, :WIDTH]
    for position, ((left, top, right, bottom), is_face) in enumerate(_places(number)):
        index = (number * 4 + position // 2) % 100
        patch = enlarged(patches[index if is_face else 100 + index], _factor(number, position))
        canvas[top:bottom, left:right] = patch[:, :, np.newaxis]
    noise = np.random.RandomState(SEED + 1000 + number).randint(-NOISE, NOISE + 1, size=canvas.shape)
    return np.asarray((canvas + noise).clip(0, 255).astype(np.uint8))


def enlarged(patch: Pixels, factor: int) -> Pixels:
    """Return the square patch with factor - 1 values set between each two neighbours, linearly, rounded half up."""
    for _ in range(2):  # rows, then columns
        steps = np.arange((patch.shape[0] - 1) * factor + 1)
        whole, part = steps // factor, (steps % factor)[:, np.newaxis]
        following = np.minimum(whole + 1, patch.shape[0] - 1)
        patch = (patch[whole] * (factor - part) + patch[following] * part).T
    return (patch + factor * factor // 2) // (factor * factor)


def _factor(number: int, position: int) -> int:
    return 1 + (number + position) % 3


def _places(number: int) -> list[tuple[tuple[int, int, int, int], bool]]:
    """Return each patch's box (left, top, right, bottom), and whether it is a face."""
    random = np.random.RandomState(SEED + number)
    places = []
    for position in range(COLUMNS * ROWS):
        side = 24 * _factor(number, position) + 1
        left = (position % COLUMNS) * 155 + int(random.randint(10, 60))
        top = (position // COLUMNS) * 235 + int(random.randint(10, 100))
        places.append(((left, top, left + side, top + side), (position + number) % 2 == 0))
    return places
