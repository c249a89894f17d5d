"""Energy of a measurement, from meters read in the parent process; None with the reason where nothing was metered."""

from __future__ import annotations

from harness.records import Energy


def not_measured(reason: str) -> Energy:
    """Return an energy that says why there is none. It is never zero."""
    return Energy(None, reason=reason)
