"""What a person sees while a run goes on, on standard error: a bar in a terminal, else a line for each finished case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def shown_progress(quiet: bool) -> Iterator[Any]:
    """Give a listener for `harness.runner.runner.Progress`. `quiet`: it says nothing anywhere."""
    from rich.console import Console

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    if quiet:
        yield lambda progress: None
    elif console.is_terminal:
        with _bar(console) as listen:
            yield listen
    else:
        yield _lines(console)


def _lines(console: Any) -> Any:
    """Say each case that has ended once; nothing in between, because nobody wants a log of every trial."""
    from rich.text import Text

    def listen(progress: Any) -> None:
        if progress.finished is not None:
            console.print(Text(f"{progress.done} of about {progress.total} trials; {progress.finished}"))

    return listen


@contextmanager
def _bar(console: Any) -> Iterator[Any]:
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    # Redrawn when something happens, not by a clock: a measured machine has better things to do.
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Bars(*columns, console=console, transient=True, auto_refresh=False) as bars:
        task = bars.add_task("planning", total=None)

        def listen(progress: Any) -> None:
            bars.update(task, completed=progress.done, total=progress.total, description=escape(progress.text))
            bars.refresh()

        yield listen
