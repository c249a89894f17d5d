"""Opening an SSH connection: a socket that notices a dead peer, the pinned host key only, refusals said in one sentence."""

from __future__ import annotations

import logging
import random
import socket
import time
from pathlib import Path
from typing import Any

import paramiko

from agents.fleet.host_keys import KEY_TYPE, entry_name, pinned_key
from agents.fleet.inventory import FleetDevice
from harness.errors import TransportError

CONNECT_S = 15.0

# paramiko logs tracebacks of what is reported here as one sentence.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


def connect(device: FleetDevice, known_hosts: Path) -> paramiko.SSHClient:
    """Open an SSH connection to `device`, which must show its pinned key before anything is sent to it.

    Raises TransportError, which says who answered, or why nobody did.
    """
    key = pinned_key(device, known_hosts)
    for attempt in (1, 2, 3):
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        client.get_host_keys().add(entry_name(device.host, device.port), KEY_TYPE, key)
        try:
            client.connect(
                device.host,
                device.port,
                username=device.user,
                key_filename=str(device.key_file) if device.key_file else None,
                allow_agent=device.key_file is None,
                look_for_keys=device.key_file is None,
                sock=open_socket(device),
                timeout=CONNECT_S,
                banner_timeout=CONNECT_S,
                auth_timeout=CONNECT_S,
                channel_timeout=CONNECT_S,
                transport_factory=_ed25519_transport,
            )
            return client
        except (OSError, EOFError, paramiko.SSHException) as error:
            client.close()
            # sshd turns connections away before the banner when too many are logging in (MaxStartups).
            if attempt < 3 and "banner" in str(error):
                time.sleep(random.uniform(0.2, 1.0) * attempt)  # noqa: S311 - spreads attempts, guards nothing
                continue
            raise _refusal(device, error) from error
    raise AssertionError("unreachable")


def open_socket(device: FleetDevice) -> socket.socket:
    """Connect, with the kernel told to notice a dead peer: SSH's own keepalive detects nothing. Raises TransportError."""
    try:
        opened = socket.create_connection((device.host, device.port), timeout=CONNECT_S)
    except OSError as error:
        why = "it did not answer in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise TransportError(
            f"{device.name} ({device.address}) cannot be reached: {why}.", "Is it switched on, and sshd running?"
        ) from error
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 20),
        ("TCP_KEEPINTVL", 10),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 60_000),
    ):
        if hasattr(socket, option):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return opened


def _refusal(device: FleetDevice, error: BaseException) -> TransportError:
    place = f"{device.name} ({device.address})"
    if isinstance(error, paramiko.BadHostKeyException):
        return TransportError(
            f"{place} shows the host key {error.key.fingerprint}, not the enrolled {device.fingerprint}: nothing was sent.",
            f"If the device was set up anew, check the key there and run `weigh fleet enroll --replace-key {device.name}`; "
            "otherwise somebody else answers at this address.",
        )
    if isinstance(error, paramiko.PasswordRequiredException):
        return TransportError(f"The key {device.key_file} has a passphrase.", "Add it to the SSH agent with ssh-add.")
    if isinstance(error, paramiko.AuthenticationException):
        key = str(device.key_file) if device.key_file else "any key of the SSH agent or ~/.ssh"
        return TransportError(
            f"{place} refused the login with {key}.",
            f"Put the public key there: ssh-copy-id {device.user}@{device.host}",
        )
    if isinstance(error, FileNotFoundError):
        return TransportError(f"There is no key file {device.key_file} for {device.name}.", "Correct key_file.")
    if "Invalid key" in str(error) or "Incompatible ssh" in str(error) or "no acceptable host key" in str(error):
        return TransportError(
            f"{place} has no ed25519 host key, which is the only kind that is accepted.",
            "On the device: sudo ssh-keygen -A",
        )
    return TransportError(f"{place} cannot be reached by SSH: {str(error) or type(error).__name__}.")


def _ed25519_transport(sock: Any, **options: Any) -> paramiko.Transport:
    transport = paramiko.Transport(sock, **options)
    transport.get_security_options().key_types = (KEY_TYPE,)
    return transport


def look_at_key(device: FleetDevice) -> paramiko.PKey:
    """Return the ed25519 host key that the device shows now. Nothing is sent, nobody logs in. Raises TransportError."""
    opened = open_socket(device)
    transport = None
    try:
        transport = _ed25519_transport(opened)
        transport.banner_timeout = CONNECT_S
        transport.start_client(timeout=CONNECT_S)
        return transport.get_remote_server_key()
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise TransportError(
            f"{device.host} port {device.port} shows no ed25519 host key ({str(error) or type(error).__name__}).",
            "Is it an SSH server? On the device: sudo ssh-keygen -A",
        ) from error
    finally:
        if transport is not None:
            transport.close()
        opened.close()
