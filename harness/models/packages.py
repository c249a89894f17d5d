"""Files of published Python packages, fetched by pip so that the user's index, proxy and certificates are honoured.

The package is never installed. A wheel is only unpacked. For an sdist, pip itself runs the package's own metadata step, so
the archive's SHA-256 must be pinned: pip then refuses any other content before it does anything with it.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ModelError
from harness.models.progress import Progress

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?==[A-Za-z0-9.+!_-]+")
_POLL_S = 0.1


@dataclass(frozen=True)
class Package:
    """One release: `name==version`, as a wheel or as an sdist, with the archive's SHA-256 where it is pinned."""

    requirement: str
    sdist: bool = False
    sha256: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.requirement):
            raise ModelError(f"{self.requirement!r} is no pinned package: it must be written NAME==VERSION.")
        if self.sdist and self.sha256 is None:
            raise ModelError(
                f"The sdist {self.requirement} must be pinned with #sha256=..., because pip runs its metadata step."
            )


def download_packages(packages: Sequence[Package], folder: Path, progress: Progress) -> dict[Package, Path]:
    """Download the archives into `folder`, all wheels with one call of pip. Returns where each lies.

    Raises ModelError that names the packages and says what to do when pip is missing, has no network, or finds nothing.
    """
    found: dict[Package, Path] = {}
    wheels = [p for p in packages if not p.sdist]
    for batch in ([wheels] if wheels else []) + [[p] for p in packages if p.sdist]:
        place = folder / f"packages-{len(found)}"
        place.mkdir(parents=True)
        _run_pip(batch, place, progress)
        archives = {_canonical(path.name): path for path in place.iterdir() if path.is_file()}
        for package in batch:
            start = _canonical(package.requirement.replace("==", "-")) + "-"
            matching = [path for name, path in archives.items() if name.startswith(start)]
            if len(matching) != 1:
                raise ModelError(f"pip fetched no archive of {package.requirement}.")
            found[package] = matching[0]
    return found


def _run_pip(packages: Sequence[Package], folder: Path, progress: Progress) -> None:
    names = ", ".join(p.requirement for p in packages)
    lines = [p.requirement + (f" --hash=sha256:{p.sha256}" if p.sha256 else "") for p in packages]
    plain = [line for line in lines if "--hash" not in line]
    command = [*pip_command(), "download", "--no-deps", "--no-input", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", "--retries", "2", "--dest", str(folder)]
    command += ["--no-binary" if packages[0].sdist else "--only-binary", ":all:"]
    if len(plain) == len(lines):
        command += plain
    else:  # hashes can only be said in a requirements file
        listing = folder.parent / f"{folder.name}.txt"
        listing.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command += ["--requirement", str(listing)]
    work = folder.parent / f"{folder.name}-pip"
    work.mkdir()
    # What pip says goes elsewhere than to the cache's disk, or a full disk would not be told.
    with progress.step(f"Fetching {names}", None) as step, tempfile.TemporaryFile() as sink:
        process = subprocess.Popen(
            command, stdout=sink, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=_environment(work)
        )
        seen = 0
        try:
            while process.poll() is None:
                time.sleep(_POLL_S)
                now = max(seen, _bytes_below(work) + _bytes_below(folder))
                step.advance(now - seen)
                seen = now
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        sink.seek(0)
        output = sink.read().decode("utf-8", errors="replace")
    if process.returncode:
        raise _explained(names, output)


def pip_command() -> list[str]:
    """Return how to call pip: this interpreter's own, else the copy that Python itself carries, else the one on PATH.

    An environment that uv made has no pip; the standard library's ensurepip holds a wheel of it that runs as it is.
    Raises ModelError when there is none.
    """
    import importlib.util
    import shutil

    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    spec = importlib.util.find_spec("ensurepip")
    if spec is not None and spec.origin is not None:
        bundled = sorted((Path(spec.origin).parent / "_bundled").glob("pip-*.whl"))
        if bundled:
            return [sys.executable, str(bundled[-1] / "pip")]
    found = shutil.which("pip3") or shutil.which("pip")
    if found:
        return [found]
    raise ModelError(
        f"pip is not installed for {sys.executable}, and models are fetched with it.",
        "Install it with `python -m ensurepip`, or with your system's package manager (python3-pip).",
    )


def _environment(work: Path) -> dict[str, str]:
    """Let pip keep what it downloads in a folder of ours: on the cache's disk, and where its progress can be seen."""
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(work))
    return {**os.environ, **temporary, "PIP_QUIET": "0", "PYTHONIOENCODING": "utf-8"}


def _explained(names: str, output: str) -> ModelError:
    """Turn pip's output into one sentence. Without a network pip only says that nothing matches."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    last = (errors or lines or ["nothing"])[-1]
    if "No space left" in output:
        return ModelError(f"{names} could not be fetched: the disk is full.", "Free some space, then try again.")
    if "DO NOT MATCH THE HASHES" in output:
        return ModelError(
            f"{names} could not be fetched: the archive that the package index has is not the pinned one.",
            "Nothing of it was used. If your index is a mirror, it holds a changed file; use another one.",
        )
    unreachable = "Retrying (" in output
    if unreachable or "No matching distribution" in output or "Could not find a version" in output:
        why = (
            "the package index cannot be reached" if unreachable else "pip found no such release at your package index"
        )
        return ModelError(
            f"{names} could not be fetched: {why}.",
            "Connect this machine to a network, or set pip's index (PIP_INDEX_URL or pip.conf) to one that has it; "
            "or fetch on another machine with `weigh models fetch` and copy its cache folder here.",
        )
    return ModelError(f"{names} could not be fetched; pip says: {last}")


def _canonical(name: str) -> str:
    """Return a name as PEP 503 compares names: runs of -, _ and . are one -."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _bytes_below(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):  # passes over folders that pip removes meanwhile
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(place, name)).st_size
    return total
