"""Who this device is: a name given by a person and a UUID made once, both kept in the data folder.

The UUID is bound to the machine's own id: a folder that was copied to another machine (a cloned SD card) is noticed, because
one UUID must never stand for two machines.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import uuid
from pathlib import Path
from typing import Any

from harness.canonical import sha256_hex
from harness.configuration import load_configuration
from harness.environment import board_name, cpu_name, hypervisor
from harness.errors import UsageError, WeighbridgeError
from harness.folders import data_dir
from harness.records import ComputeUnit, Device

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def this_device(root: Path = Path("/")) -> Device:
    """Return this machine as a Device; makes its identity file at the first call.

    The name comes from WEIGHBRIDGE_DEVICE, the configuration's `device.name`, or the host name, in this order.
    Raises UsageError when the name is not a name, or when the identity was made on another machine.
    """
    identity = _identity(data_dir() / "device.json", root)
    name = os.environ.get("WEIGHBRIDGE_DEVICE") or load_configuration().device_name or platform.node() or "device"
    if not NAME_PATTERN.fullmatch(name):
        raise UsageError(
            f"The device name {name!r} is not usable.",
            "Use up to 63 letters, digits, '.', '_' and '-'; set it as `device.name` in the configuration file.",
        )
    cpu = cpu_name(root)
    virtual = hypervisor(root) is not None
    board = board_name(root)
    return Device(
        name=name,
        uuid=identity["uuid"],
        hardware_model=board or cpu,
        form="virtual machine" if virtual else None,
        compute_units=(
            ComputeUnit(
                name="cpu",
                kind="cpu",
                hardware_model=f"{cpu} ({os.cpu_count()} vCPU)" if virtual else cpu,
                vendor=_vendor(cpu),
            ),
        ),
    )


def _identity(path: Path, root: Path) -> dict[str, Any]:
    machine = _machine_digest(root)
    try:
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if str(uuid.UUID(known["uuid"])) != known["uuid"]:
            raise ValueError("its uuid is not written in the usual lower-case form")
    except FileNotFoundError:
        known = _made(path, {"uuid": str(uuid.uuid4()), "machine": machine})
    except OSError as error:
        raise WeighbridgeError(
            f"The device identity {path} cannot be read: {error.strerror or error}.",
            "Make it readable, or set WEIGHBRIDGE_DATA to another folder.",
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"The device identity {path} is damaged ({error}).", "Restore it, or remove it to make this a new device."
        ) from error
    if known.get("machine") and machine and known["machine"] != machine:
        raise UsageError(
            f"The device identity {path} was made on another machine: one device may not stand for two.",
            "If this is a clone, remove that file to make this a device of its own.",
        )
    return known


def _made(path: Path, identity: dict[str, Any]) -> dict[str, Any]:
    """Write a new identity and return it; of two first runs at once, one identity wins and both use it."""
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_text(json.dumps(identity), encoding="utf-8")
            os.link(part, path)  # unlike replace(), it lets the first one win
        except FileExistsError:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise WeighbridgeError(
            f"This device's identity cannot be written to {path}: {error.strerror or error}.",
            "Free some space there, or set WEIGHBRIDGE_DATA to a folder that can be written.",
        ) from error
    return identity


def _machine_digest(root: Path) -> str | None:
    """SHA-256 of the machine's own id (so that the id itself is not stored); None where the system has none."""
    for candidate in ("proc/device-tree/serial-number", "etc/machine-id", "var/lib/dbus/machine-id"):
        try:
            text = (root / candidate).read_text(encoding="utf-8", errors="replace").strip("\0\n ")
        except OSError:
            continue
        if text:
            return sha256_hex(text.encode())
    if sys.platform == "darwin":
        return sha256_hex(str(uuid.getnode()).encode())
    return None


def _vendor(cpu: str) -> str | None:
    known = {"intel": "Intel", "amd": "AMD", "apple": "Apple", "cortex": "Arm", "raspberry": "Broadcom"}
    return next((vendor for word, vendor in known.items() if word in cpu.lower()), None)
