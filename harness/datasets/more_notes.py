"""more-notes: windows of synthesised music for calibration, from other seeds than synthesised-notes. Made when read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.datasets.definition import Dataset, samples_digest
from harness.datasets.synthesised_notes import render
from harness.models.progress import Progress
from harness.tasks.base import Sample
from harness.tasks.waveforms import FloatArray

NAME = "more-notes"
WINDOWS = 512
FIRST = 10_000  # synthesised-notes has the windows 0 to 47, whose seeds end 1,047 on
VERSION = "1"  # raised whenever a window changes


def open_more_notes(cache: Path, offline: bool = False, progress: Progress | None = None) -> Dataset:
    """Return the windows; nothing is fetched and nothing kept."""
    samples = tuple(
        Sample(id=f"{number:05d}", data={"window": number, "version": VERSION})
        for number in range(FIRST, FIRST + WINDOWS)
    )
    return Dataset(
        name=NAME,
        title="More synthesised notes",
        digest=samples_digest(samples, {}),
        samples=samples,
        licence="Apache-2.0",
        source="synthesised by this program",
        note="Windows for calibration, from other seeds than synthesised-notes.",
        files={},
        decode=window,
    )


def window(sample: Sample) -> FloatArray:
    """Return the waveform of one window, -1 to 1, as the task reads it from a 16-bit file."""
    return np.asarray(render(int(sample.data["window"])).astype(np.float32) / np.float32(32768.0))
