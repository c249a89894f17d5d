"""Putting schedules where the schedulers look, and taking them away again. Enabling is left to the operator, and said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from agents.fleet.schedule_calendar import on_calendar
from agents.fleet.schedule_units import (
    Repeated,
    cron_entry,
    launchd_label,
    launchd_plist,
    merged_crontab,
    systemd_units,
)
from agents.fleet.user import user_name
from harness.errors import NotDone, UsageError
from harness.folders import config_dir, state_dir

Kind = Literal["systemd", "launchd", "cron"]
KINDS: tuple[Kind, ...] = ("systemd", "launchd", "cron")
_KEPT = ("WEIGHBRIDGE_DATA", "WEIGHBRIDGE_CACHE", "WEIGHBRIDGE_CONFIG", "WEIGHBRIDGE_STATE", "WEIGHBRIDGE_FLEET")
_KEPT_TOO = ("WEIGHBRIDGE_DEVICE", "WEIGHBRIDGE_TOKEN_FILE")
SYSTEM_UNITS = Path("/etc/systemd/system")


@dataclass(frozen=True)
class Place:
    """Which scheduler, and whose: the user's own, or the machine's."""

    kind: Kind
    system: bool = False


def default_kind() -> Kind:
    """Return this machine's own scheduler."""
    if sys.platform == "darwin":
        return "launchd"
    return "systemd" if shutil.which("systemctl") else "cron"


def environment_for(store: str) -> dict[str, str]:
    """Return what a scheduled command must know of this environment. Raises UsageError for a store with a password."""
    from db.store import has_password

    found = {name: value for name in (*_KEPT, *_KEPT_TOO) if (value := os.environ.get(name))}
    http = store.startswith(("http://", "https://"))
    if urlsplit(store).password if http else has_password(store):
        raise UsageError(
            "The store's address holds a password, which must not stand in a unit file.",
            f"Leave it out of the address and set PGPASSWORD in {secrets_file()} (mode 0600), or use ~/.pgpass.",
        )
    return {**found, "WEIGHBRIDGE_STORE": store}


def secrets_file() -> Path:
    """Return the file of NAME=value lines that systemd reads for scheduled runs, where it exists."""
    return config_dir() / "schedule.env"


def rendered(repeated: Repeated, place: Place) -> dict[str, str]:
    """Return what would be installed: file name -> text."""
    if place.kind == "systemd":
        return systemd_units(repeated, user_name() if place.system else None)
    if place.kind == "launchd":
        name = f"{launchd_label(repeated.name)}.plist"
        return {name: launchd_plist(repeated, state_dir() / "logs").decode()}
    return {"crontab": cron_entry(repeated) + "\n"}


def folder_of(place: Place) -> Path | None:
    """Return where the scheduler looks for files; None for cron, whose tables are its own."""
    if place.kind == "systemd":
        own = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        return SYSTEM_UNITS if place.system else own / "systemd" / "user"
    if place.kind == "launchd":
        return Path("/Library/LaunchDaemons") if place.system else Path.home() / "Library" / "LaunchAgents"
    return None


def install(repeated: Repeated, place: Place) -> list[str]:
    """Write the schedule. Returns what was written and what the operator does next, as lines for people.

    Raises UsageError when systemd does not understand the calendar, NotDone when the place cannot be written.
    """
    if place.kind == "systemd":
        check_on_calendar(on_calendar(repeated.calendar))
    files = rendered(repeated, place)
    folder = folder_of(place)
    if folder is None:
        _write_crontab(merged_crontab(_read_crontab(), repeated.name, files["crontab"].rstrip("\n")))
        return ["Written to your crontab (crontab -l). It runs without more ado. Logs: cron mails what is said."]
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if place.kind == "launchd":
            (state_dir() / "logs").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            part = folder / f".{name}.part"
            part.write_text(text, encoding="utf-8")
            os.replace(part, folder / name)
            written.append(f"Written: {folder / name}")
    except OSError as error:
        hint = "Run it with sudo, or without --system." if place.system else "See --print for the text."
        raise NotDone(f"{folder} cannot be written: {error.strerror or error}.", hint) from error
    return [*written, *next_steps(repeated, place)]


def next_steps(repeated: Repeated, place: Place) -> list[str]:
    """Return the commands that enable what was installed."""
    if place.kind == "systemd":
        scope = "sudo systemctl" if place.system else "systemctl --user"
        lines = [
            "Enable it:",
            f"  {scope} daemon-reload",
            f"  {scope} enable --now {repeated.unit}.timer",
            f"See it:  {scope} list-timers {repeated.unit}.timer",
        ]
        if not place.system:
            lines.append(f"To run while nobody is logged in:  sudo loginctl enable-linger {user_name()}")
        return lines
    label = launchd_label(repeated.name)
    folder = folder_of(place)
    domain = "system" if place.system else "gui/$(id -u)"
    return [
        "Enable it:",
        f"  launchctl bootstrap {domain} {folder}/{label}.plist",
        f"See it:  launchctl print {domain}/{label}",
    ]


def installed(place: Place, name: str | None = None) -> dict[str, str]:
    """Return what is installed at a place: file -> text, of one schedule or of all."""
    folder = folder_of(place)
    if folder is None:
        return {f"crontab: {key}": text for key, text in _blocks(_read_crontab()).items() if name in (None, key)}
    pattern = "weighbridge-*.*" if place.kind == "systemd" else "org.weighbridge.*.plist"
    stems = None if name is None else (f"weighbridge-{name}", launchd_label(name))
    found = sorted(path for path in folder.glob(pattern) if stems is None or path.stem in stems)
    return {str(path): path.read_text(encoding="utf-8") for path in found}


def remove(name: str, place: Place) -> list[str]:
    """Take a schedule away. Returns lines for people. Raises UsageError when there is none of that name."""
    found = installed(place, name)
    if not found:
        raise UsageError(f"There is no schedule {name!r} in {place.kind}.", "See `weigh schedule show`.")
    if place.kind == "cron":
        _write_crontab(merged_crontab(_read_crontab(), name, None))
        return ["Taken out of your crontab."]
    try:
        for path in found:
            Path(path).unlink()
    except OSError as error:
        raise NotDone(f"{error.filename} cannot be removed: {error.strerror}.", "Run it with sudo?") from error
    if place.kind == "systemd":
        scope = "sudo systemctl" if place.system else "systemctl --user"
        after = [f"Stop it as well:  {scope} disable --now weighbridge-{name}.timer && {scope} daemon-reload"]
    else:
        domain = "system" if place.system else "gui/$(id -u)"
        after = [f"Stop it as well:  launchctl bootout {domain}/{launchd_label(name)}"]
    return [*(f"Removed: {path}" for path in found), *after]


def check_on_calendar(expression: str) -> None:
    """Ask systemd itself whether it understands the expression, where it is installed. Raises UsageError."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return
    done = subprocess.run(
        [analyze, "calendar", "--", expression], capture_output=True, text=True, timeout=20, check=False
    )
    if done.returncode != 0:
        said = " ".join(done.stderr.split())
        raise UsageError(f"systemd does not understand the calendar {expression!r}: {said}", "See man systemd.time.")


def _blocks(crontab: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name: str | None = None
    for line in crontab.splitlines():
        if line.startswith("# begin weighbridge-"):
            name = line.removeprefix("# begin weighbridge-")
            found[name] = ""
        elif line.startswith("# end weighbridge-"):
            name = None
        elif name is not None:
            found[name] += line + "\n"
    return found


def _crontab() -> str:
    path = shutil.which("crontab")
    if path is None:
        raise NotDone("There is no crontab command on this machine.", "Install cron, or use --kind systemd or --print.")
    return path


def _read_crontab() -> str:
    done = subprocess.run([_crontab(), "-l"], capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0 and "no crontab" not in done.stderr.lower():
        raise NotDone(f"The crontab cannot be read: {' '.join(done.stderr.split())}.")
    return done.stdout if done.returncode == 0 else ""


def _write_crontab(text: str) -> None:
    done = subprocess.run([_crontab(), "-"], input=text, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        raise NotDone(f"The crontab was not changed: {' '.join(done.stderr.split())}.")
