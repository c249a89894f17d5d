"""The reference set that ships with the product: public results of known hardware, to stand beside one's own.

`mlperf-v3.0.json` holds run records, one a line, exactly as `weigh import mlperf` reads them from MLCommons' tree; each says
which file its values come from. It is made by `python -m db.importers.reference.build TREE`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from harness.documents import validate_run
from harness.errors import RecordError
from harness.records import Run

FILE = Path(__file__).parent / "mlperf-v3.0.json"


@cache
def reference_runs() -> tuple[Run, ...]:
    """All runs of the reference set. Raises RecordError when the installed file is damaged."""
    try:
        documents = json.loads(FILE.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(
            f"The reference set {FILE} cannot be read ({error}).", "Install weighbridge again."
        ) from error
    return tuple(validate_run(document) for document in documents)


def published_digests() -> dict[str, str]:
    """The release by the SHA-256 of each file that the reference set was made from: recognises a tree without a name."""
    digests: dict[str, str] = {}
    for run in reference_runs():
        effective = run.measurements[0].effective
        if effective is not None and run.source.version is not None:
            for file in effective.details["source_files"].values():
                digests[file["sha256"]] = run.source.version
    return digests
