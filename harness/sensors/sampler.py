"""Reads meters at a low rate on a thread of the parent process, and tells the energy of any window afterwards."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType

from harness.sensors.base import Meter, MeterError, Reading
from harness.sensors.energy_window import WindowEnergy, window_energy

# Five times a second: 50 readings in the shortest window to rely on, and microseconds of work for each.
INTERVAL_S = 0.2


class Sampler:
    """`with Sampler(meters) as sampler: ...; sampler.window(source, start_ns, end_ns)`.

    A meter that cannot be opened has no readings and keeps its reason; the others go on.
    """

    def __init__(self, meters: Sequence[Meter], interval_s: float = INTERVAL_S) -> None:
        self._meters = list(meters)
        self._interval_s = interval_s
        self._readings: dict[str, list[Reading]] = {meter.source: [] for meter in self._meters}
        self._closed: dict[str, str] = {}
        self._open: list[Meter] = []
        self._stop = threading.Event()
        self._reading = threading.Lock()  # a meter is read by one thread at a time
        self._thread: threading.Thread | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of all meters, whether or not they could be opened."""
        return tuple(meter.source for meter in self._meters)

    def start(self) -> None:
        """Open the meters, read each once, and go on in the background."""
        if self._thread is not None:
            return
        for meter in self._meters:
            try:
                meter.open()
            except MeterError as error:
                self._closed[meter.source] = str(error)
            else:
                self._open.append(meter)
        self._look()
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="energy-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Read each meter once more and close it. The readings stay. Harmless twice."""
        if self._thread is None:
            return
        self._stop.set()
        self._thread.join()
        self._thread = None
        self._look()
        while self._open:
            self._open.pop().close()

    def window(self, source: str, start_ns: int, end_ns: int) -> WindowEnergy:
        """The energy that a meter saw between two moments of CLOCK_MONOTONIC; None in it with the reason."""
        if source in self._closed:
            return WindowEnergy(start_ns, end_ns, None, self._closed[source], source)
        if source not in self._readings:
            return WindowEnergy(start_ns, end_ns, None, f"there is no meter {source}", source)
        readings = self._readings[source]
        if self._thread is not None and (not readings or readings[-1].at_ns < end_ns):
            self._look()  # the window ended a moment ago; its end needs a reading behind it
        return window_energy(tuple(readings), start_ns, end_ns, self._interval_s)

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            self._look()

    def _look(self) -> None:
        with self._reading:
            for meter in self._open:
                self._readings[meter.source].append(meter.read())

    def __enter__(self) -> Sampler:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
