"""Brings a finished run to its store: into the durable spool first, out of it only when the store has answered."""

from __future__ import annotations

from harness.documents import Bundle, Receipt
from harness.errors import NotDone, WeighbridgeError
from harness.folders import spool_dir
from harness.sinks import open_sink


def deliver(bundle: Bundle, store: str) -> Receipt:
    """Store the run. Raises NotDone where that fails; the message says where the run is kept and how to send it."""
    from agents.device.spool import Spool, run_id_of

    run_id = run_id_of(bundle.record)
    spool = Spool(spool_dir())
    kept: str | None = None
    try:
        spool.add(bundle)
    except WeighbridgeError as error:
        kept = error.what  # a full disk here need not keep the store from taking it
    try:
        receipt = open_sink(store).store(bundle)
    except Exception as error:
        what = error.what if isinstance(error, WeighbridgeError) else f"{type(error).__name__}: {_first_line(error)}"
        fix = getattr(error, "fix", "")
        if kept is None:
            raise NotDone(
                f"The run {run_id} is measured but not stored: {what}",
                f"{fix} It waits in {spool.path}; `weigh push` sends it.".strip(),
            ) from error
        raise NotDone(
            f"The run {run_id} is measured but not stored: {what} {kept}",
            f"{fix} Then `weigh run --resume {run_id}` stores it without measuring again.".strip(),
        ) from error
    if kept is None:
        spool.remove(run_id)
    return receipt


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else ""
