"""The meters of this machine over a whole run: idle first, then the energy of each case from its trials' windows.

`with Metering(available_meters()) as metering:` costs nothing, and starts no thread, where no meter can be read: each
case then has the reason instead of an energy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from harness.records import Energy
from harness.sensors import MeterStatus, meter_for
from harness.sensors.energy_window import WindowEnergy
from harness.sensors.joining import Joined, join_energy
from harness.sensors.sampler import INTERVAL_S, Sampler

Window = tuple[int, int, int]  # start and end in CLOCK_MONOTONIC nanoseconds, inferences answered between them


class Metering:
    """Samples every meter that works from entering to leaving."""

    def __init__(self, statuses: Sequence[MeterStatus], interval_s: float = INTERVAL_S) -> None:
        self._statuses = list(statuses)
        meters = [status.meter for status in statuses if status.works and status.meter is not None]
        self._sampler = Sampler(meters, interval_s) if meters else None
        self._idle: tuple[int, int] | None = None

    def rest(self, seconds: float) -> None:
        """Wait with nothing loaded and remember the stretch as idle. Returns at once where there is no meter."""
        if self._sampler is None:
            return
        start = time.monotonic_ns()
        time.sleep(seconds)
        self._idle = (start, time.monotonic_ns())

    def energy(
        self, unit_kind: str, device_index: int, windows: Sequence[Window], loaded_idle: tuple[int, int] | None = None
    ) -> Joined:
        """The energy of a case that ran on the compute unit ("cpu", or "gpu" by its number) during `windows`."""
        status = meter_for(self._statuses, unit_kind, device_index)
        if self._sampler is None or not status.works or status.meter is None:
            return Joined(Energy(None, reason=status.text))
        source = status.meter.source
        measured = [(self._sampler.window(source, start, end), count) for start, end, count in windows]
        return join_energy(measured, self._stretch(source, self._idle), self._stretch(source, loaded_idle))

    def _stretch(self, source: str, ends: tuple[int, int] | None) -> WindowEnergy | None:
        return None if self._sampler is None or ends is None else self._sampler.window(source, *ends)

    def __enter__(self) -> Metering:
        if self._sampler is not None:
            self._sampler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sampler is not None:
            self._sampler.stop()
