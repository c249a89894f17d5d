"""Bringing weighbridge to a bare device: probing, a wheel, an environment, tried before it is taken into use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


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

    done = weigh("fleet", "bootstrap", "bare", "--extra", "onnx", "--json", timeout=280)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["state"], "weighbridge" in row["detail"]) == ("ready", True)
    python = device.folder / "env" / "bin" / "python"
    code = "import weigh, onnxruntime; print(weigh.__file__)"
    where = subprocess.run([str(python), "-P", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    (environment,) = (device.folder / "envs").iterdir()
    assert Path(where.stdout.strip()).resolve().is_relative_to(environment.resolve())

    again = weigh("fleet", "bootstrap", "bare", "--extra", "onnx")
    assert again.returncode == 0, again.stderr
    assert list((device.folder / "envs").iterdir()) == [environment]  # the same sources, the same environment
