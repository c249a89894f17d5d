"""The software of a Python interpreter: Python's own build, and the runtimes' packages with a digest of their files.

This file also runs by itself, in the interpreter that [runtimes] names for a backend: `python -I software.py`, so that it
needs only the standard library of Python 3.10. A package's digest is that of its list of files and their hashes (RECORD,
Python packaging's "Recording installed projects"): two builds of one version differ in it. Nothing is imported.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

PACKAGES = re.compile(
    r"(onnxruntime\w*|openvino|ai_edge_litert|tflite_runtime|tensorflow\w*|coremltools|numpy|pillow|tokenizers|tensorrt\w*|"
    r"nvidia_\w+|threadpoolctl|mkl|intel_openmp|tbb)-[^-]+\.dist-info",
    re.IGNORECASE,
)
GENERATED = ("/RECORD", "/INSTALLER", "/REQUESTED", "/direct_url.json")


def software() -> dict[str, object]:
    """Return this interpreter's software: Python's build, the C library, packages by name."""
    return {"python": python(), "packages": packages()}


def python() -> dict[str, object]:
    """Python's version and how it was built."""
    found: dict[str, object] = {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "compiler": platform.python_compiler(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "debug": bool(sysconfig.get_config_var("Py_DEBUG")),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "optimised_by_profile": "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS") or ""),
        "bits": 64 if sys.maxsize > 2**32 else 32,
    }
    return {name: value for name, value in found.items() if value != ""}


def packages() -> dict[str, dict[str, str]]:
    """Each package that takes part in inference: version, and digest of its files where the installer recorded them."""
    found: dict[str, dict[str, str]] = {}
    for place in dict.fromkeys(sys.path):
        folder = Path(place or ".")
        if not folder.is_dir():
            continue
        for entry in sorted(folder.iterdir()):
            if not PACKAGES.fullmatch(entry.name):
                continue
            distribution = metadata.Distribution.at(entry)
            name = re.sub(r"[-_.]+", "-", str(distribution.metadata["Name"])).lower()
            if name not in found:  # the first on the path is the one that is imported
                found[name] = {"version": distribution.version, **_build(distribution.read_text("RECORD"))}
    return dict(sorted(found.items()))


def _build(record: str | None) -> dict[str, str]:
    """Leave out what the installer adds (bytecode, its own notes) and scripts outside, which carry the folder's name."""
    if not record:
        return {}
    lines = [
        line
        for line in record.splitlines()
        if ".pyc," not in line and not line.startswith("..") and not line.split(",")[0].endswith(GENERATED)
    ]
    return {"files": hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]}


if __name__ == "__main__":
    json.dump(software(), sys.stdout)
