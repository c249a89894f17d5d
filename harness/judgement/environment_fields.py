"""Which fields of an environment matter, in which order, and why. Pure data for harness.judgement.environment_difference."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class FieldKind:
    """A field, by a pattern of its path. `name` is what people call it; "{}" in it stands for the pattern's first group."""

    pattern: re.Pattern[str]
    name: str
    matters: str


def _kind(pattern: str, name: str, matters: str) -> FieldKind:
    return FieldKind(re.compile(pattern), name, matters)


_RUNTIME = (
    r"configuration\.software\.([\w-]+)\.packages\."
    r"((?:onnxruntime|openvino|ai-edge-litert|tflite|tensorflow|coremltools|tensorrt)[\w-]*)"
)

# Most important first. A path without a kind of its own comes after all of these, by its own words.
FIELDS: tuple[FieldKind, ...] = (
    _kind(r"machine\.cpu", "processor", "It is another processor: nothing else need explain a difference."),
    _kind(r"machine\.architecture", "architecture", "Other machine code runs."),
    _kind(r"machine\.board", "machine", "Another machine has another cooling, supply and firmware."),
    _kind(
        r"configuration\.limits\.cgroup_processors", "container's CPU quota",
        "A quota below the number of threads stops them again and again, and makes the slowest answers slower.",
    ),
    _kind(
        r"configuration\.limits\.processors_allowed", "processors allowed",
        "Threads share the processors that the process may use.",
    ),
    _kind(r"machine\.hypervisor", "hypervisor", "A guest shares its processors with others and knows less of its clock."),
    _kind(r"configuration\.limits\.container", "container", "A container may limit processors, memory and devices."),
    _kind(
        r"configuration\.power\.policies\.governor", "governor",
        "It decides how fast the clock rises under load; short queries feel it most.",
    ),
    _kind(r"configuration\.power\.turbo", "turbo", "It raises the clock as long as heat and power allow."),
    _kind(
        r"configuration\.power\.source", "power source", "On battery most machines run slower to save energy."
    ),
    _kind(
        r"configuration\.power\.(platform_profile|power_mode|low_power_mode|scheme|jetson_mode)", "power mode ({})",
        "It sets the limits of power and clock for the whole machine.",
    ),
    _kind(
        r"configuration\.power\.policies\.(limited_to_mhz|raised_to_mhz|hardware_mhz)", "range of frequencies ({})",
        "It bounds the clock.",
    ),
    _kind(
        r"configuration\.power\.raspberry_pi\.supply_milliamperes", "supply's current",
        "A weak supply makes a Raspberry Pi slow down under load.",
    ),
    _kind(r"configuration\.power\.raspberry_pi\.settings\.(\w+)", "firmware setting {}", "It sets a clock or a limit."),
    _kind(_RUNTIME + r"\.version", "{1} for {0}", "Another version of a runtime runs other code."),
    _kind(_RUNTIME + r"\.files", "build of {1} for {0}", "The same version, built or changed otherwise, runs other code."),
    _kind(r"configuration\.drivers\.nvidia", "NVIDIA's driver", "The driver compiles and schedules what the GPU runs."),
    _kind(r"configuration\.drivers\.nvidia_settings\.(.*)", "GPU setting {}", "It limits the GPU's power or shares it."),
    _kind(r"configuration\.drivers\.(\w+)", "driver {}", "The driver compiles and schedules what the device runs."),
    _kind(r"machine\.graphics.*", "graphics", "Another accelerator does the work."),
    _kind(
        r"machine\.processor\.(sockets|cores|threads|threads_per_core|kinds_of_cores.*|cores_by_design.*)",
        "processor's {}", "It bounds how much runs at once.",
    ),
    _kind(
        r"machine\.processor\.instruction_sets", "instruction sets", "Runtimes choose faster kernels by these."
    ),
    _kind(
        r"machine\.processor\.microcode", "microcode", "New microcode can change how fast instructions run."
    ),
    _kind(r"machine\.processor\.(family|model|stepping|vendor)", "processor's {}", "It is another processor."),
    _kind(r"machine\.processor\.caches.*", "caches", "A network that fits a cache runs much faster."),
    _kind(r"machine\.processor\.numa_nodes", "NUMA nodes", "Memory of another node is slower."),
    _kind(r"machine\.memory.*", "memory", "Size matters when it runs out; speed and kind for large networks."),
    _kind(
        r"configuration\.mitigations\.(\w+)", "mitigation of {}", "Working around a processor's fault costs time."
    ),
    _kind(
        r"configuration\.kernel\.(release|version|build)", "kernel's {}",
        "Another kernel schedules, clocks and maps memory otherwise.",
    ),
    _kind(r"configuration\.kernel\.options\.(.+)", "boot option {}", "It changes how the kernel schedules or protects."),
    _kind(
        r"configuration\.kernel\.clocksource", "clock source", "With a slow one each reading of the time costs more."
    ),
    _kind(r"configuration\.kernel\.(.+)", "kernel's {}", "It changes when the kernel interrupts or moves a program."),
    _kind(
        r"configuration\.memory\.transparent_huge_pages\w*", "transparent huge pages",
        "Large pages make large networks faster, and their making can stall a query.",
    ),
    _kind(r"configuration\.memory\.(\w+)", "memory setting {}", "It matters when memory gets short."),
    _kind(r"configuration\.variables\.(\w+)", "variable {}", "It steers the runtime or its libraries."),
    _kind(r"configuration\.power\.(.+)", "power setting {}", "It changes how fast the processor wakes and clocks."),
    _kind(r"configuration\.limits\.(.+)", "limit of {}", "It may stop the runtime from having what it asks for."),
    _kind(
        r"configuration\.software\.([\w-]+)\.packages\.(numpy|pillow|tokenizers)\..*", "{1} for {0}",
        "It prepares the inputs; the timed part hardly uses it.",
    ),
    _kind(
        r"configuration\.software\.([\w-]+)\.packages\.([\w-]+)\..*", "{1} for {0}", "A library that the runtime uses."
    ),
    _kind(
        r"configuration\.software\.([\w-]+)\.python\.(\w+)", "Python's {1} for {0}",
        "It makes the calls around the runtime.",
    ),
    _kind(r"configuration\.software\.([\w-]+).*", "software for {}", "Another interpreter or runtime runs."),
    _kind(r"configuration\.packages\.([\w-]+)", "{}", "Another version of a package runs other code."),
    _kind(r"machine\.firmware\.(\w+)", "firmware ({})", "Firmware sets limits of power, clock and memory."),
    _kind(r"machine\.thermal.*", "thermal limits", "They say when the machine slows itself down."),
    _kind(r"configuration\.os", "operating system", "It brings other libraries and defaults."),
    _kind(r"configuration\.image\.(\w+)", "system image ({})", "Another image brings other firmware and settings."),
    _kind(r"conditions\.signs.*", "throttling", "The machine slowed itself down."),
    _kind(r"conditions\.load_1min", "load at the start", "Other work was going on."),
    _kind(r"conditions\.steal_since_boot", "stolen time since boot", "The hypervisor gave time to other guests."),
    _kind(r"conditions\.temperature_c\.(.+)", "temperature of {}", "A warm machine clocks lower."),
    _kind(r"conditions\.speed_limit_percent", "speed limit", "Thermal management held the processor down."),
    _kind(r"conditions\.frequency_mhz\.(\w+)", "frequency at the start ({})", "It is of one moment before the run."),
    _kind(r"conditions\.battery_percent", "battery", "A nearly empty battery limits the power of some machines."),
    _kind(r"conditions\.memory_available_mb", "free memory at the start", "Little free memory makes a machine swap."),
    _kind(
        r"conditions\.memory_modules\.(.+)", "memory modules {}",
        "Number and speed of the modules decide the memory's bandwidth; only root is told.",
    ),
)  # fmt: skip

UNKNOWN = "What it changes is not known to this version."

# Conditions are never the same twice: the least difference that is worth a line.
LEAST: tuple[tuple[re.Pattern[str], float], ...] = (
    (re.compile(r"conditions\.load_1min"), 0.5),
    (re.compile(r"conditions\.temperature_c\..+"), 5.0),
    (re.compile(r"conditions\.frequency_mhz\..+"), 200.0),
    (re.compile(r"conditions\.steal_since_boot"), 0.01),
    (re.compile(r"conditions\.battery_percent"), 20.0),
    (re.compile(r"conditions\.memory_available_mb"), 1000.0),
)
IGNORED = re.compile(r"conditions\.(uptime_s|resumed_from)")
