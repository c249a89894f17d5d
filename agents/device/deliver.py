"""Brings a finished run to its store: into the durable spool first, out of it only when the store has answered."""

from __future__ import annotations

from collections.abc import Callable

from harness.documents import Bundle, Receipt
from harness.errors import NotDone, WeighbridgeError
from harness.folders import default_store, spool_dir
from harness.sinks import open_sink


def deliver(bundle: Bundle, store: str, spooled: Callable[[], None] = lambda: None) -> Receipt:
    """Store the run. Raises NotDone where that fails; the message says where the run is kept and how to send it.

    `spooled` is called when the spool has it: from then on its record is made, and must not be made again.
    """
    from agents.device.spool import Spool, run_id_of

    run_id = run_id_of(bundle.record)
    spool = Spool(spool_dir())
    kept: str | None = None
    try:
        spool.add(bundle)
    except WeighbridgeError as error:
        kept = error.what  # a full disk here need not keep the store from taking it
    else:
        spooled()
    try:
        receipt = open_sink(store).store(bundle)
    except (Exception, KeyboardInterrupt) as error:
        what = _said(error)
        fix = getattr(error, "fix", "")
        if kept is None:
            raise NotDone(
                f"The run {run_id} is measured but not stored: {what}",
                f"{fix} It waits in {spool.path}; `{_push(store)}` sends it.".strip(),
            ) from error
        raise NotDone(
            f"The run {run_id} is measured but not stored: {what} {kept}",
            f"{fix} Then `weigh run --resume {run_id}` stores it without measuring again.".strip(),
        ) from error
    if kept is None:
        spool.remove(run_id)
    return receipt


def _push(store: str) -> str:
    """The command that sends it there. A database's address is not repeated: it may hold a password."""
    named = store.startswith(("http://", "https://")) and "@" not in store and store != default_store()
    return f"weigh push --to {store}" if named else "weigh push"


def _said(error: BaseException) -> str:
    if isinstance(error, WeighbridgeError):
        return error.what
    if isinstance(error, KeyboardInterrupt):
        return "Stopped by Ctrl-C."
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
