"""Streaming voice activity (Silero VAD): WAV frame -> input[1,576] and state[2,1,128] -> the chance of speech.

A frame is 512 new samples at 16 kHz (32 ms) after the 64 that came before them. The state goes on from frame to frame of a
recording: `carry` tells the worker, and a sample whose data says `first` begins with silence and a state of zeros. A
sample's data holds `start`, the index of the first new sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.tasks.base import Array, Sample
from harness.tasks.parameters import check_names
from harness.tasks.waveforms import FloatArray, read_wave

RATE_HZ = 16000
CONTEXT = 64
NEW = 512
STATE_SHAPE = (2, 1, 128)


class VoiceActivity:
    """See the module. Predictions are {"speech": probability}."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        check_names("voice_activity", parameters, ())
        self.carry: Mapping[str, str] = {"state": "stateN"}

    def decode(self, sample: Sample) -> FloatArray:
        """Return the frame's 576 samples, zeros before the recording begins and after it ends. Raises ModelError."""
        start = int(sample.data.get("start", 0))
        before = min(start, CONTEXT)
        frame = np.zeros(CONTEXT + NEW, dtype=np.float32)
        found = read_wave(sample.files[0], RATE_HZ, start - before, before + NEW)
        frame[CONTEXT - before : CONTEXT - before + found.size] = found
        return frame

    def preprocess(self, decoded: FloatArray) -> dict[str, Array]:
        """Return input[1,576], the state of a new stream, and the sample rate for files that ask for it."""
        return {
            "input": decoded[np.newaxis],
            "state": np.zeros(STATE_SHAPE, dtype=np.float32),
            "sr": np.array(RATE_HZ, dtype=np.int64),
        }

    def postprocess(self, outputs: Mapping[str, Array]) -> list[Any]:
        """Return the probability of output[N,1]."""
        return [{"speech": float(value)} for value in np.asarray(outputs["output"]).reshape(-1)]
