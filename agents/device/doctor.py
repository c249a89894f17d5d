"""What works on this machine, and what does not: why, and how to fix it. Each backend is asked in its own interpreter."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from agents.device import doctor_machine
from agents.device.finding import Finding

OUR_PACKAGES = ("agents", "backends", "dashboard", "db", "harness")


def examine(listen: Callable[[str], None] = lambda text: None) -> list[Finding]:
    """Ask everything, slowest last; `listen` is told what is being asked. Raises nothing that a finding can say."""
    listen("looking at the machine")
    here = [*doctor_machine.environment(), *doctor_machine.disturbance(), *doctor_machine.preparation()]
    return [*machine(), *here, *packages(), *folders(), *datasets(), *meters(), *backends(listen)]


def machine() -> list[Finding]:
    """Say who this device is."""
    from agents.device.identity import this_device
    from harness.environment import hypervisor
    from harness.errors import UsageError

    system = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    found = [Finding("machine", "interpreter", True, f"{system}, {sys.executable}")]
    try:
        device = this_device()
        unit = device.compute_units[0].hardware_model
        found.append(Finding("machine", "device", True, f"{device.name}, {device.hardware_model}, {unit}"))
    except UsageError as error:
        found.append(Finding("machine", "device", False, error.what, error.fix))
    if hypervisor():
        text = "This is a virtual machine: power, frequency and temperature sensors are usually not there."
        found.append(Finding("machine", "hypervisor", None, text))
    return found


def packages() -> list[Finding]:
    """`agents` and `db` are common names: say when another distribution brings a package called like one of ours."""
    owners = importlib.metadata.packages_distributions()
    found = []
    for package in OUR_PACKAGES:
        others = sorted(set(owners.get(package, [])) - {"weighbridge"})
        if others:
            text = f"The package {package!r} also comes from {', '.join(others)}."
            found.append(
                Finding("package", package, False, text, "Install weighbridge into an environment of its own.")
            )
    if {"onnxruntime", "onnxruntime-gpu"} <= {name for names in owners.values() for name in names}:
        text = "onnxruntime and onnxruntime-gpu are both installed and overwrite each other's files."
        fix = "Uninstall both, then install the one you need; name a second interpreter under [runtimes] for the other."
        found.append(Finding("package", "onnxruntime", False, text, fix))
    return found or [Finding("package", "names", True, "each of our packages has one owner")]


def folders() -> list[Finding]:
    """Say where things are kept, and whether they can be written there."""
    from harness.folders import cache_dir, config_dir, data_dir, default_store, spool_dir, state_dir
    from harness.sinks import without_password

    found = []
    for name, path in (("data", data_dir()), ("cache", cache_dir()), ("state", state_dir()), ("config", config_dir())):
        existing = next(parent for parent in (path, *path.parents) if parent.exists())
        if existing.is_dir() and os.access(existing, os.W_OK):
            found.append(Finding("folder", name, True, str(path)))
        else:
            fix = f"Set WEIGHBRIDGE_{name.upper()} to a folder that can be written."
            found.append(Finding("folder", name, False, f"{path} cannot be written.", fix))
    found.append(Finding("folder", "store", None, without_password(default_store())))
    waiting = sum(1 for entry in spool_dir().iterdir() if not entry.name.startswith(".")) if spool_dir().is_dir() else 0
    if waiting:
        found.append(Finding("folder", "spool", None, f"{waiting} finished runs wait to be sent.", "Run: weigh push"))
    return found


def datasets() -> list[Finding]:
    """Say which of the user's own datasets are configured and there."""
    from harness.configuration import DATASETS, configuration_file, load_configuration
    from harness.errors import UsageError

    try:
        configured = load_configuration().datasets
    except UsageError as error:
        return [Finding("dataset", "configuration", False, error.what, error.fix)]
    found = []
    for name in DATASETS:
        folder: Path | None = configured.get(name)
        if folder is None:
            text = "not configured; accuracy on it is not measured"
            fix = f'To use your own copy: [datasets] {name} = "/folder" in {configuration_file()}'
            found.append(Finding("dataset", name, None, text, fix))
        else:
            found.append(
                Finding("dataset", name, folder.is_dir(), str(folder) if folder.is_dir() else f"{folder} is no folder")
            )
    return found


def meters() -> list[Finding]:
    """Say which power meters can be read here."""
    from harness.sensors import available_meters

    return [
        Finding("meter", status.name, status.works, status.text, status.fix, status.verified)
        for status in available_meters()
    ]


def backends(listen: Callable[[str], None]) -> list[Finding]:
    """Probe every target that each backend names, by making real sessions in its own interpreter."""
    from backends import BACKENDS
    from harness.configuration import load_configuration
    from harness.folders import cache_dir
    from harness.runner.probing import probe_backend
    from harness.worker.pack import worker_archive

    runtimes = load_configuration().runtimes
    archive = worker_archive(cache_dir())
    found = []
    for backend in BACKENDS:
        listen(f"asking {backend}")
        with TemporaryDirectory(prefix="weighbridge-probe-") as folder:
            statuses = probe_backend(archive, Path(folder), backend, runtimes)
        for status in statuses:
            if status.works:
                text = " ".join(part for part in (status.version, status.device_name) if part) or "works"
            else:
                text = status.reason or "does not work, and the runtime does not say why"
            name = f"{backend} {status.target}"
            found.append(Finding("backend", name, status.works, text, status.fix, status.verified))
    return found
