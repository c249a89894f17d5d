"""more-voices: recordings for the calibration of voice activity: other prompts, later music, other noise.

None is among those of prompts-and-music, which accuracy is measured on.
From the same two Debian packages as prompts-and-music (CC BY-SA 3.0), cut and doubled in the same way.
"""

from __future__ import annotations

from pathlib import Path

from harness.datasets.debian import scratch_folder, unpack_package
from harness.datasets.definition import Dataset, samples_digest
from harness.datasets.files import kept_folder
from harness.datasets.voices import (
    LONGEST_S,
    MUSIC_FOLDER,
    MUSIC_PACKAGE,
    SOURCE_RATE_HZ,
    SPEECH_FOLDER,
    SPEECH_PACKAGE,
    doubled,
    frames_of,
    noise,
    write_recording,
)
from harness.errors import ModelError
from harness.models.progress import Progress
from harness.tasks.base import Sample
from harness.tasks.waveforms import read_pcm

NAME = "more-voices"
SPEECH = (
    "demo-congrats", "demo-instruct", "conf-usermenu", "vm-advopts", "vm-forwardoptions", "priv-recordintro",
    "tt-weasels", "vm-nobodyavail",
)  # fmt: skip
MUSIC = ("macroform-cold_day", "macroform-robot_dity", "macroform-the_simplicity", "reno_project-system")
MUSIC_FROM_S = 100  # prompts-and-music ends at 63
NOISES = range(20, 23)  # prompts-and-music has the numbers 0 to 5
LOUDNESS = (500, 1500, 4000)


def open_more_voices(cache: Path, offline: bool = False, progress: Progress | None = None) -> Dataset:
    """Return the frames, fetching and cutting the recordings where the cache lacks them. Raises ModelError."""

    def make(folder: Path) -> None:
        with scratch_folder(folder.parent) as first, scratch_folder(folder.parent) as second:
            unpack_package(SPEECH_PACKAGE, Path(first), NAME, offline, progress)
            unpack_package(MUSIC_PACKAGE, Path(second), NAME, offline, progress)
            for name in SPEECH:
                _cut(Path(first) / "root" / SPEECH_FOLDER / f"{name}.wav", 0, folder / f"speech-{name}.wav")
            for name in MUSIC:
                _cut(Path(second) / "root" / MUSIC_FOLDER / f"{name}.wav", MUSIC_FROM_S, folder / f"music-{name}.wav")
            for number, loudness in zip(NOISES, LOUDNESS, strict=True):
                write_recording(folder / f"noise-{number}.wav", noise(number, loudness))

    folder, hashes = kept_folder(cache, NAME, make)
    samples: list[Sample] = []
    for name in sorted(hashes):
        samples += frames_of(folder / name)
    absolute = {str(folder / name): sha256 for name, sha256 in hashes.items()}
    return Dataset(
        name=NAME,
        title="More telephone prompts, music and noise",
        digest=samples_digest(samples, absolute),
        samples=tuple(samples),
        licence="CC BY-SA 3.0",
        source=f"debian:{SPEECH_PACKAGE}, debian:{MUSIC_PACKAGE}",
        note="Recordings for calibration; none of them is among those that accuracy is measured on.",
        files=absolute,
    )


def _cut(path: Path, from_s: int, target: Path) -> None:
    if not path.is_file():
        raise ModelError(
            f"The recording {path.name} of the dataset {NAME} is not in this release's Debian package.",
            "Copy the cache's folder from a Debian 12 machine.",
        )
    start = from_s * SOURCE_RATE_HZ
    write_recording(target, doubled(read_pcm(str(path), SOURCE_RATE_HZ)[start : start + LONGEST_S * SOURCE_RATE_HZ]))
