"""`weigh agent`: what a control host calls on a device over SSH. Hidden, because people use `weigh fleet`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(help="The run's folder.", exists=True, file_okay=False, resolve_path=True)]


def register(app: typer.Typer) -> None:
    """Add the hidden commands."""
    agent = typer.Typer(help="The device's side of `weigh fleet`; called over SSH.", no_args_is_help=True)
    agent.command("launch", epilog="Example: `weigh agent launch .weighbridge/runs/RUN_ID`")(launch)
    agent.command("execute", epilog="Example: `weigh agent execute .weighbridge/runs/RUN_ID`")(execute)
    agent.command("report", epilog="Example: `weigh agent report .weighbridge/runs/RUN_ID`")(report)
    agent.command("needs", epilog="Example: `weigh agent needs .weighbridge/runs/RUN_ID`")(needs)
    app.add_typer(agent, name="agent", hidden=True)


def launch(folder: Folder) -> None:
    """Start a run that was put into its folder, detached, and print what it says as JSON."""
    import json

    from agents.device import agent

    typer.echo(json.dumps(agent.launch(folder)))


def execute(folder: Folder) -> None:
    """Run what the folder's request asks for, in this process."""
    from agents.device import agent

    agent.execute(folder)


def report(folder: Folder) -> None:
    """Print as JSON what is true about a run folder."""
    import json

    from agents.device import agent

    typer.echo(json.dumps(agent.report(folder)))


def needs(folder: Folder) -> None:
    """Print as JSON which targets of a request work here, and where the cache lies."""
    import json

    from agents.device import needs as needing

    typer.echo(json.dumps(needing.needs(folder)))
