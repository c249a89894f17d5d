"""`weigh doctor`: what works on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agents.device.finding import Finding

EPILOG = """Examples: `weigh doctor`; `weigh doctor --json` for a program."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", epilog=EPILOG)(doctor)


def doctor(
    json_output: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say for each backend, target and meter whether it works here, or why not and how to fix it.

    The exit status is 1 when something that every run needs is broken (identity, folders, packages, or no backend at all).
    """
    from agents.device.doctor import examine
    from harness.errors import NotDone

    findings = _examine(examine)
    if json_output:
        import json
        from dataclasses import asdict

        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    broken = [f.name for f in findings if f.works is False and f.area in ("machine", "package", "folder")]
    if not any(f.works for f in findings if f.area == "backend"):
        broken.append("every backend")
    if broken:
        raise NotDone(f"Not in order: {', '.join(broken)}.", "" if json_output else "The table says why.")


def _examine(examine: object) -> list[Finding]:
    from rich.console import Console

    assert callable(examine)
    console = Console(stderr=True)
    if not console.is_terminal:
        return list(examine())
    with console.status("asking the runtimes") as status:
        return list(examine(lambda text: status.update(text)))


def _print(findings: list[Finding]) -> None:
    from rich.text import Text

    from agents.device.run_report import plain_table
    from harness.terminal import output_console

    table = plain_table("weigh doctor", ("what", "name", "state", "found"), ())
    for finding in findings:
        style = {True: "green", False: "red", None: "dim"}[finding.works]
        state = {True: "works", False: "no", None: ""}[finding.works]
        text = _sentence(finding.text) + " Not verified on hardware." if not finding.verified else finding.text
        cell = Text(text)
        if finding.fix and not finding.works:
            cell.append(f" {finding.fix}", style="dim")
        table.add_row(Text(finding.area), Text(finding.name), Text(state, style=style), cell)
    output_console().print(table)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
