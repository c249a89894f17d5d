"""Bring weighbridge to a bare device: a wheel, an environment named by what is in it, tried there before it is used.

Environments lie side by side in `<folder>/envs/`; `<folder>/env` is a link that moves in one step when the new one works.
Old ones stay, so that a run under way keeps its own.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.fleet import remote
from agents.fleet.crowd import Outcome, for_each
from agents.fleet.inventory import FleetDevice
from agents.fleet.probing import CLOCK_TOLERANCE_S, Probe, check, probe
from agents.fleet.transport import Connection
from agents.fleet.wheels import download_wheels, own_wheel, platforms_for, requirement
from harness.canonical import digest_of, sha256_hex
from harness.errors import TransportError, UsageError

INSTALL_S = 1800.0
READY = ".weighbridge-ready"
_REMOVE = "import shutil,sys\nshutil.rmtree(sys.argv[1], ignore_errors=True)"

Say = Callable[[FleetDevice, str], None]


@dataclass(frozen=True)
class Plan:
    """What to install, and from where."""

    extras: tuple[str, ...] = ("onnx", "tflite")
    wheel: Path | None = None
    wheelhouse: Path | None = None
    download: bool = False  # fetch the wheels here, for a device without a network of its own


def bootstrap_all(
    devices: Sequence[FleetDevice], known_hosts: Path, plan: Plan, say: Say
) -> tuple[list[Outcome[str]], bool]:
    """Bootstrap devices side by side. Returns one description each, and whether Ctrl-C was pressed."""
    requirement("", plan.extras)  # a typo is said before anything is built
    if plan.wheelhouse is not None and not plan.wheelhouse.is_dir():
        raise UsageError(f"{plan.wheelhouse} is not a folder of wheels.")
    stop = threading.Event()
    with tempfile.TemporaryDirectory(prefix="weighbridge-") as temporary:
        wheel = own_wheel(plan.wheel, Path(temporary))

        def work(device: FleetDevice) -> str:
            say(device, "connecting")
            with Connection(device, known_hosts, stop) as connection:
                return _bootstrap(connection, plan, wheel, Path(temporary), lambda text: say(device, text), stop)

        return for_each(devices, work, stop)


def _bootstrap(
    connection: Connection, plan: Plan, wheel: Path, temporary: Path, say: Callable[[str], None], stop: threading.Event
) -> str:
    device = connection.device
    found = probe(connection)
    check(device.name, found)
    wheels = {wheel.name: wheel}
    wheelhouse = plan.wheelhouse
    if plan.download:
        say("fetching wheels for it here")
        wheelhouse = temporary / f"wheels-{device.name}"
        wheelhouse.mkdir(exist_ok=True)
        platforms = platforms_for(found.system, found.machine, found.release)
        download_wheels(wheel, plan.extras, platforms, ".".join(map(str, found.python[:2])), wheelhouse)
    if wheelhouse is not None:
        wheels |= {path.name: path for path in sorted(wheelhouse.glob("*.whl"))}
    digests = {name: sha256_hex(path.read_bytes()) for name, path in sorted(wheels.items())}
    key = digest_of([digests, sorted(plan.extras), list(found.python), device.python])[:16]
    environment = connection.absolute(f"{device.folder}/envs/{key}")
    python = f"{environment}/bin/python"
    if not connection.exists(f"{environment}/{READY}"):
        _send_wheels(connection, wheels, digests, say)
        if stop.is_set():
            raise TransportError(f"{device.name}: stopped by Ctrl-C; nothing is in use there yet.")
        say("installing")
        _install(connection, found, environment, wheel.name, plan.extras, offline=wheelhouse is not None)
        connection.upload(b"", f"{environment}/{READY}")
    say("trying it there")
    version = connection.check(remote.weigh(device, python, "--version")).decode(errors="replace").strip()
    doctor = connection.run(remote.weigh(device, python, "doctor", "--json"), timeout_s=300)
    connection.link(environment, connection.absolute(f"{device.folder}/env"))
    notes = []
    if doctor.returncode not in (0, 1):
        notes.append(f"`weigh doctor` failed there: {doctor.last_words}")
    if abs(found.clock_offset_s) > CLOCK_TOLERANCE_S:
        notes.append(f"its clock is {found.clock_offset_s:+.0f} s off: set up NTP")
    return "; ".join([f"{version} on {found.described}", *notes])


def _send_wheels(
    connection: Connection, wheels: dict[str, Path], digests: dict[str, str], say: Callable[[str], None]
) -> None:
    folder = connection.absolute(f"{connection.device.folder}/wheels")
    connection.make_folder(folder)
    there = connection.digests([f"{folder}/{name}" for name in wheels])
    missing = [name for name in wheels if there[f"{folder}/{name}"] != digests[name]]
    for number, name in enumerate(missing, 1):
        say(f"sending wheel {number} of {len(missing)}: {name}")
        connection.upload(wheels[name], f"{folder}/{name}", digests[name])


def _install(
    connection: Connection, found: Probe, environment: str, wheel: str, extras: Sequence[str], offline: bool
) -> None:
    """Make the environment anew: what an interrupted bootstrap left is removed first."""
    device = connection.device
    python = f"{environment}/bin/python"
    wheels = connection.absolute(f"{device.folder}/wheels")
    connection.check([device.python, "-I", "-c", _REMOVE, environment])
    source = ["--no-index", "--find-links", wheels] if offline else []
    what = requirement(f"{wheels}/{wheel}", extras)
    if found.uv is not None:
        connection.check([found.uv, "venv", "--quiet", "--python", device.python, environment], INSTALL_S)
        install = [found.uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python]
    else:
        connection.check([device.python, "-m", "venv", environment], INSTALL_S)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    done = connection.run([*install, *source, what], INSTALL_S)
    if done.returncode != 0:
        raise TransportError(
            f"Installing on {device.name} failed: {done.last_words}",
            "Without a package index there, give --download or --wheelhouse; fewer extras with --extra.",
        )
