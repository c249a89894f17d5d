"""The fleet file: which devices this control host commands, and the host key that each must show.

`fleet.toml` lies in the configuration folder (WEIGHBRIDGE_FLEET or `--fleet` name another one). It holds no secrets:
keys are named by path, passwords are not supported. `weigh fleet enroll` writes it; people may edit it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from harness.errors import UsageError
from harness.folders import config_dir
from harness.toml_files import TomlFile, read_toml

FLEET_VARIABLE = "WEIGHBRIDGE_FLEET"
KEYS = ("name", "host", "port", "user", "fingerprint", "key_file", "python", "folder", "environment", "labels")
REQUIRED = ("name", "host", "user", "fingerprint")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
# What may stand in an SSH address; a leading dash or a blank could become an option or a second word somewhere.
HOST = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9._:%-]{0,252}")
USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@\\-]{0,63}")
FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


@dataclass(frozen=True)
class FleetDevice:
    """One device as the fleet file describes it."""

    name: str
    host: str
    user: str
    fingerprint: str  # "SHA256:..." of its ed25519 host key
    port: int = 22
    key_file: Path | None = None  # None: the SSH agent and the user's default keys
    python: str = "python3"  # the interpreter there that `bootstrap` starts from
    folder: str = ".weighbridge"  # where runs and environments lie there; relative: below the user's home
    environment: str | None = None  # an interpreter there that has weighbridge; None: the one that `bootstrap` made
    labels: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """user@host:port, for people."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.user}@{host}:{self.port}"


@dataclass(frozen=True)
class Fleet:
    """All devices of a fleet file, in its order."""

    path: Path
    devices: tuple[FleetDevice, ...] = ()

    def named(self, name: str) -> FleetDevice:
        """Return one device. Raises UsageError that lists the names."""
        for device in self.devices:
            if device.name == name:
                return device
        known = ", ".join(device.name for device in self.devices) or "none yet"
        raise UsageError(
            f"{self.path} has no device {name!r}.",
            f"It has: {known}. Add one with `weigh fleet enroll NAME USER@HOST`.",
        )

    def chosen(self, names: Sequence[str], labels: Sequence[str] = ()) -> tuple[FleetDevice, ...]:
        """Return the named devices and those that have all `labels`; without both, all. Raises UsageError for none."""
        if not names and not labels:
            found = self.devices
        else:
            named = [self.named(name) for name in names]
            labelled = [device for device in self.devices if labels and set(labels) <= set(device.labels)]
            found = tuple(dict.fromkeys((*named, *labelled)))
        if not found:
            asked = f"no device has the labels {', '.join(labels)}" if labels else "there are no devices yet"
            raise UsageError(f"{self.path}: {asked}.", "Add one with `weigh fleet enroll NAME USER@HOST`.")
        return found


def fleet_file(chosen: Path | None = None) -> Path:
    """Return the fleet file's path."""
    named = os.environ.get(FLEET_VARIABLE)
    return chosen or (Path(named).expanduser() if named else config_dir() / "fleet.toml")


def known_hosts_file(fleet: Path) -> Path:
    """Return this product's own known_hosts, beside the fleet file; the user's ~/.ssh/known_hosts is never asked."""
    return fleet.parent / "fleet_known_hosts"


def read_fleet(path: Path) -> Fleet:
    """Read a fleet file strictly; no file is an empty fleet. Raises SuiteError or UsageError with file, line and key."""
    if not path.exists():
        return Fleet(path)
    document = read_toml(path)
    document.check_keys((), document.data, ("device",))
    tables = document.data.get("device", [])
    if not isinstance(tables, list):
        raise document.error(("device",), "devices are written as [[device]] tables.")
    devices = [_device(document, position, table) for position, table in enumerate(tables)]
    seen: set[str] = set()
    for position, device in enumerate(devices):
        if device.name in seen:
            raise document.error(("device", position, "name"), f"the name {device.name!r} is given twice.")
        seen.add(device.name)
    return Fleet(path, tuple(devices))


def add_device(path: Path, device: FleetDevice) -> None:
    """Append a device to the fleet file; what people wrote in it stays as it is. Raises UsageError for a taken name."""
    fleet = read_fleet(path)
    if any(known.name == device.name for known in fleet.devices):
        raise UsageError(
            f"{path} has a device {device.name!r} already.",
            "Choose another name; for a changed host key, use `weigh fleet enroll --replace-key`.",
        )
    lines = ["[[device]]", f"name = {_text(device.name)}", f"host = {_text(device.host)}"]
    if device.port != 22:
        lines.append(f"port = {device.port}")
    lines += [f"user = {_text(device.user)}", f"fingerprint = {_text(device.fingerprint)}"]
    if device.key_file is not None:
        lines.append(f"key_file = {_text(str(device.key_file))}")
    for key in ("python", "folder", "environment"):
        if getattr(device, key) != getattr(FleetDevice, key):
            lines.append(f"{key} = {_text(getattr(device, key))}")
    if device.labels:
        lines.append(f"labels = [{', '.join(_text(label) for label in device.labels)}]")
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    gap = "\n" if before else ""
    _replace(
        path, f"{before}{'' if before.endswith(chr(10)) or not before else chr(10)}{gap}" + "\n".join(lines) + "\n"
    )


def replace_fingerprint(path: Path, name: str, fingerprint: str) -> None:
    """Write a device's new host key fingerprint into its line. Raises UsageError where there is no such device."""
    document = read_toml(path)
    fleet = read_fleet(path)
    position = fleet.devices.index(fleet.named(name))
    line = document.line_of("device", position, "fingerprint")
    assert line is not None
    lines = document.text.splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(fleet.devices[position].fingerprint, fingerprint)
    _replace(path, "".join(lines))


def _device(document: TomlFile, position: int, table: Any) -> FleetDevice:
    here = ("device", position)
    document.check_keys(here, table, KEYS)
    for key in REQUIRED:
        if key not in table:
            raise document.error(here, f"the device has no {key!r}.", REQUIRED)

    def text(key: str, pattern: re.Pattern[str] | None, example: str) -> str:
        value = table[key]
        if (
            not isinstance(value, str)
            or not value.isprintable()
            or not (pattern.fullmatch(value) if pattern else value)
        ):
            raise document.error((*here, key), f"{key} must be written like {example}.")
        return value

    port = table.get("port", 22)
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65536:
        raise document.error((*here, "port"), "port must be a whole number from 1 to 65535.")
    labels = table.get("labels", [])
    if not isinstance(labels, list) or not all(isinstance(item, str) and NAME.fullmatch(item) for item in labels):
        raise document.error((*here, "labels"), 'labels must be a list of words, like ["arm", "kitchen"].')
    more: dict[str, Any] = {}
    for key, example in (
        ("python", '"/usr/bin/python3.12"'),
        ("folder", '".weighbridge"'),
        ("environment", '"/opt/w/bin/python"'),
    ):
        if key in table:
            more[key] = text(key, None, example)
    folder = PurePosixPath(more.get("folder", FleetDevice.folder))
    if ".." in folder.parts or "~" in folder.parts[0]:
        raise document.error((*here, "folder"), "folder must be absolute, or below the home without '~' and '..'.")
    return FleetDevice(
        name=text("name", NAME, '"pi5-kitchen" (up to 63 letters, digits, ".", "_", "-")'),
        host=text("host", HOST, '"192.168.1.20" or "bench.example.org"'),
        user=text("user", USER, '"pi"'),
        fingerprint=text("fingerprint", FINGERPRINT, '"SHA256:..." (43 characters), as `weigh fleet enroll` shows it'),
        port=port,
        key_file=Path(text("key_file", None, '"~/.ssh/id_ed25519"')).expanduser() if "key_file" in table else None,
        labels=tuple(labels),
        **more,
    )


def _text(value: str) -> str:
    """Write a TOML basic string; for printable text JSON's escapes are TOML's."""
    return json.dumps(value, ensure_ascii=False)


def _replace(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}.") from error
