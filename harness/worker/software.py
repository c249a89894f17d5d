"""What an interpreter really loaded to run a backend: versions, build, and the OpenMP, BLAS and threading libraries.

Nothing is imported here: a probe has just made real sessions, and what is in the process now is what runs there.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

LIBRARIES = re.compile(
    r"lib(?:[gi]?omp\d?|iomp5md|openblas|scipy_openblas|mkl_\w+|blis|tbb\w*|cublas\w*|cudnn\w*|cudart|nvinfer|armpl\w*)"
)
MAPS = Path("/proc/self/maps")


def loaded_software(maps: Path = MAPS) -> dict[str, Any]:
    """Return versions of loaded packages, the runtime's own words about its build, and loaded libraries by file name."""
    found: dict[str, Any] = {"python": sys.version.split()[0]}
    versions = {
        name: _version(name)
        for name in ("onnxruntime", "openvino", "ai_edge_litert", "tflite_runtime", "coremltools", "numpy")
    }
    found["versions"] = {name: version for name, version in versions.items() if version}
    build = _build()
    if build:
        found["build"] = build
    libraries = _libraries(maps)
    if libraries:
        found["libraries"] = libraries
    pools = _thread_pools()
    if pools:
        found["thread_pools"] = pools
    return found


def _version(package: str) -> str | None:
    module = sys.modules.get(package)
    return None if module is None else str(getattr(module, "__version__", "")) or None


def _build() -> str | None:
    """onnxruntime's and OpenVINO's own description of how they were built."""
    for package, function in (("onnxruntime", "get_build_info"), ("openvino", "get_version")):
        ask = getattr(sys.modules.get(package), function, None)
        if ask is not None:
            try:
                return str(ask())[:500]
            except Exception:
                return None
    return None


def _libraries(maps: Path) -> list[str]:
    """File names of the mapped libraries that compute or make threads; names only, a path may hold a user's name."""
    try:
        lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []  # not Linux
    names = {line.rpartition("/")[2] for line in lines if "/" in line}
    return sorted(name for name in names if LIBRARIES.match(name))


def _thread_pools() -> list[dict[str, Any]]:
    """What threadpoolctl tells, where the interpreter has it: library, version, threads."""
    try:
        threadpool_info = importlib.import_module("threadpoolctl").threadpool_info
    except ImportError:
        return []
    try:
        names = ("user_api", "internal_api", "version", "num_threads", "threading_layer", "architecture")
        return [{name: pool[name] for name in names if pool.get(name) is not None} for pool in threadpool_info()]
    except Exception:  # it walks foreign libraries; a probe must not fail for it
        return []
