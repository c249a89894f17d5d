"""Execution providers that come as packages of their own (since onnxruntime 1.23) and are registered at run time.

By convention such a package offers `get_library_path()`. A provider from a plugin is chosen by its devices: asked for by
name alone, onnxruntime would not use it.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from typing import Any

from backends.base import TargetUnsupported

PREFIX = "onnxruntime_ep_"
OTHERS = ("onnxruntime_qnn",)  # packages that do not follow the naming habit
PACKAGES = {
    "OpenVINOExecutionProvider": "onnxruntime-ep-openvino",
    "QNNExecutionProvider": "onnxruntime-qnn",
    "WebGpuExecutionProvider": "onnxruntime-ep-webgpu",
}


def plugin_devices(ort: Any, provider: str) -> list[Any]:
    """The devices of `provider` where it comes from a plugin, after registering the installed ones. Never raises."""
    if not hasattr(ort, "get_ep_devices"):
        return []  # before onnxruntime 1.23
    found = _devices(ort, provider)
    if not found and provider not in ort.get_available_providers():
        for module in installed():
            _register(ort, module)
        found = _devices(ort, provider)
    return found


def device_at(devices: list[Any], provider: str, index: int) -> Any:
    """The device with this number among those of the provider. Raises TargetUnsupported."""
    if index >= len(devices):
        names = ", ".join(describe(device) for device in devices)
        raise TargetUnsupported(f"{provider} has {len(devices)} device(s) here ({names}); there is no number {index}.")
    return devices[index]


def describe(device: Any) -> str:
    """A name for people: the provider's own where it gives one, else kind and vendor of the hardware."""
    named = dict(device.ep_metadata).get("FULL_DEVICE_NAME")
    if named:
        return str(named)
    return f"{device.device.vendor} {str(device.device.type).rsplit('.', 1)[-1]}"


def openvino_device(device: Any) -> str:
    """OpenVINO's own name of the device ("CPU", "GPU.1"), where the provider is OpenVINO's."""
    return str(dict(device.ep_metadata).get("ov_device", "CPU"))


def installed() -> list[str]:
    """Modules of this interpreter that bring a provider."""
    names = [module.name for module in pkgutil.iter_modules() if module.name.startswith(PREFIX)]
    return sorted(names) + [name for name in OTHERS if importlib.util.find_spec(name) is not None]


def _devices(ort: Any, provider: str) -> list[Any]:
    try:
        return [d for d in ort.get_ep_devices() if d.ep_name == provider and "library_path" in dict(d.ep_metadata)]
    except Exception:  # a broken driver must not hide the other providers
        return []


def _register(ort: Any, module: str) -> None:
    try:
        path = importlib.import_module(module).get_library_path()
        ort.register_execution_provider_library(module, path)
    except Exception:
        return  # built for another onnxruntime, already registered, or not what its name says: then it has no devices
