"""Finds the interpreter (ai-edge-litert first, then tflite-runtime), its kernels and its delegates."""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from backends.base import LoadOptions, OptionUnsupported, RuntimeMissing, TargetUnsupported
from backends.slots import first_line

PACKAGES = (("ai_edge_litert.interpreter", "ai-edge-litert"), ("tflite_runtime.interpreter", "tflite-runtime"))
# "cpu" is what everybody runs: XNNPACK where it can, the built-in kernels for the rest.
RESOLVERS = {"cpu": "AUTO", "cpu_builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "cpu_reference": "BUILTIN_REF"}
DELEGATE = "delegate:"


@dataclass(frozen=True)
class Runtime:
    """The module that holds Interpreter and load_delegate, and the package that it came from."""

    module: Any
    package: str
    version: str


def import_runtime() -> Runtime:
    """Import whichever runtime is installed. Raises RuntimeMissing with what each import said."""
    said = []
    for module, package in PACKAGES:
        try:
            found = importlib.import_module(module)
        except Exception as error:  # tflite-runtime with numpy 2 raises more than ImportError
            said.append(f"{package}: {first_line(error)}")
            continue
        return Runtime(found, package, importlib.metadata.version(package))
    raise RuntimeMissing(
        f"No TensorFlow Lite runtime can be imported in {sys.executable} ({'; '.join(said)}).",
        f"Install it: {sys.executable} -m pip install ai-edge-litert (or, where a device has Python 3.11 at most and needs "
        'it, "tflite-runtime" with "numpy<2").',
    )


def explain(runtime: Runtime, error: BaseException) -> RuntimeMissing | None:
    """The known trap: tflite-runtime was built against numpy 1, and fails at the first Interpreter beside numpy 2."""
    broken = isinstance(error, SystemError) or "_ARRAY_API" in f"{error} {error.__cause__}"
    if runtime.package == "tflite-runtime" and broken and int(np.__version__.split(".")[0]) >= 2:
        return RuntimeMissing(
            f"tflite-runtime {runtime.version} was built for numpy 1 and cannot work with the installed numpy.",
            f'Install an older numpy: {sys.executable} -m pip install "numpy<2"; or take ai-edge-litert instead.',
        )
    return None


def interpreter_arguments(runtime: Runtime, target: str, options: LoadOptions) -> dict[str, Any]:
    """Arguments for Interpreter(). A delegate is loaded anew for each: it belongs to one interpreter.

    Raises TargetUnsupported for an unknown target or a delegate that does not load, OptionUnsupported for options.
    """
    arguments: dict[str, Any] = {}
    if options.threads is not None:
        arguments["num_threads"] = options.threads
    if target.startswith(DELEGATE):
        arguments["experimental_delegates"] = [load_delegate(runtime, target[len(DELEGATE) :], options.extra)]
        return arguments
    resolver = RESOLVERS.get(target)
    if resolver is None:
        raise TargetUnsupported(
            f"TensorFlow Lite has no target {target!r}.",
            f"Its targets are {', '.join(RESOLVERS)}, and delegate:LIBRARY, e.g. delegate:libedgetpu.so.1.",
        )
    if options.extra:
        raise OptionUnsupported(
            f"TensorFlow Lite's interpreter has no option {', '.join(sorted(options.extra))}.",
            "Only a delegate takes options of its own.",
        )
    kind = getattr(runtime.module, "OpResolverType", None)
    if kind is not None:
        arguments["experimental_op_resolver_type"] = getattr(kind, resolver)
    elif target != "cpu":
        raise TargetUnsupported(f"{runtime.package} {runtime.version} cannot choose its kernels.")
    return arguments


def load_delegate(runtime: Runtime, library: str, options: Mapping[str, str]) -> Any:
    """Load a delegate's shared library by name or path. Raises TargetUnsupported."""
    if not library:
        raise TargetUnsupported("The target delegate: names no library.", "Write e.g. delegate:libedgetpu.so.1.")
    try:
        # Looked for first, because the runtime's own Delegate complains again in its destructor.
        for name in ("tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate"):
            getattr(ctypes.CDLL(library), name)
        return runtime.module.load_delegate(library, dict(options))
    except (OSError, ValueError, RuntimeError, AttributeError) as error:
        raise TargetUnsupported(
            f"The delegate {library} cannot be loaded: {first_line(error)}.",
            "Give the name or path of a shared library that exports tflite_plugin_create_delegate.",
        ) from error
