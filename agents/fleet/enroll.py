"""Enrolling a device: see its host key, have a person compare it, pin it. Bootstrap and runs trust nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agents.fleet.connecting import look_at_key
from agents.fleet.host_keys import pin_key
from agents.fleet.inventory import (
    HOST,
    NAME,
    USER,
    FleetDevice,
    add_device,
    known_hosts_file,
    read_fleet,
    replace_fingerprint,
)
from agents.fleet.transport import Connection
from harness.errors import NotDone, TransportError, UsageError

_ADDRESS = re.compile(r"(?P<user>[^@]+)@(?P<host>\[[^\]]+\]|[^:@\[\]]+)(?::(?P<port>\d{1,5}))?")

Ask = Callable[[FleetDevice], bool]


def device_at(name: str, address: str) -> FleetDevice:
    """Return a device, not pinned yet, for "user@host[:port]". Raises UsageError."""
    found = _ADDRESS.fullmatch(address)
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a device's name.", "Use up to 63 letters, digits, '.', '_' and '-'.")
    host = found["host"].strip("[]") if found else ""
    port = int(found["port"] or 22) if found else 0
    if found is None or not USER.fullmatch(found["user"]) or not HOST.fullmatch(host) or not 0 < port < 65536:
        raise UsageError(f"{address!r} is not an SSH address.", "Write it as user@host or user@host:port.")
    return FleetDevice(name=name, host=host, user=found["user"], port=port, fingerprint="")


def enroll(fleet_path: Path, device: FleetDevice, ask: Ask, expected: str | None = None) -> FleetDevice:
    """Pin a new device's host key, after `ask` (or the fingerprint given beforehand) has confirmed it.

    Raises NotDone when it is not confirmed, TransportError when the device shows another key than `expected`.
    """
    if any(known.name == device.name for known in read_fleet(fleet_path).devices):
        raise UsageError(
            f"{fleet_path} has a device {device.name!r} already.",
            f"For a changed host key: `weigh fleet enroll --replace-key {device.name}`.",
        )
    return _pinned(fleet_path, device, ask, expected, lambda confirmed: add_device(fleet_path, confirmed))


def replace_key(fleet_path: Path, name: str, ask: Ask, expected: str | None = None) -> FleetDevice:
    """Pin the host key that a known device shows now, after it was confirmed."""
    device = read_fleet(fleet_path).named(name)
    return _pinned(
        fleet_path, device, ask, expected, lambda new: replace_fingerprint(fleet_path, name, new.fingerprint)
    )


def check_login(fleet_path: Path, device: FleetDevice) -> str | None:
    """Try to log in. Returns None when that works, else the sentence why not."""
    try:
        with Connection(device, known_hosts_file(fleet_path)) as connection:
            connection.run(["true"])
            return None
    except TransportError as error:
        return str(error)


def _pinned(
    fleet_path: Path, device: FleetDevice, ask: Ask, expected: str | None, write: Callable[[FleetDevice], None]
) -> FleetDevice:
    key = look_at_key(device)
    found: FleetDevice = replace(device, fingerprint=key.fingerprint)
    if expected is not None and expected != found.fingerprint:
        raise TransportError(
            f"{device.name} ({device.address}) shows the host key {found.fingerprint}, not {expected}: nothing was changed.",
            "Look at the key on the device itself: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
        )
    if expected is None and not ask(found):
        raise NotDone(f"{device.name} was not enrolled: its host key was not confirmed.")
    # known_hosts first: a kill in between leaves a key that nobody uses, not a device without a key.
    pin_key(found, key, known_hosts_file(fleet_path))
    write(found)
    return found
