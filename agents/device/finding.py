"""One line of what `weigh doctor` says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One line of the report. `works` is None for a plain fact; `verified` False where no such hardware was ever seen."""

    area: str  # "machine", "environment", "quiet", "preparation", "folder", "backend", "meter", "dataset", "package"
    name: str
    works: bool | None
    text: str  # what was found, or the precise reason
    fix: str | None = None
    verified: bool = True
