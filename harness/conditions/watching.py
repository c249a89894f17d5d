"""Watches what else goes on while a worker runs: a thread of the parent that looks at the machine five times a second.

Nothing of it runs in the worker. Each look reads about a dozen small files, a few hundred microseconds of one processor;
benchmarks/watching.py compares watched and unwatched passes.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.conditions.clocks import Clocks
from harness.conditions.frequency import Frequency
from harness.conditions.heat import Heat
from harness.conditions.limits import GroupLimits
from harness.conditions.looks import Look, Source, Values
from harness.conditions.paging import Paging, Pressure
from harness.conditions.portable import Portable
from harness.conditions.processor_time import ProcessorTime
from harness.conditions.throttling import GpuThrottling, PiThrottling
from harness.conditions.window import conditions_of
from harness.environment.reading import Command, run_command

INTERVAL_S = 0.2
SLOW_EVERY = 5  # looks


def watch(gpu_index: int | None = None, root: Path = Path("/"), interval_s: float = INTERVAL_S) -> Watch:
    """Return a watch for one worker:

        with watch() as watching:
            process = Popen(...)
            watching.follow(process.pid)
            process.wait()
        conditions = watching.conditions(window_start_ns, window_end_ns)

    `gpu_index` is NVIDIA's number of the board that the worker uses; None where it uses none. Never raises.
    """
    return Watch(gpu_index, root, interval_s)


class Watch:
    """See `watch`. A watch that follows nothing costs nothing."""

    def __init__(
        self,
        gpu_index: int | None = None,
        root: Path = Path("/"),
        interval_s: float = INTERVAL_S,
        run: Command = run_command,
        load_nvml: Callable[[], Any] | None = None,
    ) -> None:
        self._gpu_index = gpu_index
        self._root = root
        self._interval_s = interval_s
        self._run_command = run
        self._load_nvml = load_nvml
        self._sources: list[Source] = []
        self._looks: list[Look] = []
        self._pid = 0
        self._processors = 1
        self._heat: Heat | None = None
        self._pi: PiThrottling | None = None
        self._gpu: GpuThrottling | None = None
        self._signs: frozenset[str] = frozenset()
        self._trouble: dict[str, str] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        if self._gpu_index is not None:
            from harness.sensors.nvml import import_nvml

            self._gpu = GpuThrottling(self._gpu_index, self._load_nvml or import_nvml)
        if sys.platform == "linux":
            self._pi = PiThrottling(self._root, self._run_command)
        return self

    def follow(self, pid: int) -> None:
        """Begin to look: `pid` has just started. Trouble with it stands in the conditions, and never stops a measurement."""
        try:
            self._follow(pid)
        except Exception as error:
            self._trouble["all"] = f"the machine cannot be watched ({error})"

    def _follow(self, pid: int) -> None:
        self._pid = pid
        times: ProcessorTime | Portable
        if sys.platform == "linux":
            times = ProcessorTime(self._root, pid)
            self._heat = Heat(self._root)
            root = self._root
            self._sources = [times, GroupLimits(root), Paging(root), Pressure(root), Frequency(root), self._heat]
        else:
            times = Portable(pid)
            self._sources = [times]
        self._sources += [Clocks(), *(source for source in (self._pi, self._gpu) if source is not None)]
        self._processors = max(1, len(times.processors))
        self.look(slowly=True)
        self._thread = threading.Thread(target=self._go_on, name="watch", daemon=True)
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
            self.look(slowly=True)
            if self._pi is not None:
                self._signs = frozenset(self._pi.at_end())
        if self._gpu is not None:
            self._gpu.close()

    def conditions(self, start_ns: int | None = None, end_ns: int | None = None) -> dict[str, Any]:
        """Return, as JSON, what went on between two moments of CLOCK_MONOTONIC; without them, while the worker lived."""
        window = None if start_ns is None or end_ns is None else (start_ns, end_ns)
        absent = {name: why for source in self._sources for name, why in source.absent.items()}
        limit = self._heat.limit_c if self._heat is not None else None
        return conditions_of(self._looks, window, self._processors, limit, {**absent, **self._trouble}, self._signs)

    def _go_on(self) -> None:
        number = 0
        while not self._stop.wait(self._interval_s):
            number += 1
            self.look(slowly=number % SLOW_EVERY == 0)

    def look(self, slowly: bool) -> None:
        """Look once; the thread does so by itself. `slowly`: with what takes longer."""
        values = Values()
        before = time.monotonic_ns()
        for source in self._sources:
            try:
                values.add(source.look(self._pid, slowly))
            except Exception as error:  # an odd file of an odd kernel must never cost a measurement
                self._trouble[type(source).__name__.lower()] = f"cannot be read ({error})"
        at_ns = (before + time.monotonic_ns()) // 2
        self._looks.append(Look(at_ns, values.counters, values.levels, frozenset(values.signs)))
