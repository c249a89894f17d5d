"""Reading WAV files with the standard library. 16-bit PCM only: what the datasets hold, and lossless to compare."""

from __future__ import annotations

import wave

import numpy as np
import numpy.typing as npt

from harness.errors import ModelError

FloatArray = npt.NDArray[np.float32]


def read_wave(path: str, rate: int, start: int = 0, count: int | None = None) -> FloatArray:
    """Return `count` samples from `start` (all, if None) as float32 in -1..1, several channels averaged to one.

    The file must have the sample rate `rate` in Hz: resampling would be a stage of its own, and is done when a dataset is
    made. Fewer samples come back at the end of the file. Raises ModelError.
    """
    try:
        with wave.open(path, "rb") as file:
            channels, width, found = file.getnchannels(), file.getsampwidth(), file.getframerate()
            if width != 2 or found != rate:
                raise ModelError(
                    f"The recording {path} has {found} Hz and {8 * width} bit; {rate} Hz and 16 bit are needed.",
                    "Convert it first.",
                )
            file.setpos(min(start, file.getnframes()))
            data = file.readframes(file.getnframes() if count is None else count)
    except (OSError, EOFError, wave.Error) as error:
        raise ModelError(f"The recording {path} cannot be read: {error}.", "Remove it from the dataset.") from error
    pcm = np.frombuffer(data, dtype="<i2").astype(np.float32)
    if channels > 1:
        pcm = pcm[: pcm.size // channels * channels].reshape(-1, channels).mean(axis=1, dtype=np.float32)
    pcm *= np.float32(1.0 / 32768.0)
    return pcm
