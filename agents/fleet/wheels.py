"""The wheel that a device gets, and, for a device without a network of its own, the wheels of what it depends on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from harness.errors import NotDone, UsageError

ROOMS = ("agents", "backends", "dashboard", "db", "harness")
_SOURCES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "weigh.py")
BUILD_S = 600
DOWNLOAD_S = 1800


def own_wheel(given: Path | None, into: Path) -> Path:
    """Return a wheel of weighbridge: the given one, one built from this checkout, or the installed version's.

    Raises UsageError for a file that is none, NotDone when it cannot be built or had.
    """
    if given is not None:
        if not given.is_file() or not re.fullmatch(r"weighbridge-[^/]+\.whl", given.name):
            raise UsageError(
                f"{given} is not a wheel of weighbridge.", "It is named like weighbridge-0.1.0-py3-none-any.whl."
            )
        return given
    checkout = _checkout()
    if checkout is not None:
        _build(checkout, into)
    else:
        _run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--no-deps",
                "-d",
                str(into),
                f"weighbridge=={version('weighbridge')}",
            ]
        )
    wheels = sorted(into.glob("weighbridge-*.whl"))
    if not wheels:
        raise NotDone("No wheel of weighbridge could be made.", "Give one with --wheel.")
    return wheels[-1]


def download_wheels(wheel: Path, extras: Sequence[str], platforms: Sequence[str], python: str, into: Path) -> None:
    """Fetch the wheels that `wheel` with `extras` needs on another platform. Raises NotDone with pip's last words.

    Markers such as sys_platform are judged by pip for this machine, so both should run the same kind of system.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "-d", str(into)]
    command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", python]
    for name in platforms:
        command += ["--platform", name]
    _run([*command, requirement(wheel, extras)], DOWNLOAD_S)


def platforms_for(system: str, machine: str, release: tuple[int, int]) -> list[str]:
    """Return the wheel platform tags that a device can use, best first. `release` is glibc's version, or macOS's."""
    if system == "Darwin":
        return [f"macosx_{release[0]}_0_{machine}", f"macosx_{release[0]}_0_universal2"]
    newest = release[1] if release[0] == 2 else 17
    return [f"manylinux_2_{minor}_{machine}" for minor in range(newest, 4, -1)] + [f"manylinux2014_{machine}"]


def requirement(wheel: str | Path, extras: Sequence[str]) -> str:
    """Return how pip is told to install a wheel file with extras."""
    for extra in extras:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", extra):
            raise UsageError(f"{extra!r} is not an extra.", "Extras are onnx, openvino, tflite, coreml, cuda.")
    return f"{wheel}[{','.join(extras)}]" if extras else str(wheel)


def _checkout() -> Path | None:
    root = Path(__file__).resolve().parents[2]
    try:
        described = (root / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return None
    return root if 'name = "weighbridge"' in described else None


def _build(checkout: Path, into: Path) -> None:
    """Build from a copy: setuptools would keep files of earlier builds, and write into the checkout."""
    copy = into / "source"
    copy.mkdir()
    for name in _SOURCES:
        if (checkout / name).exists():
            shutil.copy2(checkout / name, copy / name)
    for room in ROOMS:
        shutil.copytree(checkout / room, copy / room, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is not None:
        _run([uv, "build", "--quiet", "--wheel", "--out-dir", str(into), str(copy)])
    else:
        _run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(into), str(copy)])


def _run(command: list[str], timeout_s: float = BUILD_S) -> None:
    try:
        # A fixed time stamp: the same sources give the same wheel, and the same wheel the same environment.
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotDone(f"{' '.join(command[:4])} did not work: {error}.") from error
    if done.returncode != 0:
        words = " ".join((done.stderr or done.stdout).split())[-500:]
        raise NotDone(
            f"{Path(command[0]).name} {' '.join(command[1:4])} failed: {words}.", "Or give a wheel with --wheel."
        )
