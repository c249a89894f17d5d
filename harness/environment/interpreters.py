"""The software of every interpreter that runs a backend, this one and those that [runtimes] names, and the variables that
steer runtimes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.environment import software
from harness.environment.reading import System

# Read by the runtimes themselves or by their OpenMP, BLAS and memory allocators; a worker inherits them.
VARIABLES = re.compile(
    r"(OMP|KMP|GOMP|MKL|OPENBLAS|BLIS|VECLIB|NUMEXPR|ORT|OV|OPENVINO|TF|XNNPACK|DNNL|ONEDNN|ACL|CUDA|CUDNN|NVIDIA|TRT|HIP|ROCR|"
    r"GPU|ZE|SYCL|MALLOC|GLIBC|LD|DYLD)_\w+"
)
HARMLESS_VALUE = re.compile(
    r"[A-Za-z0-9_.,:;=+*{}\[\]-]{0,100}"
)  # no path, so no user's name; no room for a token's like
SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
IDENTITY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}", re.IGNORECASE)  # a board named by its UUID
MASKED = "(not kept)"


def interpreters(system: System, runtimes: Mapping[str, Path]) -> dict[str, Any]:
    """Return {"default": software, backend: software of its own interpreter}. One that cannot be asked says so."""
    if not system.live:
        return {}
    found: dict[str, Any] = {"default": software.software()}
    for backend, interpreter in sorted(runtimes.items()):
        said = system.run((str(interpreter), "-I", str(Path(software.__file__).resolve())))
        try:
            found[backend] = json.loads(said or "")
        except ValueError:
            found[backend] = {"unknown": "its interpreter does not answer"}
    return found


def variables(system: System) -> dict[str, str]:
    """Return the environment variables that steer runtimes. A value that could be a path or a secret is not kept."""
    return {
        name: MASKED if SECRET.search(name) or IDENTITY.search(value) or not HARMLESS_VALUE.fullmatch(value) else value
        for name, value in sorted(system.variables.items())
        if VARIABLES.fullmatch(name)
    }
