"""What the firmware calls the machine, and its version. Serial numbers and asset tags beside these are never read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from harness.environment.reading import System, text, without_nothing

DMI = "sys/class/dmi/id"
MEANINGLESS = ("To Be Filled By O.E.M.", "Default string", "System Product Name", "Not Specified", "None")


def board_name(root: Path = Path("/"), system: System | None = None) -> str | None:
    """What the firmware calls the whole machine: device tree model (boards) or DMI vendor and product; None if silent."""
    system = system or (System.here() if root == Path("/") else System.recorded(root))
    model = system.text("proc/device-tree/model")
    if model:
        return model
    if system.kind == "Darwin":
        return system.run(("/usr/sbin/sysctl", "-n", "hw.model"))
    names = [system.text(f"{DMI}/{key}") for key in ("sys_vendor", "product_name")]
    return " ".join(name for name in names if name) or None


def firmware(system: System) -> dict[str, Any]:
    """Versions and dates of the firmware: BIOS, a Raspberry Pi's boot EEPROM, embedded controller."""
    names = (
        "bios_vendor",
        "bios_version",
        "bios_date",
        "bios_release",
        "ec_firmware_release",
        "board_vendor",
        "board_name",
    )
    dmi = {name: system.text(f"{DMI}/{name}") for name in names}
    eeprom = system.path("proc/device-tree/chosen/bootloader")
    return without_nothing(
        {
            **{name: value for name, value in dmi.items() if value not in MEANINGLESS},
            "raspberry_pi_eeprom": text(eeprom / "version"),
            "raspberry_pi_eeprom_date": _stamp(eeprom / "build-timestamp"),
            "raspberry_pi_revision": _revision(system),
            "u_boot": text(system.path("proc/device-tree/chosen/u-boot,version")),
        }
    )


def _stamp(path: Path) -> int | None:
    """A big-endian cell of the device tree: seconds since 1970."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return int.from_bytes(data[:4], "big") if len(data) >= 4 else None


def _revision(system: System) -> str | None:
    """A Pi's revision code: model, memory, maker, board revision. The line after it is the serial number, and not read."""
    found = re.search(r"^Revision\s*:\s*([0-9a-fA-F]{4,8})\s*$", system.text("proc/cpuinfo"), re.MULTILINE)
    return found[1] if found else None
