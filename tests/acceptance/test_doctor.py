"""`weigh doctor` says what works here, and for the rest precisely why not and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.device.doctor import OUR_PACKAGES, datasets, folders, packages


def _by_name(text: str) -> dict[str, dict[str, Any]]:
    return {f"{item['area']} {item['name']}": item for item in json.loads(text)}


def test_every_backend_target_and_meter_works_or_says_why(weigh: Any) -> None:
    done = weigh("doctor", "--json")
    assert done.returncode == 0, done.stderr
    found = _by_name(done.stdout)
    for name in ("onnxruntime cpu", "openvino cpu", "tflite cpu"):
        assert found[f"backend {name}"]["works"] is True
    for name in ("onnxruntime cuda", "onnxruntime tensorrt", "openvino gpu", "openvino npu", "coreml all"):
        item = found[f"backend {name}"]
        if not item["works"]:
            assert item["text"] and item["fix"], name
            assert item["verified"] is False, name
    for name in ("meter rapl", "meter nvml"):
        assert found[name]["works"] or found[name]["text"].startswith("not measured: ")


def test_the_machine_is_shown_with_what_disturbs_it_and_what_preparation_could_change(weigh: Any) -> None:
    findings = json.loads(weigh("doctor", "--json").stdout)
    environment = {item["name"]: item["text"] for item in findings if item["area"] == "environment"}
    assert len(environment["digest"]) == 16
    assert environment["processor"] and "GiB" in environment["memory"]
    now = [item for item in findings if item["area"] == "quiet"]
    assert now and all(item["text"] for item in now)
    (settings,) = [item["text"] for item in findings if item["area"] == "preparation"]
    assert "weigh run --prepare" in settings


def test_the_table_says_not_verified_on_hardware(weigh: Any) -> None:
    assert "Not verified on hardware." in " ".join(weigh("doctor").stdout.split())


def test_a_damaged_identity_is_exit_1_with_the_way_out(weigh: Any, own_folders: Path) -> None:
    (own_folders / "data").mkdir()
    (own_folders / "data/device.json").write_text("{")
    done = weigh("doctor", "--json")
    assert done.returncode == 1
    item = _by_name(done.stdout)["machine device"]
    assert item["works"] is False and "remove it" in item["fix"]
    assert "Traceback" not in done.stderr


def test_a_runtime_whose_interpreter_is_missing_is_said(weigh: Any, own_folders: Path) -> None:
    (own_folders / "config").mkdir()
    (own_folders / "config/config.toml").write_text('[runtimes]\ntflite = "/nowhere/python"\n')
    found = _by_name(weigh("doctor", "--json").stdout)
    assert found["backend tflite cpu"]["works"] is False
    assert "/nowhere/python" in found["backend tflite cpu"]["text"]
    assert found["backend onnxruntime cpu"]["works"] is True


def test_a_folder_that_cannot_be_one_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(in_the_way / "cache"))
    broken = {finding.name: finding for finding in folders() if finding.works is False}
    assert set(broken) == {"cache"}
    assert "WEIGHBRIDGE_CACHE" in (broken["cache"].fix or "")


def test_the_stores_password_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_STORE", "postgresql://me:hunter2@db.example/w")
    assert not any("hunter2" in finding.text for finding in folders())


def test_two_owners_of_one_package_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "importlib.metadata.packages_distributions",
        lambda: {"db": ["weighbridge", "other-db"], **{name: ["weighbridge"] for name in OUR_PACKAGES if name != "db"}},
    )
    (finding,) = packages()
    assert finding.works is False and "other-db" in finding.text


def test_a_configured_dataset_is_looked_for(tmp_path: Path, own_folders: Path) -> None:
    (own_folders / "config").mkdir()
    (own_folders / "config/config.toml").write_text(f'[datasets]\nimagenet = "{tmp_path / "missing"}"\n')
    (finding,) = datasets()
    assert finding.works is False and "missing" in finding.text
