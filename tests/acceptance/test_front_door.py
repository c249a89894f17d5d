"""The `weigh` command itself: help, version, and what it does not load to print them."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# pydantic is not among them: typer itself loads it, where it is installed, to read parameters.
HEAVY = {
    "onnxruntime", "openvino", "ai_edge_litert", "coremltools", "onnx", "numpy", "streamlit", "altair", "pandas",
    "sqlalchemy", "alembic", "fastapi", "uvicorn", "paramiko", "httpx", "PIL",
}  # fmt: skip


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["run", "--help"], ["fleet", "--help"]])
def test_help_loads_no_runtime_no_database_no_server(arguments: list[str]) -> None:
    script = (
        "import sys, weigh\n"
        f"sys.argv = ['weigh', *{arguments!r}]\n"
        "try:\n    weigh.main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.rpartition("LOADED ")[2].split())
    assert "typer" in loaded
    assert not loaded & HEAVY


def test_the_version_is_the_packages(weigh: Any) -> None:
    done = weigh("--version")
    assert done.stdout.strip() == f"weighbridge {importlib.metadata.version('weighbridge')}"


def _commands() -> list[list[str]]:
    """Every command path of the composed application."""
    from typer.main import get_command

    import weigh as front

    found: list[list[str]] = []

    def walk(command: Any, path: list[str]) -> None:
        for name, child in getattr(command, "commands", {}).items():
            found.append([*path, name])
            walk(child, [*path, name])

    walk(get_command(front.compose()), [])
    return found


def test_every_command_has_help_with_an_example() -> None:
    from typer.main import get_command

    import weigh as front

    root = get_command(front.compose())
    without = []
    for path in _commands():
        command: Any = root
        for name in path:
            command = command.commands[name]
        if command.hidden:
            continue
        text = f"{command.help or ''} {getattr(command, 'epilog', None) or ''}"
        if not getattr(command, "commands", None) and f"weigh {path[0]}" not in text:
            without.append(" ".join(path))
        assert command.help, f"{path} has no help"
    assert not without, f"no example in the help of: {without}"


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["run", "--no-such-option"], ["results", "--limit", "many"], ["compare", "--format"]]
)
def test_wrong_usage_is_exit_2_and_no_traceback(weigh: Any, arguments: list[str]) -> None:
    done = weigh(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_each_of_our_packages_has_one_owner() -> None:
    owners = importlib.metadata.packages_distributions()
    for package in ("agents", "backends", "dashboard", "db", "harness"):
        assert set(owners.get(package, [])) <= {"weighbridge"}, f"{package} also belongs to {owners[package]}"


def test_all_the_promised_extras_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = {
        "onnx",
        "cuda",
        "openvino",
        "coreml",
        "tflite",
        "dashboard",
        "server",
        "ssh",
        "postgres",
        "convert",
        "dev",
        "all",
    }
    assert promised <= set(project["optional-dependencies"])


def test_torch_is_in_no_default_install() -> None:
    names = {line.partition("=")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert "onnxruntime" in names
    assert not names & {"torch", "tensorflow", "torchvision"}


def _weigh(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run one shell line in which $WEIGH is the command."""
    command = f"{shlex.quote(sys.executable)} -m weigh"
    environment = {**os.environ, "WEIGH": command, **environment}
    return subprocess.run(["sh", "-c", line], capture_output=True, env=environment, check=False, timeout=60)


def test_output_on_a_full_disk_is_one_sentence_and_exit_1() -> None:
    done = _weigh("$WEIGH --version > /dev/full")
    assert (done.returncode, done.stderr) == (1, b"weigh: The output cannot be written: No space left on device.\n")


def test_closed_streams_are_like_dev_null() -> None:
    done = _weigh("$WEIGH import reference <&- >&- 2>&- && $WEIGH results --limit 1 --json")
    assert done.returncode == 0
    assert len(json.loads(done.stdout)) == 1


def test_a_terminal_that_knows_ascii_only_gets_the_table_and_json_stays_utf_8() -> None:
    plain = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = _weigh("$WEIGH import reference && $WEIGH compare --family resnet50", **plain)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Single stream" in done.stdout
    assert done.stdout.isascii()
    assert json.loads(_weigh("$WEIGH results --json", **plain).stdout.decode("utf-8"))


@pytest.mark.parametrize("option", ["--limit", "--offset"])
def test_a_number_that_no_database_takes_is_refused(weigh: Any, option: str) -> None:
    done = weigh("results", option, "9" * 20)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
