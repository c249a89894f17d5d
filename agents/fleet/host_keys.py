"""Host keys: pinning a device's, and giving the pinned one to a connection.

Only ed25519, only this product's own file: a second key type, or the user's known_hosts, would let another key through.
"""

from __future__ import annotations

import os
from pathlib import Path

import paramiko

from agents.fleet.inventory import FleetDevice
from harness.errors import TransportError

KEY_TYPE = "ssh-ed25519"


def entry_name(host: str, port: int) -> str:
    """Return the host as known_hosts spells it."""
    return host if port == 22 else f"[{host}]:{port}"


def pin_key(device: FleetDevice, key: paramiko.PKey, known_hosts: Path) -> None:
    """Write the key into this product's known_hosts, in place of an older one for the same address."""
    hosts = _load(known_hosts)
    name = entry_name(device.host, device.port)
    if name in hosts:
        del hosts[name]
    hosts.add(name, KEY_TYPE, key)
    try:
        known_hosts.parent.mkdir(parents=True, exist_ok=True)
        part = known_hosts.with_name(f"{known_hosts.name}.{os.getpid()}.part")
        hosts.save(str(part))
        os.replace(part, known_hosts)
    except OSError as error:
        raise TransportError(f"{known_hosts} cannot be written: {error.strerror or error}.") from error


def pinned_key(device: FleetDevice, known_hosts: Path) -> paramiko.PKey:
    """Return the one host key that `device` may show.

    Two files must agree: the key in known_hosts and the fingerprint in the fleet file. Raises TransportError otherwise.
    """
    name = entry_name(device.host, device.port)
    known = _load(known_hosts).lookup(name)
    key = known.get(KEY_TYPE) if known is not None else None
    if key is None:
        raise TransportError(
            f"The host key of {device.name} is not pinned in {known_hosts}.",
            f"Run `weigh fleet enroll --replace-key {device.name}` and compare the fingerprint.",
        )
    if key.fingerprint != device.fingerprint:
        raise TransportError(
            f"The key of {device.name} in {known_hosts} ({key.fingerprint}) is not the one in the fleet file "
            f"({device.fingerprint}).",
            f"Check the key on the device, then run `weigh fleet enroll --replace-key {device.name}`.",
        )
    return key


def _load(known_hosts: Path) -> paramiko.HostKeys:
    hosts = paramiko.HostKeys()
    if known_hosts.exists():
        try:
            hosts.load(str(known_hosts))
        except (OSError, ValueError, paramiko.SSHException) as error:
            raise TransportError(f"{known_hosts} cannot be read: {error}.") from error
    return hosts
