"""Execution providers from plugin packages. The devices are as onnxruntime-ep-openvino 1.8.1 lists them beside onnxruntime
1.32; registering and running is played, because the package is not among this project's dependencies.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnxruntime as ort
import pytest

from backends import create
from backends.base import LoadOptions, TargetUnsupported
from backends.onnxruntime import adapter, plugins, providers

FileMaker = Callable[..., Path]
OPENVINO = "OpenVINOExecutionProvider"
BACKEND = create("onnxruntime")


def device(name: str, hardware: str, kind: str = "CPU", plugin: bool = True) -> Any:
    """An OrtEpDevice."""
    metadata = {"ov_device": hardware, "FULL_DEVICE_NAME": f"Test {hardware}"}
    if plugin:
        metadata["library_path"] = "/somewhere/plugin.so"
    hardware_device = SimpleNamespace(vendor="Acme", type=f"OrtHardwareDeviceType.{kind}")
    return SimpleNamespace(ep_name=name, ep_metadata=metadata, device=hardware_device)


class Registering:
    """onnxruntime with plugins: has no OpenVINO until its library is registered."""

    __version__ = ort.__version__

    def __init__(self) -> None:
        self.registered: list[tuple[str, str]] = []
        self.sessions: list[Any] = []
        outer = self

        class SessionOptions:
            """The real options cannot take played devices."""

            def __init__(self) -> None:
                self.real = ort.SessionOptions()
                self.devices: list[Any] = []
                self.chosen: dict[str, str] = {}

            def __getattr__(self, name: str) -> Any:
                return getattr(self.real, name)

            def add_provider_for_devices(self, devices: list[Any], chosen: dict[str, str]) -> None:
                self.devices, self.chosen = devices, chosen

        class InferenceSession:
            def __init__(self, path: str, made: Any, enable_fallback: int) -> None:
                outer.sessions.append(made)
                self.real = ort.InferenceSession(path, providers=["CPUExecutionProvider"])

            def __getattr__(self, name: str) -> Any:
                return getattr(self.real, name)

            def get_providers(self) -> list[str]:
                return [OPENVINO, "CPUExecutionProvider"]

        self.SessionOptions = SessionOptions
        self.InferenceSession = InferenceSession

    def get_available_providers(self) -> list[str]:
        return ["CPUExecutionProvider"] + ([OPENVINO] if self.registered else [])

    def get_ep_devices(self) -> list[Any]:
        found = [device("CPUExecutionProvider", "", plugin=False)]
        if self.registered:
            found += [device(OPENVINO, "CPU"), device(OPENVINO, "GPU", "GPU")]
        return found

    def register_execution_provider_library(self, name: str, path: str) -> None:
        self.registered.append((name, path))


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Registering:
    """An interpreter with one good plugin package and one that is broken."""
    made = Registering()
    monkeypatch.setattr(adapter, "import_runtime", lambda: made)
    monkeypatch.setattr(plugins, "installed", lambda: ["onnxruntime_ep_broken", "onnxruntime_ep_openvino"])
    package = SimpleNamespace(get_library_path=lambda: "/somewhere/plugin.so")
    monkeypatch.setitem(sys.modules, "onnxruntime_ep_openvino", package)
    return made


def test_an_installed_plugin_is_registered_once_and_chosen_by_its_device(
    plugged: Registering, onnx_file: FileMaker
) -> None:
    for _ in range(2):
        BACKEND.load(onnx_file(1), "onnx", "openvino", LoadOptions(threads=2)).close()
    assert plugged.registered == [("onnxruntime_ep_openvino", "/somewhere/plugin.so")]
    (chosen,) = plugged.sessions[0].devices
    assert chosen.ep_metadata["ov_device"] == "CPU"


def test_openvinos_properties_are_set_for_the_device_that_runs(plugged: Registering, onnx_file: FileMaker) -> None:
    # Seen on the real plugin: the older option `precision` is accepted and ignored, and bf16 ran where fp32 was asked for.
    session = BACKEND.load(onnx_file(1), "onnx", "openvino", LoadOptions(precision="fp32", threads=2, device_index=1))
    session.close()
    (made,) = plugged.sessions
    assert json.loads(made.chosen["load_config"]) == {
        "GPU": {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "2"}
    }
    assert "precision" not in made.chosen


def test_the_vendors_default_sets_nothing() -> None:
    assert providers.provider_options(OPENVINO, LoadOptions(precision="default"), {}) == {}


def test_a_device_that_the_plugin_lacks_is_refused_with_those_it_has(
    plugged: Registering, onnx_file: FileMaker
) -> None:
    with pytest.raises(TargetUnsupported, match=r"2 device\(s\) here \(Test CPU, Test GPU\)"):
        BACKEND.load(onnx_file(1), "onnx", "openvino", LoadOptions(device_index=2))


def test_a_device_is_named_by_kind_where_the_plugin_gives_no_name() -> None:
    played = device(OPENVINO, "NPU", "NPU")
    del played.ep_metadata["FULL_DEVICE_NAME"]
    assert plugins.describe(played) == "Acme NPU"


def test_without_the_plugin_its_package_is_named() -> None:
    status = BACKEND.probe("qnn")
    assert not status.works
    assert "onnxruntime-qnn" in (status.fix or "")
    assert sys.executable in (status.fix or "")


def test_an_onnxruntime_before_plugins_has_none() -> None:
    assert plugins.plugin_devices(SimpleNamespace(), OPENVINO) == []
