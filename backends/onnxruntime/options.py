"""Turns LoadOptions into onnxruntime's SessionOptions, strictly: what cannot be honoured is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from backends.base import LoadOptions, OptionUnsupported
from backends.onnxruntime.graph import Graph
from backends.onnxruntime.providers import CPU, converts
from backends.slots import first_line

STRICT = "session.disable_cpu_ep_fallback"
CONFIGURATION = ("session.", "ep.", "optimization.", "mlas.", "memory.")
NUMBERS = ("inter_op_num_threads",)
SWITCHES = ("enable_mem_pattern", "enable_mem_reuse", "enable_cpu_mem_arena", "use_deterministic_compute")
# What computes fp32 weights in fewer bits: options of providers, as the session tells them, and one of the CPU's on Arm.
MODES = re.compile(r"use_tf32|(trt|migraphx)_(fp16|bf16|int8)_enable")
FAST_MATH = "mlas.enable_gemm_fastmath_arm64_bfloat16"
NAMES = {"graph_optimization_level": "GraphOptimizationLevel", "execution_mode": "ExecutionMode"}


def session_options(ort: Any, provider: str, options: LoadOptions, graph: Graph | None) -> tuple[Any, dict[str, str]]:
    """Return SessionOptions, and those of `options.extra` that belong to the provider. Raises OptionUnsupported."""
    if options.streams not in (None, 1) and not provider.startswith("OpenVINOExecutionProvider"):
        raise OptionUnsupported("onnxruntime has no streams.", "Ask for several requests in flight (slots) instead.")
    require_precision(provider, options.precision, graph)
    if options.extra.get(FAST_MATH, "0") != "0" and options.precision != "default":
        raise OptionUnsupported(
            f"{FAST_MATH} lets the CPU multiply in bf16, and {options.precision} was asked for.",
            'Leave it out, or ask for "default".',
        )
    made = ort.SessionOptions()
    made.log_severity_level = 3
    if options.threads is not None:
        made.intra_op_num_threads = options.threads
    made.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if provider != CPU:
        made.add_session_config_entry(STRICT, "1")
    if options.profile_dir is not None:
        options.profile_dir.mkdir(parents=True, exist_ok=True)
        made.enable_profiling = True
        made.profile_file_prefix = str(Path(options.profile_dir) / "onnxruntime")
    rest: dict[str, str] = {}
    for name, value in options.extra.items():
        if not _set(ort, made, provider, name, value):
            rest[name] = value
    return made, rest


def require_precision(provider: str, precision: str, graph: Graph | None) -> None:
    """Raise OptionUnsupported where the provider cannot run this file in the asked precision.

    A plain provider computes in the precision of the file's own tensors: it never converts fp32 weights to fp16.
    """
    if precision in ("fp32", "tf32", "default") or converts(provider, precision):
        return
    found = graph.precision if graph is not None else None
    if precision not in ("fp16", "bf16", "int8"):
        raise OptionUnsupported(
            f"onnxruntime knows no precision {precision!r}.", "Use fp32, tf32, fp16, bf16, int8, default."
        )
    if found is not None and found != precision and found != "mixed":
        raise OptionUnsupported(
            f"{provider} computes in the precision of the file, which is {found}; it cannot run it in {precision}.",
            f"Take an artifact whose precision is {precision}.",
        )


def math_modes(provider_options: Mapping[str, str], made: Any) -> dict[str, str]:
    """The session's own answer to which modes are on, by their names; empty where the provider has none."""
    found = {name: str(value) for name, value in provider_options.items() if MODES.fullmatch(name)}
    with suppress(RuntimeError):  # where it is not set, and off by default
        found[FAST_MATH] = str(made.get_session_config_entry(FAST_MATH))
    return found


def free_dimensions(graph: Graph | None, options: LoadOptions) -> dict[str, int]:
    """Sizes by the names of the graph's free dimensions: what the input shapes say, else 1."""
    sizes: dict[str, int] = {}
    for name, declared in (graph.inputs if graph is not None else {}).items():
        asked = options.input_shapes.get(name)
        for position, size in enumerate(declared):
            if isinstance(size, str):
                known = asked is not None and len(asked) == len(declared)
                wanted = asked[position] if asked is not None and known else None
                if wanted is not None and wanted > 0:
                    sizes[size] = wanted
                else:
                    sizes.setdefault(size, 1)
    return sizes


def _set(ort: Any, made: Any, provider: str, name: str, value: str) -> bool:
    """Set one of onnxruntime's own options; False where its name says that it belongs to the provider."""
    try:
        if name == STRICT and provider == CPU:
            raise OptionUnsupported(f"{STRICT} means nothing on the CPU itself.")
        if name.startswith(CONFIGURATION):
            made.add_session_config_entry(name, value)
        elif name in NUMBERS:
            setattr(made, name, int(value))
        elif name in SWITCHES:
            setattr(made, name, {"1": True, "true": True, "0": False, "false": False}[value.lower()])
        elif name in NAMES:
            setattr(made, name, getattr(getattr(ort, NAMES[name]), value))
        else:
            return False
    except (ValueError, KeyError, AttributeError, RuntimeError, TypeError) as error:
        raise OptionUnsupported(f"onnxruntime refuses {name} = {value!r} ({first_line(error)}).") from error
    return True
