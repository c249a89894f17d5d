"""SIGTERM and SIGHUP treated like Ctrl-C, for whoever measures; and none of the three is lost."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN_S = 0.05


@contextmanager
def terminated_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM (a service that stops, a machine that shuts down) keep what is finished, as Ctrl-C does.

    SIGHUP (a terminal that was closed) too, so that a prepared machine is put back; where it is ignored, it stays so.
    Python drops what is raised inside a finalizer or a weak reference's callback, KeyboardInterrupt included; then it is
    raised once more a moment later, because otherwise the run would just go on.
    """

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    numbers = [signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, interrupt) for number in numbers}
    hook = sys.unraisablehook

    def insist(dropped: Any) -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            hook(dropped)
            return
        again = threading.Timer(AGAIN_S, _thread.interrupt_main, (signal.SIGTERM,))
        again.daemon = True
        again.start()

    sys.unraisablehook = insist
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in previous.items():
            signal.signal(number, handler)
