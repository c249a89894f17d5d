"""What binds an identity to one machine: digests of the identifiers that hardware and system have, never the identifiers.

Hardware's own come first: a board's serial number (device tree), a mainboard's UUID (DMI; root only), a Mac's platform UUID.
The system's id comes with a copied disk and so tells less; it is what most users of a PC may read.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from harness.canonical import sha256_hex
from harness.environment.reading import Command, run_command, text

HARDWARE_FILES = {"serial": "proc/device-tree/serial-number", "dmi": "sys/class/dmi/id/product_uuid"}
SYSTEM_FILES = ("etc/machine-id", "var/lib/dbus/machine-id")
# What firmware says where nobody has set it: many machines share these.
MEANINGLESS = re.compile(
    r"[0-]+|f[f-]*|03000200-0400-0500-0006-000700080009|not settable|none|default string", re.IGNORECASE
)


def hardware_ids(root: Path, run: Command = run_command) -> dict[str, str]:
    """Return digests of the hardware's own identifiers by kind; empty where none is told to this user."""
    found = {name: text(root / path) for name, path in HARDWARE_FILES.items()}
    if sys.platform == "darwin" and root == Path("/"):
        said = run(("/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice")) or ""
        named = re.search(r'"IOPlatformUUID" = "([0-9A-F-]+)"', said)
        found["platform"] = named[1] if named else ""
    return {name: _digest(value) for name, value in found.items() if value and not MEANINGLESS.fullmatch(value)}


def system_id(root: Path) -> str | None:
    """Return the digest of the system's own id; None where it has none."""
    value = next((value for path in SYSTEM_FILES if (value := text(root / path))), "")
    if not value and sys.platform == "win32" and root == Path("/"):
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"SOFTWARE\Microsoft\Cryptography") as key:
                value = str(winreg.QueryValueEx(key, "MachineGuid")[0])
        except OSError:
            value = ""
    return _digest(value) if value else None


def _digest(value: str) -> str:
    return sha256_hex(value.encode())
