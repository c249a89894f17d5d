"""This process's processors and priority, which every worker inherits. They end with it, so that no journal is needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from harness.environment.reading import processor_list, text

NICE = -10
PROCESSORS, PRIORITY, FILES = "processors of the workers", "priority of the workers (nice)", "priority of reading files"
SPARE_FROM_CORES = 4  # from so many on, one is left to the rest of the system


def quiet_processors(allowed: set[int], root: Path = Path("/")) -> set[int]:
    """Return one processor of each core (no SMT siblings); with four cores or more without the first core, which takes
    most interrupts."""
    cores: dict[tuple[int, ...], int] = {}
    for number in sorted(allowed):
        folder = root / f"sys/devices/system/cpu/cpu{number}/topology"
        siblings = text(folder / "core_cpus_list") or text(folder / "thread_siblings_list")
        cores.setdefault(processor_list(siblings) or (number,), number)
    chosen = sorted(cores.values())
    return set(chosen[1:] if len(chosen) >= SPARE_FROM_CORES else chosen)


class ProcessSettings:
    """Affinity and priority of the calling thread, from which workers are started."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._affinity: set[int] | None = None
        self._nice: int | None = None
        self._io: tuple[int, int] | None = None

    def apply(self) -> tuple[list[tuple[str, str, str]], dict[str, str]]:
        """Set both; return what changed (name, before, during) and what was refused, with why."""
        changed: list[tuple[str, str, str]] = []
        refused: dict[str, str] = {}
        if hasattr(os, "sched_setaffinity"):
            before = os.sched_getaffinity(0)
            chosen = quiet_processors(before, self._root) & before
            try:
                if chosen and chosen != before:
                    self._affinity = before
                    os.sched_setaffinity(0, chosen)
                    changed.append((PROCESSORS, _listed(before), _listed(chosen)))
            except OSError as error:
                refused[PROCESSORS] = error.strerror or str(error)
        else:
            refused[PROCESSORS] = "this system lets a process not choose its processors"
        if hasattr(os, "setpriority"):
            before_nice = os.getpriority(os.PRIO_PROCESS, 0)
            try:
                if before_nice > NICE:
                    os.setpriority(os.PRIO_PROCESS, 0, NICE)
                    self._nice = before_nice
                    changed.append((PRIORITY, str(before_nice), str(NICE)))
            except OSError as error:
                refused["priority of the workers"] = f"{error.strerror or error}; it takes root or CAP_SYS_NICE"
        self._quicker_files(changed, refused)
        return changed, refused

    def put_back(self) -> set[str]:
        """Take all back; return the names of what the system refused to take back. Never raises for one of them."""
        import psutil

        failed: set[str] = set()
        affinity, nice, io = self._affinity, self._nice, self._io
        self._affinity = self._nice = self._io = None
        steps: list[tuple[str, Callable[[], object]]] = []
        if affinity is not None:
            steps.append((PROCESSORS, lambda: os.sched_setaffinity(0, affinity)))
        if nice is not None:
            steps.append((PRIORITY, lambda: os.setpriority(os.PRIO_PROCESS, 0, nice)))
        if io is not None:
            steps.append((FILES, lambda: psutil.Process().ionice(*(io if io[0] else io[:1]))))
        for name, step in steps:
            try:
                step()
            except (psutil.Error, OSError, ValueError):
                failed.add(name)
        return failed

    def _quicker_files(self, changed: list[tuple[str, str, str]], refused: dict[str, str]) -> None:
        import psutil

        kind = getattr(psutil, "IOPRIO_CLASS_BE", None)
        if kind is None:
            return
        try:
            before = psutil.Process().ionice()
            psutil.Process().ionice(kind, 0)
        except (psutil.Error, OSError) as error:
            refused[FILES] = str(error)
            return
        self._io = (int(before.ioclass), int(before.value))
        changed.append((FILES, f"class {int(before.ioclass)} level {before.value}", "class 2 level 0"))


def _listed(processors: set[int]) -> str:
    return ",".join(str(number) for number in sorted(processors))
