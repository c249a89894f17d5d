"""Reading MLPerf's system descriptions: what hardware it is, in the submitter's own words. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.errors import RecordError
from harness.records import ComputeUnit

BLANK = frozenset({"", "-", "n/a", "na", "none", "null"})
SOFTWARE_FIELDS = (
    "framework",
    "operating_system",
    "other_software_stack",
    "sw_notes",
    "filesystem",
    "boot_firmware_version",
    "management_firmware_version",
    "power_management",
)
# Framework names as submitters write them -> our names of backends. Others stay "unknown".
BACKENDS = {
    "tflite": "tflite",
    "openvino": "openvino",
    "onnxruntime": "onnxruntime",
    "tensorrt": "tensorrt",
    "pytorch": "pytorch",
}
VENDORS = ("NVIDIA", "AMD", "Intel", "Apple", "Qualcomm", "Google")
_BYTES = {"mb": 10**6, "gb": 10**9, "tb": 10**12, "mib": 2**20, "gib": 2**30, "tib": 2**40}


@dataclass(frozen=True)
class System:
    """A submitted system. `unit` names the processor that did the work; `units` has the others too."""

    name: str
    submitter: str
    division: str
    machine_model: str
    unit: str
    units: tuple[ComputeUnit, ...]
    backend: str
    target: str | None  # "cpu" where the system has no accelerator; otherwise the description does not tell
    framework: str | None
    form: str | None
    availability: str | None
    hardware: dict[str, Any] = field(default_factory=dict)
    software: dict[str, Any] = field(default_factory=dict)


def read_system(text: str) -> System:
    """Read a system description. Raises RecordError, without the file's name, where it is none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it is not valid JSON ({error})") from error
    if not isinstance(document, dict):
        raise RecordError("it is not a JSON object")
    words = {str(name): _word(value) for name, value in document.items()}
    for needed in ("system_name", "submitter", "division", "host_processor_model_name"):
        if words.get(needed) is None:
            raise RecordError(f"its {needed} is missing")
    name = str(words["system_name"])
    nodes = _count(words, "number_of_nodes", 1)
    accelerators = _count(words, "accelerators_per_node", 0) * nodes
    machine = _without_parenthesis(name)
    processor = _processor(words, machine, alone=accelerators > 0)
    host = ComputeUnit(
        name="cpu",
        kind="cpu",
        hardware_model=processor,
        vendor=_vendor(processor),
        count=max(1, _count(words, "host_processors_per_node", 1)) * nodes,
        memory_bytes=_capacity(words.get("host_memory_capacity")),
    )
    units: tuple[ComputeUnit, ...] = (host,)
    if accelerators > 0:
        units = (_accelerator(words, accelerators), host)
    framework = words.get("framework")
    return System(
        name=name,
        submitter=str(words["submitter"]),
        division=str(words["division"]),
        machine_model=machine,
        unit=units[0].name,
        units=units,
        backend=_backend(framework),
        target=None if accelerators > 0 else "cpu",
        framework=framework,
        form={"datacenter": "server", "edge": "edge"}.get(str(words.get("system_type"))),
        availability=words.get("status"),
        hardware={key: value for key, value in words.items() if value is not None and key not in SOFTWARE_FIELDS},
        software={key: value for key, value in words.items() if value is not None and key in SOFTWARE_FIELDS},
    )


def _word(value: Any) -> str | None:
    """A value as text; None for the many ways in which submitters write "nothing"."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()
    return None if text.lower() in BLANK else text


def _count(words: dict[str, str | None], name: str, default: int) -> int:
    text = words.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise RecordError(f"its {name} is {text!r}, not a whole number")
    return int(text)


def _accelerator(words: dict[str, str | None], count: int) -> ComputeUnit:
    stated = words.get("accelerator_model_name")
    if stated is None:
        raise RecordError("it counts accelerators but does not name them")
    model = _tidy(stated)
    vendor = _vendor(model)
    # NVIDIA's accelerators in these results are GPUs; of others the description does not say what they are.
    kind: Literal["gpu", "other"] = "gpu" if vendor == "NVIDIA" else "other"
    return ComputeUnit(
        name="gpu0" if kind == "gpu" else "accelerator0",
        kind=kind,
        hardware_model=model,
        vendor=vendor,
        count=count,
        memory_bytes=_capacity(words.get("accelerator_memory_capacity")),
    )


def _processor(words: dict[str, str | None], machine: str, alone: bool) -> str:
    """What can be bought when the CPU does the work: the socketed CPU of a server, else the board, its processor named.

    "NVIDIA Jetson AGX Orin (Arm Cortex-A78AE v8.2 CPU)": the board's name alone would pass for its GPU.
    """
    processor = _tidy(str(words["host_processor_model_name"])).split(":")[0].strip()
    if alone or "datacenter" in str(words.get("system_type")):
        return processor
    return f"{machine} ({processor} CPU)"


def _tidy(stated: str) -> str:
    """The submitter's words without trademark signs and clock rate: "NVIDIA A100-PCIe-80GB" -> "NVIDIA A100 PCIe 80 GB"."""
    text = re.sub(r"\((R|TM)\)", "", stated, flags=re.IGNORECASE)
    text = re.sub(r"\bCPU\b\s*(@\s*[\d.]+\s*GHz)?", "", text)
    if text.startswith("NVIDIA "):
        text = text.replace("-", " ")
    text = re.sub(r"\b(\d+)\s*GB\b", r"\1 GB", text)
    return " ".join(text.split())


def _without_parenthesis(name: str) -> str:
    """ "Raspberry Pi 4 Model B Rev 1.4 (rpi4)" -> without the nickname or the list of what is in it."""
    return re.sub(r"\s*\([^()]*\)\s*$", "", name) or name


def _vendor(model: str) -> str | None:
    return next((vendor for vendor in VENDORS if model.upper().startswith(vendor.upper() + " ")), None)


def _backend(framework: str | None) -> str:
    """Our backend's name when the description states that framework; "unknown" otherwise."""
    if framework is None:
        return "unknown"
    first = re.split(r"[\s,]", framework, maxsplit=1)[0].lower().replace("-", "")
    return BACKENDS.get(first, "unknown")


def _capacity(text: str | None) -> int | None:
    """Bytes of "80 GB" or "8 GiB", as written; None where it is written otherwise."""
    found = re.fullmatch(r"(\d{1,6})\s*([MGT]i?B)", text or "")
    return int(found[1]) * _BYTES[found[2].lower()] if found else None
