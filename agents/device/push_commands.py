"""`weigh push`: send what waits in the spool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("push", epilog="Example: `weigh push --to https://bench.example.org`")(push)


def push(
    to: Annotated[
        str | None,
        typer.Option("--to", "--store", help="Address of a `weigh serve` or of a store; else WEIGHBRIDGE_STORE."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the device's token, mode 0600; else WEIGHBRIDGE_TOKEN or the keyring."),
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="How often to try when the server cannot be reached.")] = 4,
    pending: Annotated[bool, typer.Option("--list", help="Only list what waits.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what became of each run as JSON.")] = False,
) -> None:
    """Send the finished runs that wait in the spool; a run leaves it only when the other side has acknowledged it.

    Sent twice is stored once. What was not sent is listed with the reason, stays in the spool, and makes the exit status 1.
    """
    from agents.device.spool import Spool
    from harness.errors import NotDone
    from harness.folders import default_store, spool_dir

    spool = Spool(spool_dir())
    waiting = spool.pending()
    if pending:
        _print([{"run_id": run_id, "sent": None, "reason": "waits in the spool"} for run_id in waiting], as_json)
        if not waiting and not as_json:
            typer.echo("Nothing waits in the spool.")
        return
    before = spool.damaged()
    for name in before:
        typer.echo(f"Set aside earlier as damaged: {spool.path / 'damaged' / name}", err=True)
    if not waiting:
        _print([], as_json)
        if not as_json:
            typer.echo("Nothing waits in the spool.")
        return
    outcome = _send(spool, waiting, to or default_store(), token_file, attempts)
    _print(outcome, as_json)
    missed = sum(1 for item in outcome if not item["sent"])
    if missed:
        raise NotDone(
            f"{missed} of {len(outcome)} runs {'was' if missed == 1 else 'were'} not sent.",
            "Nothing is lost: `weigh push --list` shows what waits; damaged entries lie in the spool's folder 'damaged'.",
        )


def _send(spool: Any, waiting: list[str], to: str, token_file: Path | None, attempts: int) -> list[dict[str, Any]]:
    from rich.console import Console
    from rich.progress import Progress

    from agents.device import push as pushing
    from harness.sinks import open_sink

    http = to.startswith(("http://", "https://"))
    sink = pushing.open_sink(to, token_file, attempts) if http else open_sink(to)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Sending", total=len(waiting))
        return [
            {
                "run_id": delivery.run_id,
                "sent": delivery.receipt is not None,
                "new": delivery.receipt.new if delivery.receipt else None,
                "reason": delivery.reason,
            }
            for delivery in pushing.deliver(spool, sink, waiting, lambda: progress.advance(task))
        ]


def _print(outcome: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        import json

        typer.echo(json.dumps(outcome, indent=2))
        return
    for item in outcome:
        if item["sent"] is None:
            typer.echo(f"{item['run_id']}  waits")
        elif item["sent"]:
            typer.echo(f"{item['run_id']}  sent{'' if item['new'] else ' (it was there already)'}")
        else:
            typer.echo(f"{item['run_id']}  not sent: {item['reason']}")
