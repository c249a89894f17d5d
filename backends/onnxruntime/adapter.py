"""The onnxruntime backend: probe and load with one execution provider, and no other behind it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from backends.addition import run_addition
from backends.base import BackendError, LoadOptions, ModelRejected, RuntimeMissing, TargetStatus, TargetUnsupported
from backends.onnxruntime import plugins, providers
from backends.onnxruntime.cuda import cuda_device
from backends.onnxruntime.graph import read_graph
from backends.onnxruntime.options import STRICT, free_dimensions, math_modes, session_options
from backends.onnxruntime.session import OnnxRuntimeSession, tensor_info
from backends.slots import first_line
from backends.tensors import pin, processor_name, require_counts, require_file, require_names

# y = x + x with x float32[1,2], opset 13, as onnx.helper writes it (a test builds it again and compares).
PROBE = bytes.fromhex(
    "080812003a460a130a01780a01781201791a036164642203416464120570726f62655a130a0178120e0a0c080112080a0208010a02080262130a"
    "0179120e0a0c080112080a0208010a02080242040a00100d"
)
VERIFIED = (providers.CPU,)


class OnnxRuntimeBackend:
    """See backends.base.Backend. Targets are short names, or any execution provider by its own name."""

    name = "onnxruntime"
    formats: tuple[str, ...] = ("onnx",)

    def targets(self) -> tuple[str, ...]:
        """The short names; any other provider may be asked for by its own."""
        return tuple(providers.PROVIDERS)

    def target_named(self, name: str) -> str | None:
        """A short name, or any execution provider by its own name; one that has a short name is known by that."""
        if name in providers.PROVIDERS:
            return name
        return providers.target_of(name) if name.partition(".")[0].endswith("ExecutionProvider") else None

    def default_precision(self, target: str) -> str | None:
        """The CPU's kernels compute in the file's types. On NVIDIA's boards TF32 is on, where the board has it."""
        return "fp32" if providers.provider_of(target) == providers.CPU else None

    def probe(self, target: str, device_index: int = 0) -> TargetStatus:
        """Make a session of one addition and run it."""
        verified = providers.provider_of(target) in VERIFIED
        version = None
        try:
            ort = import_runtime()
            version = str(ort.__version__)
            with tempfile.TemporaryDirectory(prefix="weighbridge-probe-") as folder:
                model = Path(folder) / "probe.onnx"
                model.write_bytes(PROBE)
                options = LoadOptions(precision="default", device_index=device_index)
                report = run_addition(self.load(model, "onnx", target, options), target)
        except BackendError as error:
            return TargetStatus("onnxruntime", target, False, error.what, error.fix or None, verified, None, version)
        device = report.devices[0] if report.devices else None
        details = {"providers": report.details["providers"], "package": report.details["package"]}
        return TargetStatus("onnxruntime", target, True, None, None, verified, device, version, details)

    def load(self, model: Path, model_format: str, target: str, options: LoadOptions) -> OnnxRuntimeSession:
        """Load strictly with the target's one provider."""
        if model_format != "onnx":
            raise ModelRejected(f"onnxruntime reads onnx files, not {model_format}.")
        require_file(model)
        require_counts(options)
        ort = import_runtime()
        provider = providers.provider_of(target)
        providers.override_tf32(provider, options.precision)
        start = time.perf_counter_ns()
        devices = require_provider(ort, provider, target)
        libraries_ns = time.perf_counter_ns() - start  # CUDA's and cuDNN's, or a plugin's: seconds, on a cold machine
        graph = read_graph(model)
        if graph is not None and graph.inputs:
            require_names(options.input_shapes, list(graph.inputs))
        made, rest = session_options(ort, provider, options, graph)
        for name, size in free_dimensions(graph, options).items():
            made.add_free_dimension_override_by_name(name, size)
        plugin = plugins.device_at(devices, provider, options.device_index) if devices else None
        hardware = plugins.openvino_device(plugin) if plugin is not None else "CPU"
        chosen = providers.provider_options(provider, options, rest, hardware)
        before = _thread_count()
        start = time.perf_counter_ns()
        session = _create(ort, model, made, provider, chosen, plugin)
        load_ms = (libraries_ns + time.perf_counter_ns() - start) / 1e6
        after = _thread_count()
        inputs = tuple(
            tensor_info(argument, pin(argument.name, argument.shape, options.input_shapes.get(argument.name)))
            for argument in session.get_inputs()
        )
        device, capability = cuda_device(options.device_index) if _memory(provider) == "cuda" else (None, None)
        if plugin is not None and device is None:
            device = plugins.describe(plugin)
        facts: dict[str, Any] = {
            "device_index": options.device_index,
            "devices": _devices(provider, device),
            "threads": options.threads,
            "threads_method": "as asked" if options.threads is not None else None,
            "file_precision": graph.precision if graph is not None else None,
            "math": _math(provider, options.precision, session, capability),
            "math_modes": math_modes(session.get_provider_options().get(provider, {}), made),
            "package": providers.distribution(),
            "profiling": options.profile_dir is not None,
            "cpu_fallback": provider != providers.CPU and made.get_session_config_entry(STRICT) != "1",
        }
        if options.threads is None and before is not None and after is not None:
            facts["threads"] = after - before + 1  # the caller's thread works too
            facts["threads_method"] = "threads that the session started, and the caller's"
        return OnnxRuntimeSession(ort, session, provider, inputs, load_ms, facts)


def import_runtime() -> Any:
    """Import onnxruntime with its telemetry off. Raises RuntimeMissing."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read at import; else a database is made in the home folder
    try:
        import onnxruntime as ort

        ort.set_default_logger_severity(3)
    except Exception as error:  # a broken install raises more than ImportError
        raise RuntimeMissing(
            f"onnxruntime cannot be imported in {sys.executable} ({first_line(error)}).",
            f"Install it: {sys.executable} -m pip install onnxruntime.",
        ) from error
    return ort


def require_provider(ort: Any, provider: str, target: str) -> list[Any]:
    """Raise TargetUnsupported where this build lacks the provider; return its devices where it comes from a plugin."""
    if provider == providers.CPU:
        return []
    if _memory(provider) == "cuda":
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # number devices as nvidia-smi does
        if hasattr(ort, "preload_dlls"):
            ort.preload_dlls()  # finds the CUDA and cuDNN wheels; since 1.21
    devices = plugins.plugin_devices(ort, provider)
    if not devices and provider not in ort.get_available_providers():
        reason, fix = providers.missing_reason(ort, provider)
        raise TargetUnsupported(f"{target} cannot run: {reason}.", fix)
    return devices


def _create(ort: Any, model: Path, made: Any, provider: str, chosen: dict[str, str], plugin: Any) -> Any:
    """Make the session with the one provider, and say in one sentence why not."""
    by_name: dict[str, Any] = {"providers": [provider], "provider_options": [chosen]}
    if plugin is not None:
        made.add_provider_for_devices([plugin], chosen)
        by_name = {}
    try:
        # Unless told not to, the Python layer would try again with the CPU, whatever the session's options say.
        session = ort.InferenceSession(str(model), made, enable_fallback=0, **by_name)
    except Exception as error:
        text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", "", first_line(error))
        refused = "fallback to CPU EP has been explicitly disabled" in str(error)
        if refused or (provider != providers.CPU and providers.missing_libraries(provider, providers.cuda_of(ort))):
            why = f"{provider} does not take every node of {model.name}" if refused else text
            raise _unsupported(ort, provider, why) from error
        raise ModelRejected(f"onnxruntime cannot load {model.name} with {provider}: {text}.") from error
    used = session.get_providers()
    if not used or used[0] != provider:
        raise _unsupported(ort, provider, f"onnxruntime put the session on {used[0] if used else 'nothing'}")
    return session


def _unsupported(ort: Any, provider: str, why: str) -> TargetUnsupported:
    """Name the libraries that the loader does not find: without them a provider is quietly left out."""
    target = providers.target_of(provider)
    absent = providers.missing_libraries(provider, providers.cuda_of(ort))
    if not absent:
        return TargetUnsupported(f"{target} cannot run: {why}.")
    fix = "Install NVIDIA's driver." if "libcuda.so.1" in absent else ""
    if provider in providers.PACKAGES and absent != ["libcuda.so.1"]:
        fix = f"{fix} The other libraries come with {providers.PACKAGES[provider]}.".strip()
    return TargetUnsupported(
        f"{target} cannot run: {provider} could not be loaded; {', '.join(absent)} not found.", fix
    )


def _memory(provider: str) -> str:
    return "cuda" if provider in ("CUDAExecutionProvider", "TensorrtExecutionProvider") else "cpu"


def _devices(provider: str, name: str | None) -> tuple[str, ...]:
    if provider == providers.CPU:
        return (processor_name(),)
    return (name,) if name is not None else ()


def _math(provider: str, precision: str, session: Any, capability: tuple[int, int] | None) -> str | None:
    """What fp32 weights are computed in on NVIDIA: tf32 needs Ampere (compute capability 8) and the mode switched on."""
    if provider == "CUDAExecutionProvider":
        on = session.get_provider_options().get(provider, {}).get("use_tf32", "1") == "1"
    elif provider == "TensorrtExecutionProvider":
        if precision in ("fp16", "bf16", "int8"):
            return None  # TensorRT chooses layer by layer and does not tell
        on = precision != "fp32"
    else:
        return None
    if on and capability is None:
        return None
    return "tf32" if on and capability is not None and capability[0] >= 8 else "fp32"


def _thread_count() -> int | None:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return None


BACKEND = OnnxRuntimeBackend()
