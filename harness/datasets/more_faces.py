"""more-faces: scenes for the calibration of face detection, made as composed-faces is, of other parts.

Faces and pieces of background are those of scikit-image's lfw_subset that composed-faces leaves over (four each),
mirrored and in many brightnesses; photographs are its astronaut (NASA, with one more face), chelsea and camera (CC0).
Scenes are made when they are read and not kept: 512 of them would fill half a gigabyte.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from harness.datasets.composed_faces import COLUMNS, FACES, HEIGHT, NOISE, ROWS, WHEEL, WIDTH, Pixels, enlarged
from harness.datasets.definition import Dataset, samples_digest
from harness.models.progress import Progress
from harness.models.sources import Pinned, fetch_all
from harness.tasks.base import Sample

NAME = "more-faces"
PHOTOS = (
    Pinned(f"{WHEEL}astronaut.png", "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5", 791555),
    Pinned(f"{WHEEL}chelsea.png", "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb", 240512),
    Pinned(f"{WHEEL}camera.png", "b0793d2adda0fa6ae899c03989482bff9a42d3d5690fc7e3648f2795d730c23a", 139512),
)
SCENES = 512
SEED = 70_000  # composed-faces uses 5 to 28 and 1005 to 1028
UNUSED = (96, 97, 98, 99)  # of lfw_subset's 100 faces; the same numbers, a hundred on, of its backgrounds
VERSION = "1"  # raised whenever a scene changes


def open_more_faces(cache: Path, offline: bool = False, progress: Progress | None = None) -> Dataset:
    """Return the scenes, fetching their parts where the cache lacks them. Raises ModelError."""
    patches, *photos = fetch_all((FACES, *PHOTOS), cache, offline, progress)
    grey = np.rint(np.load(patches, allow_pickle=False) * 255.0).astype(np.int64)
    left_over = grey[[*UNUSED, *(100 + number for number in UNUSED)]]
    grounds = [np.asarray(Image.open(path).convert("RGB"), dtype=np.int64) for path in photos]
    parts = (str(patches), *map(str, photos))
    samples = tuple(
        Sample(id=f"{number:03d}", files=parts, data={"scene": number, "version": VERSION}) for number in range(SCENES)
    )
    files = {name: pin.sha256 for name, pin in zip(parts, (FACES, *PHOTOS), strict=True)}
    return Dataset(
        name=NAME,
        title="Composed scenes with other faces",
        digest=samples_digest(samples, files),
        samples=samples,
        licence="Public domain and CC0 (photographs), Labeled Faces in the Wild for research (faces)",
        source="pypi:scikit-image==0.26.0",
        note="Scenes for calibration: four faces in many sizes, and another seed than composed-faces.",
        files=files,
        decode=lambda sample: Image.fromarray(compose(int(sample.data["scene"]), left_over, grounds)),
    )


def compose(number: int, patches: Pixels, grounds: list[Pixels]) -> npt.NDArray[np.uint8]:
    """Return one scene [480,640,3]. `patches` are the faces, then as many pieces of background, 25 by 25 each."""
    random = np.random.RandomState(SEED + number)
    ground = grounds[number % len(grounds)]
    top, left = (int(random.randint(0, size)) for size in ground.shape[:2])
    canvas = np.tile(ground, (4, 4, 1))[top : top + HEIGHT, left : left + WIDTH].copy()
    faces = len(patches) // 2
    for position in range(COLUMNS * ROWS):
        factor = int(random.randint(1, 5))
        chosen = patches[int(random.randint(0, faces)) + (faces if random.randint(0, 3) == 0 else 0)]
        patch = enlarged(chosen[:, ::-1] if random.randint(0, 2) else chosen, factor)
        patch = patch * int(random.randint(60, 141)) // 100 + int(random.randint(-20, 21))
        side = patch.shape[0]
        row = (position // COLUMNS) * 235 + int(random.randint(5, 235 - side))
        column = (position % COLUMNS) * 155 + int(random.randint(0, 155 - side))
        canvas[row : row + side, column : column + side] = patch[:, :, np.newaxis]
    noise = random.randint(-NOISE, NOISE + 1, size=canvas.shape)
    return np.asarray((canvas + noise).clip(0, 255).astype(np.uint8))
