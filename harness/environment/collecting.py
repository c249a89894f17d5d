"""Puts the subjects together: machine and configuration, which make the digest, and conditions beside them.

The digest must be the same twice in a row and after load. So nothing that changes by itself is in machine or configuration
(clock of this moment, free space, load), memory is rounded, lists have one order, and what only root can read stands among
the conditions. Everything is read, nothing guessed: what this system does not tell is absent.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.environment import graphics, kernel, macos, memory, thermal, windows
from harness.environment.firmware import board_name, firmware
from harness.environment.interpreters import interpreters, variables
from harness.environment.limits import hypervisor, limits
from harness.environment.passing import conditions
from harness.environment.power import power
from harness.environment.processor import cpu_name, mitigations, processor
from harness.environment.reading import System, without_nothing
from harness.records import Environment


def collect(
    root: Path = Path("/"),
    runtimes: Mapping[str, Path] | None = None,
    *,
    system: System | None = None,
    load_nvml: Callable[[], Any] | None = None,
) -> Environment:
    """Read this machine's environment; never raises.

    `root` is where /proc and /sys hang, and `system` a whole recorded system, so that recorded ones replay in tests.
    `runtimes` are the interpreters that the configuration names for backends; each is asked for its software.
    """
    system = system or (System.here() if root == Path("/") else System.recorded(root))
    boards, board_settings = _nvidia(system, load_nvml)
    machine: dict[str, Any] = {
        "architecture": platform.machine() if system.live else None,
        "cpu": cpu_name(system=system),
        "board": board_name(system=system),
        "hypervisor": hypervisor(system=system),
        "processor": processor(system),
        "memory": memory.memory(system),
        "firmware": firmware(system),
        "thermal": thermal.limits(system),
        "graphics": [*graphics.devices(system), *boards],
    }
    configuration: dict[str, Any] = {
        "os": kernel.operating_system(system),
        "image": kernel.image(system),
        "kernel": kernel.kernel(system),
        "mitigations": mitigations(system),
        "memory": memory.paging(system),
        "limits": limits(system),
        "power": power(system),
        "drivers": without_nothing({**graphics.drivers(system), "nvidia_settings": board_settings}),
        "software": interpreters(system, runtimes or {}),
        "variables": variables(system),
    }
    now = conditions(system)
    if system.kind == "Darwin":
        machine, configuration = {**machine, **macos.machine(system)}, {**configuration, **macos.configuration(system)}
        now = {**now, **macos.conditions(system)}
    elif system.kind == "Windows":
        machine, configuration = (
            {**machine, **windows.machine(system)},
            {**configuration, **windows.configuration(system)},
        )
    if system.live and not machine["processor"].get("threads"):
        machine["processor"] = {**machine["processor"], **_counted()}
    return Environment(without_nothing(machine), without_nothing(configuration), now)


def _nvidia(system: System, load: Callable[[], Any] | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if load is None:
        if not system.live:
            return [], {}
        from harness.sensors.nvml import import_nvml

        load = import_nvml
    return graphics.nvidia_boards(load)


def _counted() -> dict[str, Any]:
    """Counts where the kernel shows no topology."""
    import psutil

    return without_nothing({"threads": os.cpu_count(), "cores": psutil.cpu_count(logical=False)})
