"""The packed worker: the same bytes every time, only what is allowed, and nothing newer than Python 3.10."""

from __future__ import annotations

import ast
import sys
import zipfile
from pathlib import Path

import pytest

from harness.errors import WeighbridgeError
from harness.worker.pack import worker_archive

THIRD_PARTY = {"numpy", "PIL", "tokenizers"}
RUNTIMES = {"onnxruntime", "openvino", "ai_edge_litert", "tflite_runtime", "coremltools"}
NEWER_THAN_3_10 = {"tomllib", "wsgiref.types"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worker_archive(tmp_path_factory.mktemp("cache"))


def sources(archive: Path) -> dict[str, str]:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name).decode() for name in opened.namelist() if name.endswith(".py")}


def imported(text: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return names


def test_the_same_bytes_every_time(archive: Path, tmp_path: Path) -> None:
    again = worker_archive(tmp_path)
    assert again.name == archive.name
    assert again.read_bytes() == archive.read_bytes()


def test_it_is_written_once(archive: Path) -> None:
    before = archive.stat().st_mtime_ns
    assert worker_archive(archive.parents[1]) == archive
    assert archive.stat().st_mtime_ns == before


def test_no_part_of_the_control_side_is_inside(archive: Path) -> None:
    rooms = {name.split("/")[0] for name in sources(archive)}
    assert rooms == {"__main__.py", "backends", "harness"}
    inside = {"/".join(name.split("/")[1:2]) for name in sources(archive) if name.startswith("harness/")}
    assert inside == {
        "__init__.py", "artifacts.py", "canonical.py", "errors.py", "records", "scenarios", "tasks", "worker",
    }  # fmt: skip


def test_it_imports_the_standard_library_numpy_pillow_and_runtimes_only(archive: Path) -> None:
    inside = sources(archive)
    modules = {name[:-3].replace("/", ".").removesuffix(".__init__") for name in inside}
    for name, text in inside.items():
        for module in imported(text):
            top = module.split(".")[0]
            known = top in sys.stdlib_module_names or top in THIRD_PARTY or top in RUNTIMES or module in modules
            assert known, f"{name} imports {module}"
            assert module not in NEWER_THAN_3_10, f"{name} imports {module}, which Python 3.10 has not"


def test_it_parses_as_python_3_10(archive: Path) -> None:
    for name, text in sources(archive).items():
        ast.parse(text, filename=name, feature_version=(3, 10))


def test_a_cache_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "workers").write_text("a file where the folder should be")
    with pytest.raises(WeighbridgeError, match=r"cannot be written into the cache .* set WEIGHBRIDGE_CACHE"):
        worker_archive(tmp_path)


def test_a_full_disk_leaves_no_half_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.worker.pack._write", full)
    with pytest.raises(WeighbridgeError, match="No space left on device"):
        worker_archive(tmp_path)
    assert list((tmp_path / "workers").iterdir()) == []
