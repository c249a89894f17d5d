"""The front door: composes the `weigh` command from each room's commands.

It also holds the one table "store scheme -> sink", because no room below may know all of them. Nothing heavy is imported
here: a runtime, a database or a server is loaded by the command that needs it.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from importlib import import_module
from typing import Annotated

import typer

ROOMS = (
    "agents.device.commands",
    "db.commands",
    "dashboard.commands",
    "harness.models.commands",
    "db.api.commands",
    "agents.fleet.commands",
)

SINKS = {
    "sqlite": "db.store:open_sink",
    "postgresql": "db.store:open_sink",
    "http": "agents.device.push:open_sink",
    "https": "agents.device.push:open_sink",
}

app = typer.Typer(
    name="weigh",
    help="Put any chip on the same scale: run one model suite on any hardware, keep every number with its provenance.",
    epilog="Start with `weigh run quick`, then `weigh dashboard`. What works on this machine: `weigh doctor`.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"weighbridge {version('weighbridge')}")
        raise typer.Exit()


@app.callback()
def front_door(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say more of what happens, on standard error.")
    ] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )


def compose() -> typer.Typer:
    """Register the commands of every room and the sinks behind store addresses, once."""
    if not app.registered_commands and not app.registered_groups:
        from harness.sinks import register_sink

        for scheme, factory in SINKS.items():
            register_sink(scheme, factory)
        for room in ROOMS:
            import_module(room).register(app)
    return app


def main() -> None:
    """Run the `weigh` command; an error is one sentence on standard error, never a traceback."""
    from backends.errors import BackendError
    from harness.errors import WeighbridgeError

    _prepare_streams()
    try:
        try:
            compose()(prog_name="weigh")
        finally:
            sys.stdout.flush()  # here, where a full disk under the output can still be told
    except (WeighbridgeError, BackendError) as error:
        _complain(error.what, error.fix)
        sys.exit(getattr(error, "exit_code", 1))
    except KeyboardInterrupt:
        _complain("Stopped by Ctrl-C.", "")
        sys.exit(130)
    except SystemExit as end:
        if end.code == 130:  # what typer makes of Ctrl-C, without a word
            _complain("Stopped by Ctrl-C.", "")
        raise
    except BrokenPipeError:
        # The reader of our output (`| head`) has gone; the interpreter must not complain about it at exit.
        _drop_output()
        sys.exit(1)
    except OSError as error:
        # What no room turned into a sentence of its own: most of all the output itself, on a full disk.
        where = f"{error.filename} cannot be used" if error.filename else "The output cannot be written"
        _complain(f"{where}: {error.strerror or error}.", "")
        _drop_output()
        sys.exit(1)
    except ModuleNotFoundError as error:
        extra = _extra_for(error.name or "")
        if extra is None:
            raise
        _complain(
            f"This needs the package {error.name!r}, which is not installed.",
            f"Install it with: pip install 'weighbridge[{extra}]'",
        )
        sys.exit(1)


def _prepare_streams() -> None:
    """Make the standard streams safe to write to.

    A closed one would leave its number to the next file that is opened, a database for example; a terminal that knows
    ASCII only must not end a command for the sake of a degree sign.
    """
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not complain about it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _complain(what: str, fix: str) -> None:
    from rich.console import Console
    from rich.text import Text

    text = Text("weigh: ", style="bold red") + Text(what, style="red")
    if fix:
        text += Text(f" {fix}")
    Console(stderr=True, soft_wrap=True, highlight=False).print(text)


def _extra_for(module: str) -> str | None:
    extras = {
        "sqlalchemy": "database",
        "alembic": "database",
        "psycopg": "postgres",
        "streamlit": "dashboard",
        "altair": "dashboard",
        "pandas": "dashboard",
        "fastapi": "server",
        "uvicorn": "server",
        "multipart": "server",
        "paramiko": "ssh",
        "onnx": "convert",
        "flatbuffers": "convert",
        "safetensors": "convert",
        "tokenizers": "convert",
        "nncf": "quantize",
        "ai_edge_quantizer": "quantize",
    }
    return extras.get(module.partition(".")[0])


if __name__ == "__main__":
    main()
