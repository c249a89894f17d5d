"""The operating system and its kernel: release, build, boot options, how it schedules and keeps time.

Boot options can hold secrets and identities (disk UUIDs, addresses, keys): those that are known to change performance keep
their value, of all others only the name is kept, and words without a name are left out.
"""

from __future__ import annotations

import gzip
import re
import zlib
from typing import Any

from harness.environment.reading import System, without_nothing

# Of admin-guide/kernel-parameters.rst: what changes how fast or how evenly programs run. A dot ends a module's name.
TELLING_OPTIONS = frozenset((
    "isolcpus", "nohz", "nohz_full", "rcu_nocbs", "rcu_nocb_poll", "irqaffinity", "maxcpus", "nr_cpus", "nosmt",
    "nosmp", "mitigations", "preempt", "threadirqs", "skew_tick", "tsc", "clocksource", "hpet", "highres", "idle",
    "processor.max_cstate", "intel_idle.max_cstate", "cpuidle.off", "cpufreq.off", "cpuidle_haltpoll.force",
    "haltpoll.guest_halt_poll_ns", "cpufreq.default_governor", "intel_pstate", "amd_pstate", "intel_iommu",
    "amd_iommu", "iommu", "iommu.passthrough", "numa", "numa_balancing", "transparent_hugepage", "hugepages",
    "hugepagesz", "default_hugepagesz", "mem", "memmap", "movable_node", "cma", "psi", "nowatchdog",
    "nmi_watchdog", "audit", "spectre_v1", "spectre_v2", "spectre_v2_user", "spec_store_bypass_disable", "l1tf",
    "mds", "tsx", "tsx_async_abort", "mmio_stale_data", "retbleed", "srbds", "gather_data_sampling",
    "reg_file_data_sampling", "spec_rstack_overflow", "nospectre_v1", "nospectre_v2", "nopti", "pti", "kpti",
    "nokaslr", "noibrs", "noibpb", "rcupdate.rcu_expedited", "workqueue.power_efficient", "pcie_aspm",
    "pcie_aspm.policy", "nvidia.NVreg_EnableGpuFirmware", "i915.enable_guc", "amdgpu.ppfeaturemask",
    "arm64.nopauth", "arm64.nosve", "arm64.nosme", "kvm-arm.mode", "systemd.unified_cgroup_hierarchy",
    "cgroup_disable", "cgroup_enable", "cgroup_memory", "swapaccount", "zswap.enabled", "coherent_pool",
))  # fmt: skip
VALUE = re.compile(r"[A-Za-z0-9_.,:;+@*-]{0,200}")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,60}")
IDENTITY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}", re.IGNORECASE)
MASKED = "(not kept)"
SETTINGS = {
    "numa_balancing": "proc/sys/kernel/numa_balancing",
    "autogroup": "proc/sys/kernel/sched_autogroup_enabled",
    "nmi_watchdog": "proc/sys/kernel/nmi_watchdog",
    "watchdog": "proc/sys/kernel/watchdog",
    "timer_migration": "proc/sys/kernel/timer_migration",
    "zone_reclaim": "proc/sys/vm/zone_reclaim_mode",
    "real_time_kernel": "sys/kernel/realtime",
}


def kernel(system: System) -> dict[str, Any]:
    """Return what tells one kernel from another. Host name and the builder's user name are not kept."""
    return without_nothing(
        {
            "release": system.text("proc/sys/kernel/osrelease"),
            "version": system.text("proc/sys/kernel/version") or _build(system.text("proc/version")),
            "options": boot_options(system.text("proc/cmdline")),
            "isolated": system.text("sys/devices/system/cpu/isolated"),
            "tickless": _listed(system.text("sys/devices/system/cpu/nohz_full")),
            "built_with": _built_with(system),
            "clocksource": system.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            **{name: system.integer(path) for name, path in SETTINGS.items()},
        }
    )


def operating_system(system: System) -> str | None:
    """The distribution's own name, as /etc/os-release gives it."""
    for line in system.text("etc/os-release").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip().strip('"') or None
    return None


def image(system: System) -> dict[str, Any]:
    """What tells one system image from another of the same distribution: its variant, build and date of making."""
    fields = dict(line.split("=", 1) for line in system.text("etc/os-release").splitlines() if "=" in line)
    names = ("ID", "VERSION_ID", "VARIANT_ID", "BUILD_ID", "IMAGE_ID", "IMAGE_VERSION")
    found: dict[str, Any] = {name.lower(): fields[name].strip('"') for name in names if name in fields}
    issue = system.text("etc/rpi-issue").splitlines()[:1]  # "Raspberry Pi reference 2024-11-19"
    jetson = system.text("etc/nv_tegra_release").splitlines()[:1]
    return without_nothing(
        {**found, "raspberry_pi_image": "".join(issue), "jetson_linux": "".join(jetson).lstrip("# ")}
    )


def boot_options(line: str) -> dict[str, str]:
    """Return the boot options that may matter with their values, of the others the names. What follows "--" is for init."""
    found: dict[str, str] = {}
    for word in line.split(" -- ")[0].split():
        name, mark, value = word.partition("=")
        if not NAME.fullmatch(name) or IDENTITY.search(name):
            continue
        if name in TELLING_OPTIONS and VALUE.fullmatch(value):
            found[name] = f"{found[name]} {value}" if mark and name in found else value
        elif mark:
            found[name] = MASKED
    return dict(sorted(found.items()))


def _build(version: str) -> str:
    """The build's number and kind ("#1 SMP PREEMPT_DYNAMIC ...") of /proc/version, without who built it where."""
    found = re.search(r"#\d+ .*", version)
    return found[0] if found else ""


def _listed(processors: str) -> str | None:
    """A list of processors; the kernel writes "(null)" for none."""
    return processors if re.fullmatch(r"[0-9,-]+", processors) else None


def _built_with(system: System) -> dict[str, str]:
    """Preemption model, tick and rate from the kernel's own configuration, where it is kept."""
    words = system.text(f"boot/config-{system.text('proc/sys/kernel/osrelease')}")
    if not words:
        try:
            words = gzip.decompress(system.path("proc/config.gz").read_bytes()).decode(errors="replace")
        except (OSError, EOFError, zlib.error):
            return {}
    settings = dict(re.findall(r"^CONFIG_(HZ|PREEMPT\w*|NO_HZ_\w+)=(\w+)$", words, re.MULTILINE))
    wanted = ("HZ", "PREEMPT", "PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT_LAZY", "PREEMPT_RT", "PREEMPT_DYNAMIC")
    tick = ("NO_HZ_IDLE", "NO_HZ_FULL")
    return {name.lower(): settings[name] for name in (*wanted, *tick) if name in settings}
