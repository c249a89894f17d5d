"""Where tables go, and what may be written there: one rule for every command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 200  # characters of a line that no terminal folds


def printable(text: str) -> str:
    """Text for a terminal: control characters, which could steer it, are taken out."""
    return "".join(character if character.isprintable() else "?" for character in text)


def output_console() -> Console:
    """Return standard output as wide as its terminal, or as COLUMNS says.

    Into a pipe or a file it writes wide lines, because nobody is there to fold them for.
    """
    import os
    import sys

    from rich.console import Console

    folded = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if folded else PIPE_WIDTH)
