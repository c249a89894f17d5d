"""How pip is found and called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import ModelError
from harness.models import packages


def test_this_interpreters_pip_is_called_where_it_has_one() -> None:
    assert packages.pip_command() == [sys.executable, "-m", "pip"]


def test_an_environment_without_pip_uses_the_copy_that_python_carries(tmp_path: Path) -> None:
    """As uv makes them; the copy must really run there."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    python = tmp_path / "bare" / "bin" / "python"
    code = "from harness.models.packages import pip_command; print('\\n'.join(pip_command()))"
    site = Path(packages.__file__).parents[2]
    command = subprocess.run(
        [str(python), "-c", f"import sys; sys.path.insert(0, {str(site)!r}); {code}"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert command[0] == str(python) and "ensurepip" in command[1]
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("pip ")


def test_without_any_pip_the_way_to_one_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ModelError, match=r"pip is not installed .* ensurepip"):
        packages.pip_command()
