"""This process's processors and priority, which every worker inherits. They end with it, so that no journal is needed."""

from __future__ import annotations

import os
from pathlib import Path

from harness.environment.reading import processor_list, text

NICE = -10
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
                    os.sched_setaffinity(0, chosen)
                    self._affinity = before
                    changed.append(("processors of the workers", _listed(before), _listed(chosen)))
            except OSError as error:
                refused["processors of the workers"] = error.strerror or str(error)
        else:
            refused["processors of the workers"] = "this system lets a process not choose its processors"
        if hasattr(os, "setpriority"):
            before_nice = os.getpriority(os.PRIO_PROCESS, 0)
            try:
                if before_nice > NICE:
                    os.setpriority(os.PRIO_PROCESS, 0, NICE)
                    self._nice = before_nice
                    changed.append(("priority of the workers (nice)", str(before_nice), str(NICE)))
            except OSError as error:
                refused["priority of the workers"] = f"{error.strerror or error}; it takes root or CAP_SYS_NICE"
        self._quicker_files(changed, refused)
        return changed, refused

    def put_back(self) -> None:
        """Take both back."""
        if self._affinity is not None:
            os.sched_setaffinity(0, self._affinity)
            self._affinity = None
        if self._nice is not None:
            os.setpriority(os.PRIO_PROCESS, 0, self._nice)
            self._nice = None
        if self._io is not None:
            import psutil

            kind, level = self._io
            psutil.Process().ionice(kind, level) if kind else psutil.Process().ionice(kind)
            self._io = None

    def _quicker_files(self, changed: list[tuple[str, str, str]], refused: dict[str, str]) -> None:
        import psutil

        kind = getattr(psutil, "IOPRIO_CLASS_BE", None)
        if kind is None:
            return
        try:
            before = psutil.Process().ionice()
            psutil.Process().ionice(kind, 0)
        except (psutil.Error, OSError) as error:
            refused["priority of reading files"] = str(error)
            return
        self._io = (int(before.ioclass), int(before.value))
        changed.append(
            ("priority of reading files", f"class {int(before.ioclass)} level {before.value}", "class 2 level 0")
        )


def _listed(processors: set[int]) -> str:
    return ",".join(str(number) for number in sorted(processors))
