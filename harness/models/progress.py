"""What a person sees while models and datasets are fetched and built: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Step(Protocol):
    """One piece of work that can say how far it is."""

    def advance(self, count: int) -> None:
        """Count so many more bytes (or what the step counts) as done."""
        ...


class Progress(Protocol):
    """Told by the store what it does. Implementations must not raise."""

    def step(self, what: str, total: int | None, unit: str = "bytes") -> Any:
        """Return a context manager that yields a Step; `total` in that unit, None where it is not known."""
        ...

    def note(self, text: str) -> None:
        """Say one sentence that a person should see, such as a damaged file that is fetched again."""
        ...


class _SilentStep:
    def advance(self, count: int) -> None:
        return None


class SilentProgress:
    """For programs and tests: says nothing."""

    @contextmanager
    def step(self, what: str, total: int | None, unit: str = "bytes") -> Iterator[Step]:
        yield _SilentStep()

    def note(self, text: str) -> None:
        return None


class _BarStep:
    def __init__(self, bar: Any, task: Any) -> None:
        self._bar = bar
        self._task = task

    def advance(self, count: int) -> None:
        self._bar.update(self._task, advance=count)


class ConsoleProgress:
    """Bars and notes on standard error, so that standard output stays what was asked for. Bars on a terminal only."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._bars: Any = None  # what is shown now; a step inside a step is one more line of it

    @contextmanager
    def step(self, what: str, total: int | None, unit: str = "bytes") -> Iterator[Step]:
        from rich.markup import escape

        if not self._console.is_terminal:
            yield _SilentStep()
            return
        if self._bars is not None:
            task = self._bars.add_task(escape(what), total=total, unit=unit)
            try:
                yield _BarStep(self._bars, task)
            finally:
                self._bars.remove_task(task)
            return
        with _bars(self._console) as bars:
            self._bars = bars
            try:
                yield _BarStep(bars, bars.add_task(escape(what), total=total, unit=unit))
            finally:
                self._bars = None

    def note(self, text: str) -> None:
        from rich.markup import escape

        console = self._console if self._bars is None else self._bars.console
        console.print(escape(text), soft_wrap=True)


def _bars(console: Any) -> Any:
    """Return rich's bars, counting each step in its own unit."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.progress import Progress as Bars

    class CountColumn(ProgressColumn):
        bytes, others = DownloadColumn(), MofNCompleteColumn()

        def render(self, task: Any) -> Any:
            return (self.bytes if task.fields["unit"] == "bytes" else self.others).render(task)

    columns = (TextColumn("{task.description}"), BarColumn(), CountColumn(), TimeElapsedColumn())
    return Bars(*columns, console=console, transient=True)
