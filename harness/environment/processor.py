"""The processor: model, instruction sets, caches, topology, microcode; and which of its faults the kernel works around.

Sources: proc_cpuinfo(5), the kernel's ABI/testing/sysfs-devices-system-cpu and admin-guide/cputopology.rst.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.environment.reading import System, integer, processor_list, text, without_nothing

# What runtimes choose their kernels by, of /proc/cpuinfo's flags (x86) and Features (Arm).
INSTRUCTION_SETS = frozenset((
    "sse4_1", "sse4_2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "avx_vnni", "avx_vnni_int8",
    "avx_ne_convert", "avx_ifma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd", "avx512ifma",
    "avx512vbmi", "avx512_vbmi2", "avx512_vnni", "avx512_bitalg", "avx512_vpopcntdq", "avx512_bf16", "avx512_fp16",
    "avx512_vp2intersect", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16", "avx10", "gfni", "vaes", "asimd",
    "neon", "fphp", "asimdhp", "asimddp", "asimdfhm", "i8mm", "bf16", "sve", "sve2", "svei8mm", "svebf16", "sme",
    "sme2", "fp16", "atomics",
))  # fmt: skip
# Parts of Arm's own design, by MIDR part number (Arm's technical reference manuals; the same as in util-linux's lscpu).
ARM_PARTS = {
    0xD03: "Cortex-A53", 0xD04: "Cortex-A35", 0xD05: "Cortex-A55", 0xD07: "Cortex-A57", 0xD08: "Cortex-A72",
    0xD09: "Cortex-A73", 0xD0A: "Cortex-A75", 0xD0B: "Cortex-A76", 0xD0C: "Neoverse-N1", 0xD0D: "Cortex-A77",
    0xD40: "Neoverse-V1", 0xD41: "Cortex-A78", 0xD42: "Cortex-A78AE", 0xD44: "Cortex-X1", 0xD46: "Cortex-A510",
    0xD47: "Cortex-A710", 0xD48: "Cortex-X2", 0xD49: "Neoverse-N2", 0xD4D: "Cortex-A715", 0xD4E: "Cortex-X3",
    0xD4F: "Neoverse-V2", 0xC07: "Cortex-A7", 0xC0F: "Cortex-A15",
}  # fmt: skip
ARM_DESIGNED = 0x41
CPUS = "sys/devices/system/cpu"


def cpu_name(root: Path = Path("/"), system: System | None = None) -> str:
    """The processor's own name: /proc/cpuinfo or device tree on Linux, sysctl on macOS, else what Python knows."""
    system = system or (System.here() if root == Path("/") else System.recorded(root))
    for line in system.text("proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "Hardware") and value.strip():
            return " ".join(value.split())
    if system.kind == "Darwin":
        found = system.run(("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"))
        if found:
            return found
    return platform.processor() or platform.machine()


def processor(system: System) -> dict[str, Any]:
    """What the processor is. It says nothing of its clock of this moment, and no serial number is read."""
    blocks = _blocks(system.text("proc/cpuinfo"))
    first = blocks[0] if blocks else {}
    flags = set((first.get("flags") or first.get("Features") or "").split())
    return without_nothing(
        {
            "vendor": first.get("vendor_id"),
            "family": first.get("cpu family"),
            "model": first.get("model"),
            "stepping": first.get("stepping"),
            "microcode": first.get("microcode"),
            "cores_by_design": _designs(blocks),
            "instruction_sets": sorted(flags & INSTRUCTION_SETS),
            "caches": caches(system),
            **topology(system),
        }
    )


def caches(system: System) -> list[dict[str, Any]]:
    """Each kind of cache once: level, type, size, by how many processors one is shared, how many there are."""
    seen: dict[tuple[int, str, str], set[str]] = {}
    for index in system.root.glob(f"{CPUS}/cpu[0-9]*/cache/index[0-9]*"):
        level = integer(index / "level")
        if level is not None:
            kind = (level, text(index / "type"), text(index / "size"))
            seen.setdefault(kind, set()).add(text(index / "shared_cpu_list"))
    return [
        {
            "level": level,
            "type": kind,
            "size": size,
            "shared_by": sorted({len(processor_list(one)) for one in shared}),
            "count": len(shared),
        }
        for (level, kind, size), shared in sorted(seen.items())
    ]


def topology(system: System) -> dict[str, Any]:
    """Sockets, cores, threads, SMT, NUMA nodes. A processor that is switched off has no topology and is not counted."""
    cores: set[tuple[str, str, str]] = set()
    sockets: set[str] = set()
    threads = 0
    for folder in system.root.glob(f"{CPUS}/cpu[0-9]*/topology"):
        socket = text(folder / "physical_package_id")
        siblings = text(folder / "core_cpus_list") or text(folder / "thread_siblings_list")
        sockets.add(socket)
        cores.add((socket, text(folder / "core_id"), siblings))
        threads += 1
    nodes = [
        text(node / "cpulist") for node in sorted(system.root.glob("sys/devices/system/node/node[0-9]*"), key=_number)
    ]
    kinds = {
        name: text(system.path(f"sys/devices/{folder}/cpus"))
        for name, folder in (("performance", "cpu_core"), ("efficiency", "cpu_atom"))
    }
    return without_nothing(
        {
            "sockets": len(sockets) or None,
            "cores": len(cores) or None,
            "threads": threads or None,
            "threads_per_core": round(threads / len(cores), 2) if cores else None,
            "numa_nodes": nodes,  # the processors of each
            "kinds_of_cores": without_nothing(kinds),
        }
    )


def mitigations(system: System) -> dict[str, str]:
    """What the kernel does about each fault that it knows of; these cost time, and can be switched off."""
    folder = system.path(f"{CPUS}/vulnerabilities")
    return {path.name: text(path) for path in sorted(folder.glob("*")) if text(path)}


def _blocks(cpuinfo: str) -> list[dict[str, str]]:
    """One dictionary per processor; Arm's common lines at the end belong to none of them and are left out."""
    found: list[dict[str, str]] = []
    for block in cpuinfo.split("\n\n"):
        lines = (line.partition(":") for line in block.splitlines())
        fields = {key.strip(): value.strip() for key, mark, value in lines if mark}
        if "processor" in fields:
            found.append(fields)
    return found


def _designs(blocks: Sequence[dict[str, str]]) -> dict[str, int]:
    """Arm's cores by design, "Cortex-A76 r4p1": how many; a mixed processor has several."""
    found: Counter[str] = Counter()
    for block in blocks:
        try:
            part, maker = int(block["CPU part"], 16), int(block["CPU implementer"], 16)
            revision = f"r{int(block['CPU variant'], 16)}p{int(block['CPU revision'])}"
        except (KeyError, ValueError):
            continue
        known = ARM_PARTS.get(part) if maker == ARM_DESIGNED else None
        found[f"{known or f'implementer 0x{maker:02x} part 0x{part:03x}'} {revision}"] += 1
    return dict(sorted(found.items()))


def rounded_gib(size: int) -> float:
    """Memory to whole GiB, below 4 GiB to quarters: the kernel's own reserve changes the rest from boot to boot."""
    gib = size / 2**30
    return float(round(gib)) if gib >= 4 else round(gib * 4) / 4


def _number(path: Path) -> int:
    digits = re.sub(r"\D", "", path.name)
    return int(digits) if digits else 0
