"""The commands of the device's room."""

from __future__ import annotations

import typer

from agents.device import agent_commands, doctor_command, push_commands, run_command


def register(app: typer.Typer) -> None:
    """Add `weigh run`, `weigh doctor`, `weigh push` and the hidden `weigh agent`."""
    run_command.register(app)
    doctor_command.register(app)
    push_commands.register(app)
    agent_commands.register(app)
