"""Starting the dashboard's server: its options, its environment, and waiting until it answers. Needs no Streamlit itself.

The options are given on the command line, so that the dashboard looks and behaves the same from any folder, whatever
configuration file lies there. The store's address goes through the environment: it may hold a password, and every user of
the machine sees arguments.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic, sleep

from harness.errors import NotDone, UsageError
from harness.folders import STORE_VARIABLE

HERE = Path(__file__).parent
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
START_SECONDS = 60.0


def theme_options(theme: Path = HERE / "theme.toml") -> list[str]:
    """The theme file as Streamlit's options: `[theme.dark] textColor` becomes --theme.dark.textColor."""
    document = tomllib.loads(theme.read_text(encoding="utf-8"))

    def flat(prefix: str, table: Mapping[str, object]) -> Iterator[str]:
        for name, value in table.items():
            if isinstance(value, Mapping):
                yield from flat(f"{prefix}{name}.", value)
            else:
                yield f"--{prefix}{name}={str(value).lower() if isinstance(value, bool) else value}"

    return list(flat("", document))


def server_command(host: str, port: int) -> list[str]:
    """The argument list that starts the server: never opens a browser itself, asks nothing, reports nothing to anybody."""
    return [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(HERE / "app.py"),
        f"--server.address={host}",
        f"--server.port={port}",
        "--server.headless=true",
        "--server.enableXsrfProtection=true",
        "--server.enableCORS=true",
        "--server.enableStaticServing=false",
        "--server.fileWatcherType=none",
        "--server.maxUploadSize=1",
        "--browser.gatherUsageStats=false",
        "--client.showErrorDetails=none",
        "--client.toolbarMode=viewer",
        "--runner.magicEnabled=false",
        "--logger.level=warning",
        *theme_options(),
    ]


def server_environment(store: str, host: str, base: Mapping[str, str]) -> dict[str, str]:
    """The server's environment: the store, and settings that the oldest Streamlit we run with would refuse as options."""
    environment = {**base, STORE_VARIABLE: store, "STREAMLIT_THEME_PADDING_TOP": "1.5rem"}
    if host in LOOPBACK:
        # Only requests made to this very address: a foreign name that points here (DNS rebinding) is refused.
        environment["STREAMLIT_SERVER_ALLOWED_HOSTS"] = "localhost 127.0.0.1 ::1"
    return environment


def check_port(host: str, port: int) -> None:
    """Raise UsageError where the address cannot be listened on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            why = "is already in use" if error.errno in _IN_USE else f"cannot be used ({error.strerror})"
            raise UsageError(
                f"Port {port} of {host} {why}.", f"Choose another with --port, e.g. --port {port + 1}."
            ) from error


def start(store: str, host: str, port: int) -> subprocess.Popen[bytes]:
    """Start the server and return once it answers. Raises UsageError (port), NotDone (it ended, or does not answer)."""
    check_port(host, port)
    server = subprocess.Popen(
        server_command(host, port),
        env=server_environment(store, host, os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # its banner; what goes wrong comes on standard error
    )
    try:
        _wait_until_it_answers(server, host, port)
    except BaseException:
        stop(server)
        raise
    return server


def stop(server: subprocess.Popen[bytes], seconds: float = 5.0) -> None:
    """End the server, by force if it does not end by itself. Harmless twice."""
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(seconds)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def reachable_address(host: str, port: int) -> str:
    """The address to type on this machine."""
    name = "127.0.0.1" if host in {"0.0.0.0", ""} else f"[{host}]" if ":" in host else host  # noqa: S104
    return f"http://{name}:{port}"


def _wait_until_it_answers(server: subprocess.Popen[bytes], host: str, port: int) -> None:
    url = f"{reachable_address(host, port)}/_stcore/health"
    end = monotonic() + START_SECONDS
    while monotonic() < end:
        if server.poll() is not None:
            raise NotDone(
                f"The dashboard's server ended at once (exit status {server.returncode}).", "It says why above."
            )
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 (our own address)
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            sleep(0.1)
    raise NotDone(f"The dashboard's server does not answer after {START_SECONDS:.0f} s.", "Try another --port.")


_IN_USE = {98, 48, 10048}  # EADDRINUSE on Linux, macOS, Windows
