"""Whether the data that set a quantised file's scales also judge it: then its accuracy says nothing about other data.

Identities tell first, contents surely: two sets under other names may share a picture. See `contents_of`.
"""

from __future__ import annotations

from collections.abc import Collection

from harness.artifacts import ModelFile
from harness.datasets.definition import Dataset, contents_of
from harness.errors import ModelError


def shared_with_calibration(model: ModelFile, data: Dataset) -> str | None:
    """Say in a sentence what of the evaluation data a file was calibrated on; None where nothing is known to be shared.

    A user's own quantised file is known by its digest where this cache built it; of any other, nothing is known, and then it
    cannot be told from one without calibration.
    """
    calibration = model.artifact.calibration
    shared = set(model.calibrated_on) & set(contents_of(data))
    if shared:
        what = f"{len(shared)} of the {len(contents_of(data))} contents of {data.identity}"
        return f"{what} also set the scales of the file (calibrated on {calibration or 'data without a name'})."
    if calibration is not None and calibration == data.identity:
        return f"The file was calibrated on {calibration}, the same data that judge it."
    return None


def refuse_shared(calibration: str, contents: Collection[str], data: Dataset) -> None:
    """Raise ModelError where calibration data share a file or text with the data that are to judge the result."""
    shared = set(contents) & set(contents_of(data))
    if calibration == data.identity or shared:
        what = f"{len(shared)} contents" if shared else "everything"
        raise ModelError(
            f"The calibration data {calibration} share {what} with the evaluation data {data.identity}: "
            "accuracy would be judged on what set the scales.",
            "Calibrate on other data.",
        )
