"""Music that is synthesised with known notes, the same bytes on every machine.

Only exactly rounded operations are used (addition, multiplication, floor, and integers from numpy's frozen RandomState): a
platform's sine, power or fused multiply-add would change a few samples, and with them the dataset's digest.
"""

from __future__ import annotations

import io
import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.datasets.definition import Dataset, samples_digest
from harness.datasets.files import kept_folder
from harness.models.progress import Progress, SilentProgress
from harness.tasks.base import Sample
from harness.tasks.note_transcription import FRAMES, HOP, LOWEST_MIDI, RATE_HZ, WINDOW

NAME = "synthesised-notes"
SEED = 20240601
WINDOWS = 48
LOWEST, HIGHEST = 36, 84  # MIDI: C2 to C6, where most music lies

# Hz of C8 (MIDI 108) and the eleven semitones below, equal temperament, A4 = 440 Hz; halved exactly for each octave.
TOP_OCTAVE_HZ = {
    9: 3520.0, 10: 3729.3100921447194, 11: 3951.066410048992, 0: 4186.009044809578, 1: 2217.4610478149766,
    2: 2349.31814333926, 3: 2489.0158697766474, 4: 2637.02045530296, 5: 2793.825851464031, 6: 2959.955381693075,
    7: 3135.9634878539946, 8: 3322.437580639561,
}  # fmt: skip
TOP_MIDI = {9: 105, 10: 106, 11: 107, 0: 108, 1: 97, 2: 98, 3: 99, 4: 100, 5: 101, 6: 102, 7: 103, 8: 104}

Wave = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Note:
    """A note of a window: MIDI number, and the first sample and the sample after the last."""

    midi: int
    first: int
    end: int


def frequency_hz(midi: int) -> float:
    """Return the frequency of a MIDI note: one of twelve constants, halved until it is in the right octave."""
    name = midi % 12
    frequency, at = TOP_OCTAVE_HZ[name], TOP_MIDI[name]
    while at > midi:
        frequency, at = frequency / 2.0, at - 12
    return frequency


def sine(turns: Wave) -> Wave:
    """Return sin(2 pi turns) within 1e-7, from multiplications and additions only.

    The phase is folded into a quarter turn; there the Taylor polynomial of the sine to the 13th power is that exact.
    """
    phase = turns - np.floor(turns + 0.5)  # -0.5..0.5
    phase = np.where(phase > 0.25, 0.5 - phase, np.where(phase < -0.25, -0.5 - phase, phase))
    x = phase * 6.283185307179586
    square = x * x
    result = np.full_like(x, 1.0 / 6227020800.0)
    for coefficient in (-1.0 / 39916800.0, 1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0):
        result = result * square
        result = result + coefficient
    return np.asarray(result * x, dtype=np.float64)


def compose(window: int) -> list[Note]:
    """Choose the notes of one window: two to four voices, each a sequence of notes of 0.25 to 0.9 s with short gaps."""
    random = np.random.RandomState(SEED + window)
    notes: list[Note] = []
    for voice in range(2 + window % 3):
        low = LOWEST + voice * 12
        at = int(random.randint(0, RATE_HZ // 4))
        while at < WINDOW - RATE_HZ // 4:
            length = int(random.randint(RATE_HZ // 4, RATE_HZ * 9 // 10))
            midi = int(random.randint(low, min(low + 14, HIGHEST + 1)))
            end = min(at + length, WINDOW)
            if not any(other.midi == midi and other.first < end and at < other.end for other in notes):
                notes.append(Note(midi, at, end))
            at = end + int(random.randint(0, RATE_HZ // 8))
    return sorted(notes, key=lambda note: (note.midi, note.first))


def render(window: int) -> npt.NDArray[np.int16]:
    """Return the window's 43,844 samples: decaying tones of six harmonics with a soft attack, and faint noise."""
    random = np.random.RandomState(SEED + 1000 + window)
    sound = np.zeros(WINDOW)
    for note in compose(window):
        count = note.end - note.first
        turns = np.arange(count, dtype=np.float64) * (frequency_hz(note.midi) / RATE_HZ)
        tone = np.zeros(count)
        for harmonic in range(1, 7):
            if frequency_hz(note.midi) * harmonic > RATE_HZ * 0.45:
                break
            tone = tone + sine(turns * harmonic) * (1.0 / (harmonic * harmonic))
        sound[note.first : note.end] = sound[note.first : note.end] + tone * _envelope(count)
    loudest = np.abs(sound).max()
    pcm = np.rint(sound * (20000.0 / loudest)).astype(np.int64)
    pcm = pcm + random.randint(-40, 41, size=WINDOW)
    return np.asarray(pcm.astype(np.int16))


def _envelope(count: int) -> Wave:
    """10 ms of attack, a linear-squared decay to a third, 30 ms of release."""
    position = np.arange(count, dtype=np.float64)
    rise = np.minimum(position * (1.0 / 220.0), 1.0)
    fall = np.minimum((count - position) * (1.0 / 661.0), 1.0)
    left = 1.0 - position * (0.45 / RATE_HZ)
    return rise * fall * left * left


def wave_bytes(pcm: npt.NDArray[np.int16], rate_hz: int) -> bytes:
    """Return a mono 16-bit WAV file."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(pcm.astype("<i2").tobytes())
    return buffer.getvalue()


def open_notes(cache: Path, offline: bool = False, progress: Progress | None = None) -> Dataset:
    """Return the dataset; its windows are synthesised where the cache lacks them, which needs no network."""

    def make(folder: Path) -> None:
        with (progress or SilentProgress()).step(f"{NAME}: synthesising", None):
            for window in range(WINDOWS):
                (folder / f"{window:03d}.wav").write_bytes(wave_bytes(render(window), RATE_HZ))

    folder, hashes = kept_folder(cache, NAME, make)
    samples = tuple(
        Sample(id=f"{window:03d}", files=(str(folder / f"{window:03d}.wav"),), label=frames_of(compose(window)))
        for window in range(WINDOWS)
    )
    absolute = {str(folder / name): sha256 for name, sha256 in hashes.items()}
    return Dataset(
        name=NAME,
        title="Synthesised notes",
        digest=samples_digest(samples, absolute),
        samples=samples,
        licence="Apache-2.0",
        source="synthesised by this program",
        note="Simple synthesised tones: it tells whether the network still works as it should, not how it hears music.",
        files=absolute,
    )


def frames_of(notes: list[Note]) -> list[list[int]]:
    """Return [key, first frame, end frame) of each note: the frames whose first sample lies inside it."""
    return [[note.midi - LOWEST_MIDI, -(-note.first // HOP), min(-(-note.end // HOP), FRAMES)] for note in notes]
