"""`weigh serve`: the ingest API, and the tokens that devices push with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

StoreOption = Annotated[
    str | None,
    typer.Option("--store", help="Address of the store; else WEIGHBRIDGE_STORE, else the user's SQLite file."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


def register(app: typer.Typer) -> None:
    """Add `weigh serve` and `weigh serve token`."""
    server = typer.Typer(help="Take in runs that devices push over HTTP.", invoke_without_command=True)
    server.callback(epilog="Example: `weigh serve --host 0.0.0.0 --tls-cert server.pem --tls-key server.key`")(serve)
    tokens = typer.Typer(help="The tokens that devices push with.", no_args_is_help=True)
    tokens.command("create", epilog="Example: `weigh serve token create pi5-kitchen`")(create)
    tokens.command("list", epilog="Example: `weigh serve token list --json`")(list_)
    tokens.command("revoke", epilog="Example: `weigh serve token revoke 3f1c2a9b7d10`")(revoke)
    server.add_typer(tokens, name="token")
    app.add_typer(server, name="serve")


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8787,
    store: StoreOption = None,
    max_mb: Annotated[int, typer.Option(min=1, help="Largest request, in MiB.")] = 128,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate chain (PEM); then it speaks https.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Private key (PEM) of the certificate.")] = None,
) -> None:
    """Take in runs that devices push (`weigh push`), each device with a token of its own, until Ctrl-C."""
    if context.invoked_subcommand is not None:
        return
    import uvicorn

    from db.api.app import create_app
    from db.api.limits import MEBIBYTE, Limits
    from harness.errors import UsageError

    if (tls_cert is None) != (tls_key is None):
        raise UsageError("--tls-cert and --tls-key belong together.", "Give both, or none.")
    for path in (tls_cert, tls_key):
        if path is not None and not path.is_file():
            raise UsageError(f"There is no file {path}.", "Give the certificate and its key as PEM files.")
    if tls_cert is None and host not in ("127.0.0.1", "::1", "localhost"):
        typer.echo(
            f"weigh: {host} is reachable from other machines and speaks plain http: tokens travel unencrypted. "
            "Give --tls-cert and --tls-key, or put a proxy that speaks https in front.",
            err=True,
        )
    address = _store_address(store)
    application = create_app(address, Limits(body_bytes=max_mb * MEBIBYTE))
    listener = _listen(host, port)
    scheme = "https" if tls_cert else "http"
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"Listening on {scheme}://{shown}:{listener.getsockname()[1]}", err=True)
    config = uvicorn.Config(
        application,
        log_level="warning",
        server_header=False,
        limit_concurrency=64,
        timeout_keep_alive=15,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        typer.echo("Stopped.", err=True)


def create(
    device: Annotated[str, typer.Argument(help="The device's name or UUID.")], store: StoreOption = None
) -> None:
    """Make a token for a device and show it, this one time."""
    from db.api.tokens import create_token

    row, token = create_token(_engine(store), device)
    known = f"bound to {row.device_uuid}" if row.device_uuid else "bound by its first push"
    typer.echo(f"Token {row.token_id} for {row.device}, {known}. It is shown this once:", err=True)
    typer.echo(token)


def list_(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the tokens; the secrets themselves are not kept."""
    from db.api.tokens import list_tokens

    rows: list[dict[str, Any]] = [
        {
            "token_id": row.token_id,
            "device": row.device,
            "device_uuid": row.device_uuid,
            "created_at": row.created_at.isoformat(timespec="seconds"),
            "last_used_at": row.last_used_at.isoformat(timespec="seconds") if row.last_used_at else None,
            "revoked_at": row.revoked_at.isoformat(timespec="seconds") if row.revoked_at else None,
        }
        for row in list_tokens(_engine(store))
    ]
    if as_json:
        import json

        typer.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        typer.echo("No tokens yet: `weigh serve token create DEVICE` makes one.")
        return
    from rich.table import Table

    from harness.terminal import output_console

    table = Table("token", "device", "device UUID", "made", "last used", "revoked")
    for row in rows:
        table.add_row(*(str(value) if value is not None else "-" for value in row.values()))
    output_console().print(table)


def revoke(
    token_id: Annotated[str, typer.Argument(help="The token's id, from `weigh serve token list`.")],
    store: StoreOption = None,
) -> None:
    """Take a token's right to push away, at once."""
    from db.api.tokens import revoke_token

    row = revoke_token(_engine(store), token_id)
    typer.echo(f"Token {row.token_id} of {row.device} is revoked.")


def _store_address(store: str | None) -> str:
    from harness.folders import default_store

    return store or default_store()


def _engine(store: str | None) -> Any:
    from db.store import open_store

    return open_store(_store_address(store)).engine


def _listen(host: str, port: int) -> Any:
    import socket

    from harness.errors import StoreError

    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        what = f"Cannot listen on {host} port {port}: {error.strerror or error}."
        raise StoreError(what, "Choose another --port.") from error
    return listener
