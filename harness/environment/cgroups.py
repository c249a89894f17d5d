"""Control groups, version 1 and 2: the folders that hold a process, with all above it, because any level may limit it.

Kernel documentation: admin-guide/cgroup-v2.rst and admin-guide/cgroup-v1; scheduler/sched-bwc.rst for cpu.stat. Inside a
container the groups above its own are not visible; its own limits are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.environment.reading import integer, text

NO_LIMIT_BYTES = 1 << 60  # version 1 says "no limit" by a number near 2**63


@dataclass(frozen=True)
class Throttling:
    """What a CPU quota did to a group since it was made. Seconds are summed over processors."""

    periods: int
    throttled_periods: int
    throttled_s: float


@dataclass(frozen=True)
class Groups:
    """One controller's groups of a process: its own first, then each above it."""

    version: int
    folders: tuple[Path, ...]


def groups_of(root: Path, controller: str, pid: int | None = None) -> Groups | None:
    """Return the groups of a process (None: this one) under a controller ("cpu", "memory", ...); None without any."""
    process = root / "proc" / ("self" if pid is None else str(pid))
    paths: dict[str, str] = {}
    for line in text(process / "cgroup").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for name in parts[1].split(","):
                paths[name] = parts[2]
    mounts = _mounts(process, root)
    if controller in paths and controller in mounts:
        return Groups(1, _upwards(*mounts[controller], paths[controller]))
    if "" in mounts:
        folders = _upwards(*mounts[""], paths.get("", "/"))
        if any((folder / "cgroup.controllers").exists() for folder in folders):
            return Groups(2, folders)
    return _by_usual_place(root, controller)


def _mounts(process: Path, root: Path) -> dict[str, tuple[Path, str]]:
    """Return where each controller of version 1 is mounted, with the group that is its top there; "" is version 2."""
    found: dict[str, tuple[Path, str]] = {}
    for line in text(process / "mountinfo").splitlines():
        before, mark, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if not mark or len(fields) < 5 or not kind:
            continue
        place = (root / fields[4].lstrip("/"), fields[3])
        if kind[0] == "cgroup2":
            found.setdefault("", place)
        elif kind[0] == "cgroup" and len(kind) > 2:
            for option in kind[2].split(","):
                found.setdefault(option, place)
    return found


def _upwards(mount: Path, top: str, path: str) -> tuple[Path, ...]:
    """Return the group's folder and those above it up to the mount; the mount alone where the group lies outside it."""
    below = path[len(top) :] if top != "/" and path.startswith(top) else path
    parts = [part for part in below.split("/") if part]
    if ".." in parts:
        parts = []  # a group of another namespace
    folders = [mount.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return tuple(folder for folder in folders if folder.is_dir()) or (mount,)


def _by_usual_place(root: Path, controller: str) -> Groups | None:
    base = root / "sys/fs/cgroup"
    if (base / "cgroup.controllers").exists() or (base / "cpu.max").exists():
        return Groups(2, (base,))
    for name in (controller, "cpu,cpuacct" if controller == "cpu" else controller):
        if (base / name).is_dir():
            return Groups(1, (base / name,))
    return None


def cpu_quota(root: Path, pid: int | None = None) -> float | None:
    """Return the smallest CPU quota of the groups, in processors; None where none limits."""
    groups = groups_of(root, "cpu", pid)
    quotas = [quota for folder in groups.folders if (quota := _quota(folder)) is not None] if groups else []
    return min(quotas, default=None)


def _quota(folder: Path) -> float | None:
    try:
        limit, period = text(folder / "cpu.max").split()
        return None if limit == "max" else int(limit) / int(period)
    except (ValueError, ZeroDivisionError):
        pass  # version 1, or the top
    limit_us, period_us = integer(folder / "cpu.cfs_quota_us"), integer(folder / "cpu.cfs_period_us")
    return limit_us / period_us if limit_us and period_us and limit_us > 0 else None


def memory_limit_bytes(root: Path, pid: int | None = None) -> int | None:
    """Return the smallest memory limit of the groups; None where none limits."""
    groups = groups_of(root, "memory", pid)
    names = ("memory.max", "memory.high", "memory.limit_in_bytes")
    limits = [
        limit
        for folder in (groups.folders if groups else ())
        for name in names
        if (limit := integer(folder / name)) is not None and limit < NO_LIMIT_BYTES
    ]
    return min(limits, default=None)


def process_limit(root: Path, pid: int | None = None) -> int | None:
    """Return the smallest limit on the number of processes and threads; None where none limits."""
    groups = groups_of(root, "pids", pid)
    limits = [n for folder in (groups.folders if groups else ()) if (n := integer(folder / "pids.max")) is not None]
    return min(limits, default=None)


def throttling(groups: Groups) -> Throttling | None:
    """Return what the CPU quotas of all levels did together; None where no level has a quota's counters."""
    periods = throttled = 0
    seconds, seen = 0.0, False
    for folder in groups.folders:
        stat = dict(line.split(maxsplit=1) for line in text(folder / "cpu.stat").splitlines() if " " in line)
        try:
            if "nr_throttled" not in stat:
                continue
            periods += int(stat["nr_periods"])
            throttled += int(stat["nr_throttled"])
            nanoseconds = (
                int(stat["throttled_time"]) if "throttled_time" in stat else int(stat["throttled_usec"]) * 1000
            )
            seconds += nanoseconds / 1e9
            seen = True
        except (KeyError, ValueError):
            continue
    return Throttling(periods, throttled, seconds) if seen else None
