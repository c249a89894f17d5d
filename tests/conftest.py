"""Every test has folders of its own; only the cache of models and datasets is shared, because it is content-addressed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no defect of the code: time limits per example would make property tests fail by chance.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

WeighCommand = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point data, configuration and state into a fresh folder, and forget any store or token of the user."""
    home = tmp_path_factory.mktemp("weighbridge")
    for name in ("DATA", "CONFIG", "STATE"):
        monkeypatch.setenv(f"WEIGHBRIDGE_{name}", str(home / name.lower()))
    for name in ("WEIGHBRIDGE_STORE", "WEIGHBRIDGE_TOKEN", "WEIGHBRIDGE_DEVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    return home


@pytest.fixture
def weigh() -> WeighCommand:
    """Run the `weigh` command as a user would, in a process of its own, with the test's folders."""

    def run(*arguments: str, timeout: float = 240, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "weigh", *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **environment},
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a real browser; a machine without one fails here, it does not skip."""
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    assert found, "No chromium on this machine: run tests/system_packages.sh"
    return found
