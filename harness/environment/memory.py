"""Memory: size, huge pages and swap; and, where the firmware tells it, what modules there are.

Sources: proc_meminfo(5), admin-guide/mm/transhuge.rst, SMBIOS 3.7 section 7.18 (memory device).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from harness.environment.processor import rounded_gib
from harness.environment.reading import System, chosen, pairs, text, without_nothing

THP = "sys/kernel/mm/transparent_hugepage"
DMI_TYPES = {
    0x18: "DDR3",
    0x1A: "DDR4",
    0x1D: "LPDDR3",
    0x1E: "LPDDR4",
    0x20: "HBM",
    0x21: "HBM2",
    0x22: "DDR5",
    0x23: "LPDDR5",
}


def memory(system: System) -> dict[str, Any]:
    """What is built in: the memory blocks that are switched on, or MemTotal, which lacks the kernel's own reserve and, in a
    virtual machine, what a balloon has taken for now."""
    total = _blocks_bytes(system)
    if total is None:
        kilobytes = _kilobytes(pairs(system.path("proc/meminfo")), "MemTotal")
        total = None if kilobytes is None else kilobytes * 1024
    return without_nothing({"gib": rounded_gib(total) if total else None, "kinds": _kinds(system)})


def paging(system: System) -> dict[str, Any]:
    """How the kernel is set to use it."""
    meminfo = pairs(system.path("proc/meminfo"))
    swap = _kilobytes(meminfo, "SwapTotal")
    huge = meminfo.get("HugePages_Total", "")
    return without_nothing(
        {
            "transparent_huge_pages": chosen(system.path(f"{THP}/enabled")),
            "transparent_huge_pages_defrag": chosen(system.path(f"{THP}/defrag")),
            "huge_pages": int(huge) if huge.isdigit() else None,
            "huge_page_size": meminfo.get("Hugepagesize"),
            "swap_gib": None if swap is None else rounded_gib(swap * 1024),
            "swappiness": system.integer("proc/sys/vm/swappiness"),
            "overcommit": system.integer("proc/sys/vm/overcommit_memory"),
        }
    )


def modules(system: System) -> dict[str, int]:
    """Memory modules as "16 GiB DDR5 at 4800 MT/s": how many. Firmware tells this to root only, so that it stands among the
    conditions: a digest must not depend on who asks. Makers, part and serial numbers are not read."""
    found: Counter[str] = Counter()
    for entry in sorted(system.root.glob("sys/firmware/dmi/entries/17-*/raw")):
        try:
            raw = entry.read_bytes()
        except OSError:
            continue
        described = _module(raw)
        if described:
            found[described] += 1
    return dict(sorted(found.items()))


def _module(raw: bytes) -> str | None:
    """Decode a memory device: size at 0x0C (MiB, or KiB with bit 15), type at 0x12, configured speed at 0x20."""
    if len(raw) < 0x22 or raw[0] != 17:
        return None
    size = int.from_bytes(raw[0x0C:0x0E], "little")
    if size == 0x7FFF and len(raw) >= 0x20:
        mib = int.from_bytes(raw[0x1C:0x20], "little") & 0x7FFFFFFF
    else:
        mib = (size & 0x7FFF) // 1024 if size & 0x8000 else size
    if size in (0, 0xFFFF):
        return None  # an empty slot, or unknown
    speed = int.from_bytes(raw[0x20:0x22], "little") or int.from_bytes(raw[0x15:0x17], "little")
    kind = DMI_TYPES.get(raw[0x12])
    words = [
        f"{mib / 1024:g} GiB",
        *([kind] if kind else []),
        *([f"at {speed} MT/s"] if speed not in (0, 0xFFFF) else []),
    ]
    return " ".join(words)


def _blocks_bytes(system: System) -> int | None:
    """Memory blocks of admin-guide/mm/memory-hotplug.rst; their size is hexadecimal."""
    folder = system.path("sys/devices/system/memory")
    online = sum(1 for state in folder.glob("memory[0-9]*/state") if text(state) == "online")
    try:
        return online * int(text(folder / "block_size_bytes"), 16) or None
    except ValueError:
        return None


def _kinds(system: System) -> list[str]:
    """Memory types that the kernel's error detection tells to everybody ("Unbuffered-DDR4")."""
    files = system.root.glob("sys/devices/system/edac/mc/mc*/*/dimm_mem_type")
    return sorted({text(path) for path in files} - {""})


def _kilobytes(meminfo: dict[str, str], name: str) -> int | None:
    number = meminfo.get(name, "").split(" ")[0]
    return int(number) if number.isdigit() else None
