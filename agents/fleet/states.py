"""From what is seen on a device to what is true about a dispatch. Pure: no clock, no network.

Only the device's own word moves a dispatch: a silent network, and time alone, never do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What a dispatch may become, from each state. END states become nothing.
NEXT: Mapping[str, frozenset[str]] = {
    "QUEUED": frozenset({"LEASED", "FAILED", "CANCELLED"}),
    "LEASED": frozenset({"STAGED", "FAILED", "CANCELLED"}),
    "STAGED": frozenset({"LAUNCHED", "RUNNING", "FINISHED", "FAILED", "LOST", "CANCELLED"}),
    "LAUNCHED": frozenset({"RUNNING", "FINISHED", "FAILED", "LOST", "CANCELLED"}),
    "RUNNING": frozenset({"FINISHED", "FAILED", "LOST", "CANCELLED"}),
    "FINISHED": frozenset({"FETCHED", "FAILED", "CANCELLED"}),
    "FETCHED": frozenset({"INGESTED", "FAILED", "CANCELLED"}),
    "INGESTED": frozenset(),
    "FAILED": frozenset(),
    "LOST": frozenset(),
    "CANCELLED": frozenset(),
}
# The dispatcher has brought something to the device, so the device can be asked what became of it.
ON_DEVICE = ("STAGED", "LAUNCHED", "RUNNING", "FINISHED")


@dataclass(frozen=True)
class Look:
    """What one look at a run folder showed. `alive` and `claimed` are None when only files were read."""

    status: Mapping[str, Any] | None = None
    done: Mapping[str, Any] | None = None
    alive: bool | None = None
    claimed: bool | None = None
    boot_id: str | None = None
    log: str = ""


def judge(state: str, look: Look) -> tuple[str, str | None]:
    """Return the state that follows from a look, and the reason where it is a bad end.

    DONE is written last, so it outranks everything. A failure that the agent itself reports comes next. LOST needs
    proof that no agent lives: its lock is free, and there is no result.
    """
    if state not in ("STAGED", "LAUNCHED", "RUNNING"):
        return state, None
    if look.done is not None:
        return "FINISHED", None
    status = look.status or {}
    if status.get("state") == "failed":
        return "FAILED", f"The agent gave up: {_printable(str(status.get('reason') or 'it did not say why'))}"
    if look.alive is None:
        return ("RUNNING" if status else state), None
    if look.alive:
        return "RUNNING", None
    if not look.claimed:
        # Nothing ever started. A dispatcher that still lives may be about to launch it.
        if state == "STAGED":
            return state, None
        return "LOST", f"The agent never started. {_words(look)}".strip()
    if status.get("boot_id") and look.boot_id and status["boot_id"] != look.boot_id:
        return "LOST", "The device was restarted while the run was going on."
    return "LOST", f"The agent ended without a result (killed, or out of memory). {_words(look)}".strip()


def _words(look: Look) -> str:
    words = _printable(look.log)[-300:]
    return f"Its last words: {words}" if words else ""


def _printable(text: str) -> str:
    """What a device says, in one line and without what could steer the terminal that it ends up on."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
