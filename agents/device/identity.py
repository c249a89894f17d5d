"""Who this device is: a name given by a person and a UUID made once, both kept in the data folder.

The UUID is bound to the machine's own ids: a folder that was copied to another machine (a cloned SD card) is noticed,
because one UUID must never stand for two machines. The hardware's own id decides where both know one: so a new system on
the same machine is still the same device, and a copied disk in another machine is not.
"""

from __future__ import annotations

import json
import os
import platform
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.device.machine_ids import hardware_ids, system_id
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
    system, hardware = system_id(root), hardware_ids(root)
    try:
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if str(uuid.UUID(known["uuid"])) != known["uuid"]:
            raise ValueError("its uuid is not written in the usual lower-case form")
        bound = {str(name): str(digest) for name, digest in dict(known.get("hardware") or {}).items()}
    except FileNotFoundError:
        bound = hardware
        known = _made(path, {"uuid": str(uuid.uuid4()), "machine": system, "hardware": hardware})
    except OSError as error:
        raise WeighbridgeError(
            f"The device identity {path} cannot be read: {error.strerror or error}.",
            "Make it readable, or set WEIGHBRIDGE_DATA to another folder.",
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"The device identity {path} is damaged ({error}).", "Restore it, or remove it to make this a new device."
        ) from error
    if not _same_machine(bound, hardware, known.get("machine"), system):
        raise UsageError(
            f"The device identity {path} was made on another machine: one device may not stand for two.",
            "If this is a clone, remove that file to make this a device of its own.",
        )
    if set(hardware) - set(bound):  # root is told more than others: from now on that counts too
        _replace(path, {**known, "hardware": {**hardware, **bound}})
    return known


def _same_machine(
    bound: Mapping[str, str], hardware: Mapping[str, str], bound_system: str | None, system: str | None
) -> bool:
    shared = set(bound) & set(hardware)
    if shared:
        return all(bound[name] == hardware[name] for name in shared)
    # The first version kept a board's serial number and a system's id in one place.
    return not (bound_system and system) or bound_system in (system, *hardware.values())


def _replace(path: Path, identity: Mapping[str, Any]) -> None:
    """Write more of the same identity; a folder that cannot be written keeps the old, which still holds."""
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        part.write_text(json.dumps(identity), encoding="utf-8")
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)


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


def _vendor(cpu: str) -> str | None:
    known = {"intel": "Intel", "amd": "AMD", "apple": "Apple", "cortex": "Arm", "raspberry": "Broadcom"}
    return next((vendor for word, vendor in known.items() if word in cpu.lower()), None)
