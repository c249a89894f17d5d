"""Signals that stop a run are one KeyboardInterrupt each, and none is lost."""

from __future__ import annotations

import signal
import time

import pytest

from agents.device.termination import terminated_like_ctrl_c


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_is_an_interrupt_inside_and_what_it_was_outside(number: signal.Signals) -> None:
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    outside = signal.signal(number, usual)  # under nohup a hang-up is ignored, and would stay so
    try:
        with pytest.raises(KeyboardInterrupt), terminated_like_ctrl_c():
            signal.raise_signal(number)
        assert signal.getsignal(number) is usual
    finally:
        signal.signal(number, outside)


def test_an_ignored_hang_up_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminated_like_ctrl_c():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interrupt_that_falls_into_a_finalizer_comes_again() -> None:
    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)
            len("the handler runs before this line, and Python drops what it raises")

    with pytest.raises(KeyboardInterrupt), terminated_like_ctrl_c():
        Finalized()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            time.sleep(0.01)
