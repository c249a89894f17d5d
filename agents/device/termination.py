"""SIGTERM and SIGHUP treated like Ctrl-C, for whoever measures."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def terminated_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM (a service that stops, a machine that shuts down) keep what is finished, as Ctrl-C does.

    SIGHUP (a terminal that was closed) too, so that a prepared machine is put back; where it is ignored, it stays so.
    """

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    numbers = [signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
