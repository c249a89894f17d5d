"""What the schedulers are given: systemd service and timer, launchd property list, cron entry. Pure text, no system touched.

A unit holds addresses and paths, never a secret: tokens and passwords come from files with mode 0600.
"""

from __future__ import annotations

import plistlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agents.fleet.schedule_calendar import Calendar, cron_fields, on_calendar, start_calendar_interval

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
DELAY = "15min"  # spreads many devices that share a server; short enough to keep the night


@dataclass(frozen=True)
class Repeated:
    """What is repeated: commands one after the other, the next only when the one before succeeded."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    calendar: Calendar
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Path | None = None  # a file of NAME=value lines with mode 0600, read by systemd where it exists

    @property
    def unit(self) -> str:
        """The unit's name, without an ending."""
        return f"weighbridge-{self.name}"


def systemd_units(repeated: Repeated, user: str | None = None) -> dict[str, str]:
    """Return file name -> text of the service and its timer. `user` is for units of the system manager."""
    service = [
        "[Unit]",
        f"Description=Weighbridge: {repeated.name}",
        "",
        "[Service]",
        "Type=oneshot",
        *([f"User={user}"] if user else []),
        *(f"Environment={_systemd_quoted(f'{name}={value}')}" for name, value in sorted(repeated.environment.items())),
        *([f"EnvironmentFile=-{_systemd_path(repeated.secrets)}"] if repeated.secrets else []),
        *(f"ExecStart={' '.join(map(_systemd_argument, command))}" for command in repeated.commands),
    ]
    timer = [
        "[Unit]",
        f"Description=Weighbridge: when to run {repeated.name}",
        "",
        "[Timer]",
        f"OnCalendar={on_calendar(repeated.calendar).replace('%', '%%')}",
        # A machine that was off at the time runs it when it is on again.
        "Persistent=true",
        f"RandomizedDelaySec={DELAY}",
        f"Unit={repeated.unit}.service",
        "",
        "[Install]",
        "WantedBy=timers.target",
    ]
    return {f"{repeated.unit}.service": "\n".join(service) + "\n", f"{repeated.unit}.timer": "\n".join(timer) + "\n"}


def launchd_label(name: str) -> str:
    """Return the job's label, which is also its file's name."""
    return f"org.weighbridge.{name}"


def launchd_plist(repeated: Repeated, logs: Path) -> bytes:
    """Return the property list of a launchd job. A Mac that slept at the time runs it when it wakes."""
    return plistlib.dumps(
        {
            "Label": launchd_label(repeated.name),
            # launchd knows one command; a shell joins several, every word of them quoted.
            "ProgramArguments": list(repeated.commands[0])
            if len(repeated.commands) == 1
            else ["/bin/sh", "-c", shell_line(repeated.commands)],
            "EnvironmentVariables": dict(repeated.environment),
            "StartCalendarInterval": start_calendar_interval(repeated.calendar),
            "StandardOutPath": str(logs / f"{repeated.unit}.log"),
            "StandardErrorPath": str(logs / f"{repeated.unit}.log"),
            "ProcessType": "Interactive",  # the default, "Standard", is throttled: that would be measured
        }
    )


def cron_entry(repeated: Repeated) -> str:
    """Return one line for a crontab. In it, '%' would end the command."""
    words = [f"{name}={shlex.quote(value)}" for name, value in sorted(repeated.environment.items())]
    lines = " && ".join(" ".join([*words, shlex.join(command)]) for command in repeated.commands)
    return f"{cron_fields(repeated.calendar)} {lines}".replace("%", "\\%")


def merged_crontab(existing: str, name: str, entry: str | None) -> str:
    """Return a crontab with this schedule's block put in, replaced, or (None) taken out; all else stays as it is."""
    begin, end = f"# begin weighbridge-{name}", f"# end weighbridge-{name}"
    kept: list[str] = []
    inside = False
    for line in existing.splitlines():
        inside = inside or line == begin
        if not inside:
            kept.append(line)
        if line == end:
            inside = False
    if entry is not None:
        kept += [begin, entry, end]
    return "\n".join(kept) + "\n" if kept else ""


def shell_line(commands: Sequence[Sequence[str]]) -> str:
    """Join commands so that a shell runs the next one only when the one before succeeded."""
    return " && ".join(shlex.join(command) for command in commands)


def _systemd_argument(word: str) -> str:
    """Quote one word of ExecStart by systemd's rules: C escapes, '%' is a specifier, '$' a variable."""
    return _systemd_quoted(word).replace("$", "$$")


def _systemd_quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if re.search(r"[^A-Za-z0-9/._:=@+,%-]", word) or not word else escaped


def _systemd_path(path: Path) -> str:
    return str(path).replace("%", "%%")
