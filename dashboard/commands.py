"""`weigh dashboard` and `weigh compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

STORE_HELP = (
    "Database: sqlite:///PATH or postgresql://USER@HOST/DATABASE. Default: WEIGHBRIDGE_STORE, else the local file."
)


def register(app: typer.Typer) -> None:
    """Add this room's commands."""
    app.command(epilog="Example: `weigh dashboard --port 8600 --no-browser`")(dashboard)
    examples = "`weigh compare 'rpi5 int8' 'rpi5 fp32'` · `weigh compare --family resnet50 --baseline onnxruntime`"
    app.command(epilog=f"Examples: {examples}")(compare)


def dashboard(
    store: Annotated[Optional[str], typer.Option("--store", help=STORE_HELP, metavar="URL")] = None,  # noqa: UP045
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = 8501,
    host: Annotated[
        str,
        typer.Option("--host", help="Address to listen on. The default is for this machine only; there is no login."),
    ] = "127.0.0.1",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Show the stored results in a browser: tables, comparisons, and each number's provenance."""
    import signal
    from importlib.util import find_spec

    from harness.errors import UsageError

    if find_spec("streamlit") is None:
        raise UsageError(
            "The dashboard needs Streamlit, which is not installed.",
            "Install it with: pip install 'weighbridge[dashboard]'.",
        )

    from dashboard import launch
    from harness.folders import default_store

    # A service manager ends this process only; the server must not outlive it.
    # Not what Ctrl-C does here: a shell starts its background jobs with Ctrl-C ignored.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = launch.start(store or default_store(), host, port)
    address = launch.reachable_address(host, port)
    try:
        typer.echo(f"The dashboard is at {address} (Ctrl-C stops it).")
        if host not in launch.LOOPBACK:
            typer.echo("It answers everybody who can reach this address: put it behind a proxy with a login.", err=True)
        if not no_browser:
            import webbrowser

            webbrowser.open(address)
        status = server.wait()
    except KeyboardInterrupt:
        typer.echo("Stopped.")
        return
    finally:
        launch.stop(server)
    if status:
        raise typer.Exit(1)


def compare(
    systems: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            help="Words that name systems (hardware, device, backend, target, precision), or ids. Default: all.",
            show_default=False,
        ),
    ] = None,
    family: Annotated[Optional[str], typer.Option("--family", help="Workload family, e.g. resnet50.")] = None,  # noqa: UP045
    workload: Annotated[Optional[str], typer.Option("--workload", help="One workload instead of a family.")] = None,  # noqa: UP045
    baseline: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--baseline", help="Words that name the one system the others stand beside."),
    ] = None,
    store: Annotated[Optional[str], typer.Option("--store", help=STORE_HELP, metavar="URL")] = None,  # noqa: UP045
    csv: Annotated[Optional[Path], typer.Option("--csv", help="Write CSV to this file, - for the screen.")] = None,  # noqa: UP045
    markdown: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--markdown", help="Write Markdown to this file, - for the screen."),
    ] = None,
    json: Annotated[Optional[Path], typer.Option("--json", help="Write JSON to this file, - for the screen.")] = None,  # noqa: UP045
) -> None:
    """Put devices and backends of one workload family side by side, against a baseline.

    Two names alone (systems, or ids of runs or measurements) are judged beside each other: for each metric the ratio with
    its interval, whether the two may be compared, and why; then what differs in their environments. Exit 1 where nothing
    may be.
    """
    from dashboard.compare_command import run

    run(tuple(systems or ()), family, workload, baseline, store, {"csv": csv, "markdown": markdown, "json": json})
