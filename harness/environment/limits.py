"""What this process is allowed: control groups, affinity, resource limits, and the container or hypervisor around it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from harness.environment.cgroups import cpu_quota, groups_of, memory_limit_bytes, process_limit
from harness.environment.reading import System, integer, pairs, text, without_nothing

# Of /proc/self/limits: those that change how a runtime behaves. They depend on how the process was started (a login over
# SSH, a service, root) and would make one machine look like two, so they are conditions. Its columns are at least two
# spaces apart.
RESOURCES = ("Max locked memory", "Max address space", "Max stack size")
CONTAINER_WORDS = ("docker", "kubepods", "libpod", "podman", "lxc", "crio", "containerd", "garden", "buildkit")


def limits(system: System) -> dict[str, Any]:
    """Return the limits as they are for this process."""
    root = system.root
    memory = memory_limit_bytes(root)
    cpu = groups_of(root, "cpu")
    weights = [weight for folder in (cpu.folders[:1] if cpu else ()) if (weight := _weight(folder)) is not None]
    return without_nothing(
        {
            "processors_allowed": pairs(root / "proc/self/status").get("Cpus_allowed_list"),
            "memory_nodes_allowed": pairs(root / "proc/self/status").get("Mems_allowed_list"),
            "cgroup_version": cpu.version if cpu else None,
            "cgroup_processors": cpu_quota(root),
            "cgroup_cpu_weight": weights[0] if weights else None,
            "cgroup_memory_mib": None if memory is None else memory // 2**20,
            "cgroup_processes": process_limit(root),
            "container": container(system),
        }
    )


def container(system: System) -> str | None:
    """The kind of container that this is, by the marks that each leaves; None where there is none."""
    if "microsoft" in system.text("proc/sys/kernel/osrelease").lower():
        return "wsl"
    if system.variables.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    groups = system.text("proc/self/cgroup").lower()
    if "kubepods" in groups:
        return "kubernetes"
    if system.path(".dockerenv").exists():
        return "docker"
    if system.path("run/.containerenv").exists():
        return "podman"
    said = system.text("run/systemd/container")
    if re.fullmatch(r"[a-z][a-z0-9-]{0,30}", said):
        return said
    named = next((word for word in CONTAINER_WORDS if word in groups), None)
    return "podman" if named == "libpod" else named


def hypervisor(root: Path = Path("/"), system: System | None = None) -> str | None:
    """The hypervisor's name if this is a virtual machine and it says so, else None."""
    system = system or (System.here() if root == Path("/") else System.recorded(root))
    if system.kind == "Darwin":
        return "unknown" if system.run(("/usr/sbin/sysctl", "-n", "kern.hv_vmm_present")) == "1" else None
    cpuinfo = system.text("proc/cpuinfo")
    flags = next((line for line in cpuinfo.splitlines() if line.startswith("flags")), "")
    named = system.text("sys/hypervisor/type") or system.text("proc/device-tree/hypervisor/compatible").split("\0")[0]
    if "hypervisor" not in flags.split() and not named:
        return None
    return named or system.text("sys/class/dmi/id/sys_vendor") or "unknown"


def _weight(folder: Path) -> int | None:
    return integer(folder / "cpu.weight") or integer(folder / "cpu.shares")


def resources(root: Path) -> dict[str, str]:
    """Return the soft limits of this process by what they limit, as the kernel prints them."""
    found: dict[str, str] = {}
    for line in text(root / "proc/self/limits").splitlines():
        columns = re.split(r"\s{2,}", line.strip())
        if columns[0] in RESOURCES and len(columns) > 1:
            found[columns[0].removeprefix("Max ")] = columns[1]  # the soft limit
    return found
