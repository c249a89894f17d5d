"""Starting the server: what it is told, by which way, and what it must not be told."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from dashboard import launch
from harness.errors import UsageError


def options(command: list[str]) -> dict[str, str]:
    return dict(part.removeprefix("--").split("=", 1) for part in command if part.startswith("--"))


def test_the_server_guards_itself_and_reports_nothing() -> None:
    given = options(launch.server_command("127.0.0.1", 8501))
    assert given["server.enableXsrfProtection"] == "true"
    assert given["server.enableCORS"] == "true"
    assert given["browser.gatherUsageStats"] == "false"
    assert given["client.showErrorDetails"] == "none"
    assert given["server.headless"] == "true"
    assert (given["server.address"], given["server.port"]) == ("127.0.0.1", "8501")


def test_both_themes_are_passed_as_options() -> None:
    given = options(launch.theme_options())
    assert {"theme.light.backgroundColor", "theme.dark.backgroundColor", "theme.linkUnderline"} <= set(given)
    assert given["theme.linkUnderline"] == "true"


def _luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_markers_can_be_read_in_both_themes(theme: str) -> None:
    from dashboard.palette import COLOURS

    given = options(launch.theme_options())
    for background in ("backgroundColor", "secondaryBackgroundColor"):
        behind = given[f"theme.{theme}.{background}"]
        assert contrast(given[f"theme.{theme}.textColor"], behind) >= 7
        assert contrast(given[f"theme.{theme}.linkColor"], behind) >= 4.5
        assert contrast(given[f"theme.{theme}.primaryColor"], behind) >= 4.5
    page = given[f"theme.{theme}.backgroundColor"]
    assert min(contrast(colour, page) for colour in COLOURS) >= 1.9


def test_the_stores_password_is_in_no_argument() -> None:
    secret = "postgresql://me:secret@host/db"
    assert "secret" not in " ".join(launch.server_command("127.0.0.1", 8501))
    assert launch.server_environment(secret, "127.0.0.1", {})["WEIGHBRIDGE_STORE"] == secret


def test_only_a_loopback_server_refuses_other_host_names() -> None:
    assert "STREAMLIT_SERVER_ALLOWED_HOSTS" in launch.server_environment("x", "127.0.0.1", {})
    assert "STREAMLIT_SERVER_ALLOWED_HOSTS" not in launch.server_environment("x", "0.0.0.0", {})


def test_a_taken_port_is_said_with_the_way_out() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(
            UsageError, match=rf"Port {port} of 127.0.0.1 is already in use. Choose another with --port"
        ):
            launch.check_port("127.0.0.1", port)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be used"):
        launch.check_port("192.0.2.1", 8501)  # TEST-NET-1 (RFC 5737) is nobody's address


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:80"), ("0.0.0.0", "http://127.0.0.1:80"), ("::1", "http://[::1]:80")],
)
def test_the_address_to_type(host: str, address: str) -> None:
    assert launch.reachable_address(host, 80) == address


def test_without_streamlit_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    from dashboard.commands import dashboard

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "streamlit" else found(name))
    with pytest.raises(UsageError, match=r"needs Streamlit.*pip install 'weighbridge\[dashboard\]'"):
        dashboard()


def test_the_commands_load_neither_streamlit_nor_pandas_nor_sqlalchemy() -> None:
    program = (
        "import sys, typer; from dashboard.commands import register; register(typer.Typer());"
        "import dashboard.compare_command;"
        "print(*{'streamlit', 'pandas', 'sqlalchemy', 'altair', 'numpy'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
