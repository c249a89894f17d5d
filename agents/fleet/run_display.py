"""What a person sees while devices work: one line each on a terminal, one sentence per change of state elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from agents.fleet.inventory import FleetDevice
from agents.fleet.ledger import Entry


class Shown(Protocol):
    """Somebody to tell, from any thread."""

    def say(self, device: FleetDevice, text: str) -> None:
        """Tell what a device does now."""
        ...

    def say_entry(self, entry: Entry, text: str) -> None:
        """Tell where a dispatch is."""
        ...


class _Lines:
    """Standard error of a program or a log: a line for every change of state."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def say(self, device: FleetDevice, text: str) -> None:
        self._print(device.name, text)

    def say_entry(self, entry: Entry, text: str) -> None:
        detail = "" if entry.state == "RUNNING" and not text.startswith("unreachable") else text
        self._print(entry.device, f"{entry.state.lower()} {detail}".strip())

    def _print(self, name: str, text: str) -> None:
        if self._last.get(name) != text:
            self._last[name] = text
            print(f"{name}: {text}", file=sys.stderr, flush=True)


class _Bars:
    """A terminal: a bar per device."""

    def __init__(self, progress: Any, names: Sequence[str]) -> None:
        self._progress = progress
        self._tasks = {name: progress.add_task("waiting", total=None, device=name) for name in names}

    def say(self, device: FleetDevice, text: str) -> None:
        self._update(device.name, text, {})

    def say_entry(self, entry: Entry, text: str) -> None:
        self._update(entry.device, f"{entry.state.lower()} {text}".strip(), entry.remote_status or {})

    def _update(self, name: str, text: str, status: Any) -> None:
        from rich.markup import escape

        total = status.get("total")
        done = status.get("done")
        numbers = {"total": total, "completed": done} if isinstance(total, int) and isinstance(done, int) else {}
        self._progress.update(self._tasks[name], description=escape(text), **numbers)


@contextmanager
def display(names: Sequence[str]) -> Iterator[Shown]:
    """Show the named devices until the work is done."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[device]}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bars(progress, names)
