"""Bringing weighbridge to a bare device: probing, a wheel, an environment, tried before it is taken into use."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agents.fleet import wheels
from agents.fleet.wheels import own_wheel


@pytest.mark.slow
def test_a_bare_device_gets_an_environment_of_its_own(ssh_device, weigh, tmp_path: Path) -> None:
    """A real venv from a wheel of this checkout, installed by the device itself; then it answers with that version."""
    device = ssh_device("bare", stand_in=False)
    done = weigh(
        "fleet", "enroll", "bare", device.address, "--fingerprint", device.fingerprint,
        "--key-file", str(device.login_key), "--python", sys.executable, "--folder", str(device.folder),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    before = weigh(
        "fleet", "run", "quick", "--on", "bare", "--no-sync", "--store", f"sqlite:///{tmp_path / 'c.sqlite'}"
    )
    assert before.returncode == 1
    assert "weigh fleet bootstrap bare" in before.stderr

    wheel = str(own_wheel(None, tmp_path))
    done = weigh("fleet", "bootstrap", "bare", "--extra", "onnx", "--wheel", wheel, "--json", timeout=280)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["state"], "weighbridge" in row["detail"]) == ("ready", True)
    python = device.folder / "env" / "bin" / "python"
    code = "import weigh, onnxruntime; print(weigh.__file__)"
    where = subprocess.run([str(python), "-P", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    (environment,) = (device.folder / "envs").iterdir()
    assert Path(where.stdout.strip()).resolve().is_relative_to(environment.resolve())

    again = weigh("fleet", "bootstrap", "bare", "--extra", "onnx", "--wheel", wheel)
    assert again.returncode == 0, again.stderr
    assert "installing" not in again.stderr  # the same wheel, the same environment
    assert list((device.folder / "envs").iterdir()) == [environment]


@pytest.mark.slow
def test_the_same_sources_give_the_same_wheel(tmp_path: Path, monkeypatch) -> None:
    """Otherwise every bootstrap would install everything again."""
    snapshot = tmp_path / "snapshot"
    root = Path(wheels.__file__).parents[2]
    for name in (*wheels.ROOMS, "pyproject.toml", "README.md", "LICENSE", "weigh.py"):
        place = snapshot / name
        place.parent.mkdir(exist_ok=True)
        if (root / name).is_dir():
            shutil.copytree(root / name, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(root / name, place)
    monkeypatch.setattr(wheels, "_checkout", lambda: snapshot)
    built = []
    for number in (1, 2):
        into = tmp_path / str(number)
        into.mkdir()
        built.append(own_wheel(None, into).read_bytes())
        for path in snapshot.rglob("*.py"):
            path.touch()
    assert built[0] == built[1]
