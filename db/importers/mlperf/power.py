"""Reading SPEC PTDaemon's log (spl.txt) and estimating what a test drew. Pure.

The log starts before the test and ends after it, and submissions that leave out the detail log do not say when the test
ran. The estimate: the window of the test's length with the highest mean draw, because the ends are idle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from harness.errors import RecordError

_LINE = re.compile(
    r"^Time,(?P<time>\d\d-\d\d-\d{4} \d\d:\d\d:\d\d\.\d{3}),Watts,(?P<watts>-?\d{1,9}(?:\.\d{1,9})?),Volts,.*,Mark,"
)
MAX_GAP_SHARE = 0.05  # of the window, between two readings: above it there is no energy


@dataclass(frozen=True)
class PowerLog:
    """Readings of the analyser: seconds since the first one, and watts."""

    seconds: tuple[float, ...]
    watts: tuple[float, ...]

    @property
    def mean_w(self) -> float:
        """Mean of the whole log by the trapezoid rule, idle ends included."""
        return _areas(self)[-1] / (self.seconds[-1] - self.seconds[0])


@dataclass(frozen=True)
class Window:
    """The estimated stretch of the test."""

    mean_w: float
    start_s: float
    duration_s: float
    readings: int


def read_power_log(text: str) -> PowerLog:
    """Read a log. Raises RecordError, without the file's name, for lines of another form or time that runs backwards."""
    seconds: list[float] = []
    watts: list[float] = []
    first: datetime | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        found = _LINE.match(line)
        if found is None:
            raise RecordError(f"its line {number} is no reading of SPEC PTDaemon")
        try:
            moment = datetime.strptime(found["time"], "%m-%d-%Y %H:%M:%S.%f")
        except ValueError as error:
            raise RecordError(f"its line {number} holds the impossible time {found['time']!r}") from error
        first = first or moment
        value = float(found["watts"])
        if value < 0:
            continue  # the analyser's mark for "no valid reading"
        elapsed = (moment - first).total_seconds()
        if seconds and elapsed <= seconds[-1]:
            raise RecordError(f"its time does not go forward at line {number}")
        seconds.append(elapsed)
        watts.append(value)
    if len(seconds) < 2:
        raise RecordError("it holds fewer than two readings")
    return PowerLog(tuple(seconds), tuple(watts))


def busiest_window(log: PowerLog, duration_s: float) -> Window:
    """The stretch of `duration_s` that starts at a reading and has the highest mean draw (trapezoid rule).

    Raises RecordError where the log is shorter than the test, or has a gap of more than 5 % of the window in it.
    """
    if log.seconds[-1] - log.seconds[0] < duration_s:
        raise RecordError(f"it is shorter than the test of {duration_s:.0f} s")
    areas = _areas(log)
    best: Window | None = None
    end = 0
    for start, begin_s in enumerate(log.seconds):
        finish_s = begin_s + duration_s
        if finish_s > log.seconds[-1]:
            break
        while log.seconds[end] < finish_s:
            end += 1
        area = _area_until(log, areas, end, finish_s) - areas[start]
        if best is None or area / duration_s > best.mean_w:
            best = Window(area / duration_s, begin_s, duration_s, end - start + 1)
    assert best is not None
    inside = [second for second in log.seconds if best.start_s <= second <= best.start_s + duration_s]
    gaps = [late - early for early, late in zip(inside, [*inside[1:], best.start_s + duration_s], strict=True)]
    if max(gaps) > MAX_GAP_SHARE * duration_s:
        raise RecordError(f"it has a gap of {max(gaps):.0f} s within the test")
    return best


def _areas(log: PowerLog) -> list[float]:
    """Joules from the first reading to each reading."""
    areas = [0.0]
    for place in range(1, len(log.seconds)):
        step = log.seconds[place] - log.seconds[place - 1]
        areas.append(areas[-1] + step * (log.watts[place] + log.watts[place - 1]) / 2)
    return areas


def _area_until(log: PowerLog, areas: list[float], end: int, finish_s: float) -> float:
    """Joules until `finish_s`, which lies between the readings `end - 1` and `end`; power is linear between them."""
    step = log.seconds[end] - log.seconds[end - 1]
    part = finish_s - log.seconds[end - 1]
    power = log.watts[end - 1] + (log.watts[end] - log.watts[end - 1]) * part / step
    return areas[end - 1] + part * (log.watts[end - 1] + power) / 2
