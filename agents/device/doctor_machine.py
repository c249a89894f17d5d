"""`weigh doctor` on the machine itself: its environment in short, what disturbs it now, what preparation could change."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.device.finding import Finding

LOOK_S = 1.0
NOISY_PROCESSES = 3


def environment() -> list[Finding]:
    """The fingerprint in short; `weigh run` stores all of it. Digest first, because it tells two environments apart."""
    from agents.device.run_environment import environment_now
    from harness.errors import UsageError

    try:
        found = environment_now()
    except UsageError as error:
        return [Finding("environment", "configuration", False, error.what, error.fix)]
    machine, configuration = found.machine, found.configuration
    power, limits = configuration.get("power", {}), configuration.get("limits", {})
    policies = power.get("policies", ())
    governors = sorted({policy["governor"] for policy in policies if "governor" in policy})
    boards = [
        str(entry.get("name") or f"{entry.get('vendor')}:{entry.get('device')}")
        for entry in machine.get("graphics", ())
    ]
    lines = {
        "processor": _joined(machine, ("cpu",), machine.get("processor", {}), ("cores", "threads", "microcode")),
        "memory": _gib(machine.get("memory", {}).get("gib")),
        "system": _joined(configuration, ("os",), configuration.get("kernel", {}), ("release", "build")),
        "power": _joined(
            {"governor": ", ".join(governors) or None}, ("governor",), power, ("turbo", "source", "platform_profile")
        ),
        "limits": _joined(
            {"container": limits.get("container")},
            ("container",),
            limits,
            ("processors_allowed", "cgroup_processors", "cgroup_memory_mib"),
        ),
        "graphics": ", ".join(boards),
        "drivers": ", ".join(f"{k} {v}" for k, v in configuration.get("drivers", {}).items() if isinstance(v, str)),
    }
    facts = [Finding("environment", name, None, text) for name, text in lines.items() if text]
    return [Finding("environment", "digest", None, found.digest[:16]), *facts]


def disturbance() -> list[Finding]:
    """What else goes on in the next second, by the same eyes and thresholds as in a run."""
    from harness.conditions import watch
    from harness.judgement.disturbance import flags_of

    noisy = _NoisyProcesses()
    with watch() as watching:
        watching.follow(os.getpid())
        time.sleep(LOOK_S)
    conditions = watching.conditions()
    flags = [flag for flag in flags_of([conditions]) if flag.code != "cgroup_throttled" or _stopped(conditions)]
    verified = sys.platform == "linux"
    if not flags:
        share = conditions.get("other_load")
        text = "nothing disturbs it now" if share is None else f"nothing disturbs it now (other load {share:.0%})"
        found = [Finding("quiet", "now", True, text, verified=verified)]
    else:
        found = []
        for flag in flags:
            text = flag.message.replace(", in 1 of 1 trials", " in the last second")
            if flag.code == "other_load" and (names := noisy.names()):
                text += f" Most of it: {', '.join(names)}."
            fix = "A run now would carry this flag; end what can be ended, or wait."
            found.append(Finding("quiet", flag.code, None, text, fix, verified))
    for name, why in sorted(conditions.get("unavailable", {}).items()):
        found.append(Finding("quiet", name, None, f"not watched: {why}", verified=verified))
    return found


def preparation(folder: Path | None = None, root: Path | None = None) -> list[Finding]:
    """Put back what a killed run left; say what `weigh run --prepare` could change here."""
    from harness.folders import state_dir
    from harness.preparation import pending, repair, repairing
    from harness.preparation.settings import read, wanted

    folder = folder or state_dir()
    root = root or repairing.ROOT
    said = repair(folder, root)
    left = pending(folder, root)
    found: list[Finding] = []
    if said and left:
        fix = "Run `weigh doctor` again with the rights to change these."
        found.append(Finding("preparation", "repair", False, " ".join(said), fix))
    elif said:
        found.append(Finding("preparation", "repair", True, " ".join(said)))
    elif left:
        names = ", ".join(entry.name for entry in left)
        found.append(Finding("preparation", "in use", None, f"A run has prepared this machine now: {names}."))
    settings, refused = wanted(root, turbo_off=True)
    able, unable, done = [], [f"{name} ({why})" for name, why in refused.items()], []
    for setting in settings:
        now = read(root, setting.path)
        if now == setting.value:
            done.append(setting.name)
        elif os.access(root / setting.path, os.W_OK):
            able.append(f"{setting.name} from {now} to {setting.value}")
        else:
            unable.append(f"{setting.name} (it takes root)")
    _process_settings(able, unable, done, root)
    parts = [
        f"could change {'; '.join(_grouped(able))}" if able else "finds nothing to change",
        f"Not possible: {'; '.join(_grouped(unable))}" if unable else "",
        f"As wanted already: {'; '.join(_grouped(done))}" if done else "",
    ]
    text = f"`weigh run --prepare` {'. '.join(part for part in parts if part)}."
    # Frequency control was never seen on real hardware by the authors' tests, only as constructed files.
    found.append(
        Finding("preparation", "settings", None, text, verified=not any("governor of" in s.name for s in settings))
    )
    return found


def _process_settings(able: list[str], unable: list[str], done: list[str], root: Path) -> None:
    """The workers' own processors and priority, which need no file."""
    from harness.preparation.process import NICE, quiet_processors

    if hasattr(os, "sched_getaffinity"):
        allowed = os.sched_getaffinity(0)
        chosen = quiet_processors(allowed, root) & allowed
        named = ",".join(str(number) for number in sorted(chosen))
        (done if chosen == allowed else able).append(f"the workers' processors to {named}")
    if hasattr(os, "geteuid"):
        (able if os.geteuid() == 0 else unable).append(
            f"the workers' priority to {NICE}{'' if os.geteuid() == 0 else ' (it takes root or CAP_SYS_NICE)'}"
        )


class _NoisyProcesses:
    """Who uses the processors between its making and `names`. Only shown here; names are never stored."""

    def __init__(self) -> None:
        self._before = self._times()

    def names(self) -> list[str]:
        after = self._times()
        used = {
            pid: (name, seconds - self._before.get(pid, (name, seconds))[1])
            for pid, (name, seconds) in after.items()
            if pid != os.getpid()
        }
        ranked = sorted(used.items(), key=lambda item: item[1][1], reverse=True)
        return [f"{name} (process {pid})" for pid, (name, seconds) in ranked[:NOISY_PROCESSES] if seconds >= 0.05]

    @staticmethod
    def _times() -> dict[int, tuple[str, float]]:
        import psutil

        found = {}
        for process in psutil.process_iter(("name", "cpu_times")):
            times = process.info["cpu_times"]
            if times is not None:
                found[process.pid] = (str(process.info["name"]), float(times.user + times.system))
        return found


def _stopped(conditions: Mapping[str, Any]) -> bool:
    return bool(conditions.get("cgroup", {}).get("throttled_s", 0.0) >= 0.001)


def _grouped(names: list[str]) -> list[str]:
    """Say once what holds for every frequency policy: "governor of 8 policies"."""
    import re

    seen: dict[str, int] = {}
    for name in names:
        key = re.sub(r" of policy\d+", " of {}", name)
        seen[key] = seen.get(key, 0) + 1
    return [key.replace("{}", f"{count} {'policies' if count > 1 else 'policy'}") for key, count in seen.items()]


def _joined(first: Mapping[str, Any], names: tuple[str, ...], second: Mapping[str, Any], more: tuple[str, ...]) -> str:
    words = [str(first[name]) for name in names if first.get(name)]
    words += [f"{name.replace('_', ' ')} {_number(second[name])}" for name in more if second.get(name) is not None]
    return ", ".join(words)


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _gib(value: Any) -> str:
    return "" if value is None else f"{_number(value)} GiB"
