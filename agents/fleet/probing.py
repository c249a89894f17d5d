"""What a device is, before anything is installed there: asked with its own Python and nothing else."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from agents.fleet.transport import Connection
from harness.errors import TransportError

NEEDED_PYTHON = (3, 11)
NEEDED_BYTES = 500_000_000
CLOCK_TOLERANCE_S = 5.0

# Any Python 3. platform.libc_ver and mac_ver say which wheels fit.
_PROBE = """
import json, os, platform, shutil, sys, time
home = os.path.expanduser("~")
places = [shutil.which("uv"), os.path.join(home, ".local/bin/uv"), os.path.join(home, ".cargo/bin/uv")]
try:
    import ensurepip, venv
    complete = True
except ImportError:
    complete = False
print(json.dumps({
    "system": platform.system(), "machine": platform.machine(), "python": list(sys.version_info[:3]),
    "libc": platform.libc_ver()[1], "macos": platform.mac_ver()[0], "free_bytes": shutil.disk_usage(home).free,
    "uv": next((p for p in places if p and os.path.exists(p)), None), "venv": complete, "time": time.time(),
}))
"""


@dataclass(frozen=True)
class Probe:
    """What was found."""

    system: str
    machine: str
    python: tuple[int, ...]
    release: tuple[int, int]  # of glibc or macOS
    free_bytes: int
    uv: str | None
    has_venv: bool
    clock_offset_s: float

    @property
    def described(self) -> str:
        """One line for people."""
        return f"{self.system} {self.machine}, Python {'.'.join(map(str, self.python))}"


def probe(connection: Connection) -> Probe:
    """Ask the device. Raises TransportError that says what is missing there."""
    device = connection.device
    before = time.time()
    done = connection.run([device.python, "-I", "-c", _PROBE])
    after = time.time()
    if done.returncode != 0:
        raise TransportError(
            f"{device.name} cannot run {device.python!r}: {done.last_words or f'status {done.returncode}'}.",
            "Install Python 3.11 or newer there, or name another one as `python` in the fleet file.",
        )
    try:
        found: dict[str, Any] = json.loads(done.stdout)
        return Probe(
            system=str(found["system"]),
            machine=str(found["machine"]),
            python=tuple(int(part) for part in found["python"]),
            release=_release(str(found["macos"] or found["libc"])),
            free_bytes=int(found["free_bytes"]),
            uv=found["uv"],
            has_venv=bool(found["venv"]),
            clock_offset_s=float(found["time"]) - (before + after) / 2,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise TransportError(f"{device.name} does not answer like a Python: {done.last_words}.") from error


def check(name: str, found: Probe) -> None:
    """Raise TransportError when weighbridge cannot live there."""
    if found.system not in ("Linux", "Darwin"):
        raise TransportError(
            f"{name} runs {found.system}, which is not commanded over SSH.",
            "Install weighbridge there, and send its results with `weigh run` and `weigh push`.",
        )
    if found.python[:2] < NEEDED_PYTHON:
        raise TransportError(
            f"{name} has Python {'.'.join(map(str, found.python))}; 3.11 or newer is needed.",
            "Name a newer one as `python` in the fleet file.",
        )
    if not found.has_venv and found.uv is None:
        raise TransportError(
            f"The Python of {name} cannot make environments.", "On Debian and its kin: sudo apt install python3-venv"
        )
    if found.free_bytes < NEEDED_BYTES:
        raise TransportError(
            f"{name} has {found.free_bytes // 1_000_000} MB free in the home; {NEEDED_BYTES // 1_000_000} MB are needed."
        )


def _release(text: str) -> tuple[int, int]:
    parts = [int(part) for part in text.split(".")[:2] if part.isdigit()]
    return (parts[0], parts[1] if len(parts) > 1 else 0) if parts else (2, 17)
