"""Reading WAV files with the standard library. 16-bit PCM only: what the datasets hold, and lossless to compare."""

from __future__ import annotations

import wave

import numpy as np
import numpy.typing as npt

from harness.errors import ModelError

IntArray = npt.NDArray[np.int16]
FloatArray = npt.NDArray[np.float32]


def read_pcm(path: str, rate: int, start: int = 0, count: int | None = None) -> IntArray:
    """Return `count` samples from `start` (all, if None) of a mono recording as they stand. See `read_wave`."""
    try:
        with wave.open(path, "rb") as file:
            channels, width, found = file.getnchannels(), file.getsampwidth(), file.getframerate()
            if (channels, width, found) != (1, 2, rate):
                raise ModelError(
                    f"The recording {path} has {channels} channels, {found} Hz and {8 * width} bit; "
                    f"one channel, {rate} Hz and 16 bit are needed.",
                    "Convert it first.",
                )
            file.setpos(min(start, file.getnframes()))
            data = file.readframes(file.getnframes() if count is None else count)
    except (OSError, EOFError, wave.Error) as error:
        raise ModelError(f"The recording {path} cannot be read: {error}.", "Remove it from the dataset.") from error
    return np.frombuffer(data, dtype="<i2")


def read_wave(path: str, rate: int, start: int = 0, count: int | None = None) -> FloatArray:
    """Return `count` samples from `start` (all, if None) as float32 in -1..1.

    The file must be mono, 16 bit, of the sample rate `rate` in Hz: converting would be a stage of its own, and is done when
    a dataset is made. Fewer samples come back at the end of the file. Raises ModelError.
    """
    wave_form = read_pcm(path, rate, start, count).astype(np.float32)
    wave_form *= np.float32(1.0 / 32768.0)
    return wave_form
