"""Which target means which execution provider, its options, and why it is not here when it is not."""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import os
import sys
from typing import Any

from backends.base import LoadOptions, OptionUnsupported
from backends.onnxruntime import plugins

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "directml": "DmlExecutionProvider",
    "qnn": "QNNExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
}
CPU = "CPUExecutionProvider"

# Builds of onnxruntime that bring a provider. They share the folder onnxruntime/, so only one fits an interpreter.
PACKAGES = {
    "CUDAExecutionProvider": "onnxruntime-gpu[cuda,cudnn]",
    "TensorrtExecutionProvider": "onnxruntime-gpu[cuda,cudnn] and tensorrt-cu13<11",
    "DmlExecutionProvider": "onnxruntime-directml",
    "CoreMLExecutionProvider": "onnxruntime",
    "MIGraphXExecutionProvider": "onnxruntime-migraphx",
}
SYSTEMS = {"DmlExecutionProvider": "win32", "CoreMLExecutionProvider": "darwin"}
LIBRARIES = {  # {cuda} is the major version of CUDA that the build was made for
    "CUDAExecutionProvider": ("libcuda.so.1", "libcudart.so.{cuda}", "libcublasLt.so.{cuda}", "libcudnn.so.9"),
    "TensorrtExecutionProvider": ("libcuda.so.1", "libcublas.so.{cuda}", "libcudnn.so.9", "libnvinfer.so.10"),
    "MIGraphXExecutionProvider": ("libamdhip64.so", "libmigraphx_c.so"),
    "QNNExecutionProvider": ("libQnnHtp.so",),
}
NEWEST_CUDA = "13"  # what the package named above brings


def provider_of(target: str) -> str:
    """The execution provider's own name; a target that is none of the short names is taken as one."""
    return PROVIDERS.get(target.lower(), target)


def target_of(provider: str) -> str:
    """The short name of a provider, or its own name where there is none."""
    for target, name in PROVIDERS.items():
        if name == provider:
            return target
    return provider


def override_tf32(provider: str, precision: str) -> None:
    """Let no variable of the user's decide over TF32 on NVIDIA's boards. Called before NVIDIA's libraries are loaded.

    NVIDIA_TF32_OVERRIDE stands above every option, the libraries read it once, and TensorRT's provider has no option of its
    own for TF32.
    """
    if provider not in ("CUDAExecutionProvider", "TensorrtExecutionProvider"):
        return
    if precision in ("tf32", "default"):
        os.environ.pop("NVIDIA_TF32_OVERRIDE", None)
    else:
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"


def provider_options(
    provider: str, options: LoadOptions, extra: dict[str, str], hardware: str = "CPU"
) -> dict[str, str]:
    """Return the provider's options with the math mode set explicitly. Raises OptionUnsupported.

    CUDA's use_tf32 is on by default; "fp32" switches it off, "tf32" on, "default" leaves the vendor's choice. `hardware`
    is OpenVINO's name of the device.
    """
    chosen: dict[str, str] = {}
    precision = options.precision
    if provider == "CUDAExecutionProvider":
        chosen["device_id"] = str(options.device_index)
        if precision != "default":
            chosen["use_tf32"] = "1" if precision == "tf32" else "0"
    elif provider == "TensorrtExecutionProvider":
        chosen["device_id"] = str(options.device_index)
        for name in ("fp16", "bf16", "int8"):
            if precision == name:
                chosen[f"trt_{name}_enable"] = "1"
        if options.cache_dir is not None:
            chosen["trt_engine_cache_enable"] = "1"
            chosen["trt_engine_cache_path"] = str(options.cache_dir)
    elif provider in ("DmlExecutionProvider", "MIGraphXExecutionProvider"):
        chosen["device_id"] = str(options.device_index)
        if provider == "MIGraphXExecutionProvider" and precision in ("fp16", "bf16", "int8"):
            chosen[f"migraphx_{precision}_enable"] = "1"
    elif provider.split(".")[0] == "OpenVINOExecutionProvider":
        chosen.update(_openvino_options(options, extra.get("device_type") or hardware))
    elif provider == "CoreMLExecutionProvider" and options.cache_dir is not None:
        chosen["ModelCacheDirectory"] = str(options.cache_dir)
    if precision == "tf32" and provider not in ("CUDAExecutionProvider", "TensorrtExecutionProvider"):
        raise OptionUnsupported(f"{provider} has no TF32 mode.", 'Ask for "fp32" or "default".')
    if provider == CPU and extra:
        unknown = ", ".join(sorted(extra))
        raise OptionUnsupported(
            f"onnxruntime has no option {unknown} on the CPU.",
            "Use names of SessionOptions, or session configuration keys such as session.intra_op.allow_spinning.",
        )
    return {**chosen, **extra}


def _openvino_options(options: LoadOptions, hardware: str) -> dict[str, str]:
    """OpenVINO's own properties, as JSON: the plugin accepts the older option `precision` and then ignores it."""
    hints = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}
    properties: dict[str, str] = {}
    if options.precision in hints:
        properties["INFERENCE_PRECISION_HINT"] = hints[options.precision]
    if options.threads is not None:
        properties["INFERENCE_NUM_THREADS"] = str(options.threads)
    if options.streams is not None:
        properties["NUM_STREAMS"] = str(options.streams)
    if options.cache_dir is not None:
        properties["CACHE_DIR"] = str(options.cache_dir)
    return {"load_config": json.dumps({hardware: properties})} if properties else {}


def converts(provider: str, precision: str) -> bool:
    """Whether the provider itself can run a model of another precision in this one."""
    able = {
        "TensorrtExecutionProvider": ("fp16", "bf16", "int8"),
        "MIGraphXExecutionProvider": ("fp16", "bf16", "int8"),
        "OpenVINOExecutionProvider": ("fp16", "bf16"),
    }
    return precision in able.get(provider.split(".")[0], ())


def missing_reason(ort: Any, provider: str) -> tuple[str, str]:
    """Why `provider` cannot be had from this build of onnxruntime, and the way out."""
    reason = f"this onnxruntime build ({distribution()}) has no {provider}"
    system = SYSTEMS.get(provider)
    if system is not None and sys.platform != system:
        name = {"win32": "Windows", "darwin": "macOS"}[system]
        return f"{reason}, which exists on {name} only", f"Run this target on {name}."
    absent = missing_libraries(provider, cuda_of(ort))
    if absent:
        reason += f"; {', '.join(absent)} not found"
    plugin = plugins.PACKAGES.get(provider.split(".")[0])
    if plugin is not None:
        return reason, f"Install its plugin beside onnxruntime: {sys.executable} -m pip install {plugin}."
    package = PACKAGES.get(provider)
    if package is None:
        known = ", ".join(ort.get_all_providers()) if hasattr(ort, "get_all_providers") else ", ".join(PROVIDERS)
        return reason, f"onnxruntime knows these providers: {known}."
    driver = "Install NVIDIA's driver. " if "libcuda.so.1" in absent else ""
    return reason, driver + install_advice(package)


def install_advice(package: str) -> str:
    """How to get another build: in an environment of its own, because the builds overwrite each other's files."""
    return (
        f"Install {package} into an environment of its own (in that of {sys.executable} it would overwrite the installed "
        "build), and name its Python in config.toml: [runtimes] onnxruntime."
    )


def cuda_of(ort: Any) -> str:
    """Major version of CUDA that this build of onnxruntime wants; the newest where it is not a CUDA build."""
    return str(getattr(ort, "cuda_version", "") or NEWEST_CUDA).split(".")[0]


def missing_libraries(provider: str, cuda: str) -> list[str]:
    """Names of the native libraries behind a provider that the loader does not find (Linux; empty elsewhere)."""
    if not sys.platform.startswith("linux"):
        return []
    absent = []
    for name in LIBRARIES.get(provider, ()):
        try:
            ctypes.CDLL(name.format(cuda=cuda))
        except OSError:
            absent.append(name.format(cuda=cuda))
    return absent


def distribution() -> str:
    """The installed package behind the module `onnxruntime`, e.g. "CPU package onnxruntime 1.32.0"."""
    found = []
    for suffix in ("", "-gpu", "-directml", "-qnn", "-openvino", "-migraphx", "-rocm"):
        name = f"onnxruntime{suffix}"
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found.append(f"{'CPU package ' if name == 'onnxruntime' else ''}{name} {version}")
    return " and ".join(found) or "of unknown origin"
