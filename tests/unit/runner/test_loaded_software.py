"""A probe says which libraries its interpreter really loaded, by name only."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.worker.software import loaded_software

MAPS = """7f00-7f01 r-xp 00000000 08:01 1 /home/alice/venv/lib/numpy.libs/libscipy_openblas64_-32a4b2a6.so
7f01-7f02 r--p 00000000 08:01 1 /home/alice/venv/lib/numpy.libs/libscipy_openblas64_-32a4b2a6.so
7f02-7f03 r-xp 00000000 08:01 2 /usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0
7f03-7f04 r-xp 00000000 08:01 3 /opt/intel/libiomp5.so
7f04-7f05 r-xp 00000000 08:01 4 /usr/lib/libtbb.so.12
7f05-7f06 r-xp 00000000 08:01 5 /usr/lib/x86_64-linux-gnu/libc.so.6
7f06-7f07 rw-p 00000000 00:00 0 [heap]
"""


def test_libraries_are_named_without_their_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maps = tmp_path / "maps"
    maps.write_text(MAPS)
    runtime = SimpleNamespace(__version__="1.99.0", get_build_info=lambda: "ORT Build Info: git-branch=main")
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    found = loaded_software(maps)
    assert found["libraries"] == [
        "libgomp.so.1.0.0",
        "libiomp5.so",
        "libscipy_openblas64_-32a4b2a6.so",
        "libtbb.so.12",
    ]
    assert found["versions"]["onnxruntime"] == "1.99.0"
    assert found["build"] == "ORT Build Info: git-branch=main"
    assert "alice" not in str(found)


def test_a_system_without_maps_tells_versions_only(tmp_path: Path) -> None:
    assert "libraries" not in loaded_software(tmp_path / "none")
