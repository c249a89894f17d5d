"""SIGTERM treated like Ctrl-C, for whoever measures."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def terminated_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM (a service that stops, a machine that shuts down) keep what is finished, as Ctrl-C does."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
