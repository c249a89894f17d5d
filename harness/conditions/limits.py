"""CPU quotas of control groups: how often and how long they stopped the worker, and the harness beside it."""

from __future__ import annotations

from pathlib import Path

from harness.conditions.looks import Values
from harness.environment.cgroups import Groups, Throttling, groups_of, throttling


class GroupLimits:
    """The groups are looked up again while the worker runs, because it may be moved into one after its start."""

    def __init__(self, root: Path) -> None:
        self.absent: dict[str, str] = {}
        self._root = root
        self._ours = groups_of(root, "cpu")
        self._workers: Groups | None = self._ours
        self._before = Throttling(0, 0, 0.0)  # of groups that the worker has left, so that its counters only grow
        self._last: Throttling | None = None
        if self._ours is None:
            self.absent["cgroup_throttled"] = "this system shows no control groups"

    def look(self, pid: int, slowly: bool) -> Values:
        """Return both groups' counters; where they are one group, that group's."""
        values = Values()
        moved = False
        if (self._root / f"proc/{pid}/cgroup").exists():
            groups = groups_of(self._root, "cpu", pid) or self._workers
            moved, self._workers = groups != self._workers, groups
        ours = throttling(self._ours) if self._ours is not None else None
        found = throttling(self._workers) if self._workers is not None else None
        if found is not None:
            if moved:
                self._before = _minus(self._last, found)
            self._last = _plus(self._before, found)
        for whose, seen in (("worker", self._last), ("harness", ours)):
            if seen is not None:
                values.counters[f"{whose}_periods"] = seen.periods
                values.counters[f"{whose}_throttled_periods"] = seen.throttled_periods
                values.counters[f"{whose}_throttled_s"] = seen.throttled_s
        return values


def _plus(one: Throttling, other: Throttling) -> Throttling:
    return Throttling(
        one.periods + other.periods,
        one.throttled_periods + other.throttled_periods,
        one.throttled_s + other.throttled_s,
    )


def _minus(one: Throttling | None, other: Throttling) -> Throttling:
    """What has to be added to `other` to make it go on where `one` ended."""
    if one is None:
        return Throttling(0, 0, 0.0)
    return _plus(one, Throttling(-other.periods, -other.throttled_periods, -other.throttled_s))
