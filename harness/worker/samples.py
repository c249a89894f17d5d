"""Raw samples beside the trial file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def save(out: Path, what: str, values: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Write raw little-endian int64 samples beside the trial file and return their entry."""
    (out / what).write_bytes(values.astype("<i8").tobytes())
    return {"what": what, "count": len(values)}


def save_lines(out: Path, what: str, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Write one JSON object a line beside the trial file and return its entry."""
    text = "".join(json.dumps(line, allow_nan=False, sort_keys=True) + "\n" for line in lines)
    (out / what).write_text(text, encoding="utf-8")
    return {"what": what, "count": len(lines)}
