"""Note transcription (basic-pitch): WAV window -> audio[N,43844,1] float32 -> posteriorgrams -> the notes of each frame.

The network hears 43,844 samples at 22,050 Hz (just under two seconds) and answers for 172 frames, one each 256 samples,
and the 88 keys of a piano (0 is A0, MIDI 21). Parameters: `threshold` (0.3, the package's own default),
`minimum_frames` (1; shorter runs are dropped. The package drops notes below 11 frames, 128 ms; a measure by frames does
not).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.tasks.base import Array, Sample
from harness.tasks.parameters import check_names, real, whole
from harness.tasks.waveforms import FloatArray, read_wave

RATE_HZ = 22050
WINDOW = 43844
HOP = 256
FRAMES = 172
KEYS = 88
LOWEST_MIDI = 21


class NoteTranscription:
    """See the module. Predictions are {"notes": [[key, first frame, frame after the last], ...]}."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        task = "note_transcription"
        check_names(task, parameters, ("threshold", "minimum_frames"))
        self.carry: Mapping[str, str] = {}
        self.threshold = real(task, parameters, "threshold", 0.3, 0.0, 1.0)
        self.minimum_frames = whole(task, parameters, "minimum_frames", 1)

    def decode(self, sample: Sample) -> FloatArray:
        """Read one window: the sample's file from `start` (in samples, default 0). Raises ModelError."""
        return read_wave(sample.files[0], RATE_HZ, int(sample.data.get("start", 0)), WINDOW)

    def preprocess(self, decoded: FloatArray) -> dict[str, Array]:
        """Return audio[1,43844,1] float32, silence after a recording that is shorter."""
        audio = np.zeros((1, WINDOW, 1), dtype=np.float32)
        audio[0, : decoded.size, 0] = decoded[:WINDOW]
        return {"audio": audio}

    def postprocess(self, outputs: Mapping[str, Array]) -> list[Any]:
        """Return the runs of frames in which note[N,172,88] reaches the threshold."""
        note = np.asarray(outputs["note"])
        return [{"notes": sounding_runs(window >= self.threshold, self.minimum_frames)} for window in note]


def sounding_runs(active: npt.NDArray[np.bool_], minimum_frames: int) -> list[list[int]]:
    """Turn active[frames, keys] into [key, first, end) runs of at least `minimum_frames`, by key and then time."""
    padded = np.zeros((active.shape[1], active.shape[0] + 2), dtype=np.int8)
    padded[:, 1:-1] = active.T
    steps = np.diff(padded, axis=1)
    keys, first = np.nonzero(steps == 1)
    end = np.nonzero(steps == -1)[1]  # row-major order pairs each start with its own end
    kept = end - first >= minimum_frames
    found: list[list[int]] = np.stack([keys, first, end], axis=1)[kept].tolist()
    return found
