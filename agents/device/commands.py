"""The commands of the device's room."""

from __future__ import annotations

import typer

from agents.device import push_commands, run_command


def register(app: typer.Typer) -> None:
    """Add `weigh run` and `weigh push`."""
    run_command.register(app)
    push_commands.register(app)
