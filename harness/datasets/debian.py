"""Files out of Debian packages, without root and without installing: apt fetches and verifies, dpkg-deb unpacks.

The package comes through the system's own apt, from the mirrors and keys that its owner chose. Where apt has no lists (as in
a fresh container), private ones are fetched beside our cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.errors import ModelError
from harness.models.progress import Progress, SilentProgress

FETCH_TIMEOUT_S = 900


def unpack_package(package: str, into: Path, dataset: str, offline: bool, progress: Progress | None = None) -> Path:
    """Fetch the Debian package and unpack it under `into`; return the .deb's path beside it. Raises ModelError."""
    if offline:
        raise ModelError(
            f"The dataset {dataset} is not in the cache, and nothing may be fetched (offline).",
            "Run once with a network, or copy the cache's folder from a machine that has it.",
        )
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise ModelError(
            f"The dataset {dataset} is not available here: it comes from the Debian package {package}, and this system "
            "has no apt-get and dpkg-deb.",
            "Copy the cache's folder from a Debian or Ubuntu machine, or use a labelled folder of your own "
            "(docs/workloads.md).",
        )
    download = into / "download"
    download.mkdir()
    said = progress or SilentProgress()
    with said.step(f"{dataset}: Debian package {package}", None):
        _download(package, dataset, into, download)
    packages = sorted(download.glob("*.deb"))
    if not packages:
        raise ModelError(f"apt-get fetched no file for the Debian package {package}.")
    with said.step(f"{dataset}: unpacking", None):
        unpacked = _run(["dpkg-deb", "-x", str(packages[0]), str(into / "root")], download)
    if unpacked.returncode != 0:
        raise ModelError(f"The Debian package {package} cannot be unpacked: {_last_error(unpacked.stderr)}")
    return packages[0]


def _download(package: str, dataset: str, into: Path, download: Path) -> None:
    first = _run(["apt-get", "-q", "download", package], download)
    if first.returncode != 0:
        options = _private_lists(into / "apt")
        updated = _run(["apt-get", "-q", *options, "update"], download)
        again = _run(["apt-get", "-q", *options, "download", package], download)
        if again.returncode != 0:
            reason = _last_error(again.stderr) or _last_error(updated.stderr) or _last_error(first.stderr)
            raise ModelError(
                f"The Debian package {package} for the dataset {dataset} cannot be fetched: {reason}",
                "Is there a network, and does this release have the package (apt-cache policy)?",
            )


def _private_lists(folder: Path) -> list[str]:
    """Return apt options that keep lists and cache in `folder`; sources and keys stay the system's."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return ["-o", f"Dir::State::Lists={folder / 'lists'}", "-o", f"Dir::Cache={folder / 'cache'}"]


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"{command[0]} gave no answer within {FETCH_TIMEOUT_S // 60} minutes.") from error


def _last_error(text: str) -> str:
    errors = [line for line in text.splitlines() if line.startswith(("E:", "dpkg-deb: error"))]
    return (errors or text.splitlines() or [""])[-1].removeprefix("E:").strip()


def scratch_folder(beside: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder on the same disk as `beside`, for what a package holds besides the wanted files."""
    return tempfile.TemporaryDirectory(prefix=".deb-", dir=beside)
