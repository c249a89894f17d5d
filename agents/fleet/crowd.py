"""Many devices at once: one thread and one connection each. A dead device costs the others nothing."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from agents.fleet.inventory import FleetDevice
from backends.base import BackendError
from harness.errors import NotDone, WeighbridgeError

Found = TypeVar("Found")
MOST_AT_ONCE = 32


@dataclass(frozen=True)
class Outcome(Generic[Found]):
    """What came of the work on one device: a value, or the sentence why there is none."""

    device: FleetDevice
    value: Found | None = None
    error: WeighbridgeError | None = None


def for_each(
    devices: Sequence[FleetDevice], work: Callable[[FleetDevice], Found], stop: threading.Event
) -> tuple[list[Outcome[Found]], bool]:
    """Do the work on all devices side by side. Returns the outcomes in order, and whether Ctrl-C was pressed.

    Ctrl-C sets `stop`; the work is expected to look at it and to come back soon.
    """

    def guarded(device: FleetDevice) -> Outcome[Found]:
        if len(devices) > 4:  # a bastion or a shared network does not see all logins in the same millisecond
            time.sleep(random.uniform(0, 0.05 * len(devices)))  # noqa: S311 - spreads load, guards nothing
        try:
            return Outcome(device, work(device))
        except WeighbridgeError as error:
            return Outcome(device, error=error)
        except BackendError as error:
            return Outcome(device, error=NotDone(error.what, error.fix))

    pressed = False
    with ThreadPoolExecutor(max_workers=min(MOST_AT_ONCE, max(1, len(devices)))) as pool:
        futures = [pool.submit(guarded, device) for device in devices]
        pending = set(futures)
        while pending:
            try:
                _, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
            except KeyboardInterrupt:
                pressed = True
                stop.set()
        return [future.result() for future in futures], pressed
