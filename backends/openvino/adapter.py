"""The OpenVINO backend: probe and load on one device; its math mode is always set, and read back."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any

from backends.addition import run_addition
from backends.base import (
    BackendError,
    LoadOptions,
    ModelRejected,
    OptionUnsupported,
    RuntimeMissing,
    TargetStatus,
    TargetUnsupported,
)
from backends.openvino.placement import split_of
from backends.openvino.session import OpenVinoSession, reason_of, tensor_info
from backends.slots import first_line
from backends.tensors import pin, require_counts, require_file, require_names

DEVICES = {"cpu": "CPU", "gpu": "GPU", "npu": "NPU", "auto": "AUTO"}
# Plugins that leave the choice to OpenVINO, or share the work out; their names may go on with a list of devices.
CHOOSING = ("AUTO", "HETERO", "MULTI")
LISTED = re.compile(r"(auto|hetero|multi):(cpu|gpu|npu)(\.\d+)?(,(cpu|gpu|npu)(\.\d+)?)*")
# AUTO would let the CPU answer until another device is ready: one number of two devices.
ONE_DEVICE = {"ENABLE_STARTUP_FALLBACK": False}
HINTS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}
CAPABILITIES = {"fp32": "FP32", "bf16": "BF16", "fp16": "FP16"}  # OPTIMIZATION_CAPABILITIES
FIXES = {
    "GPU": "Install Intel's compute runtime (Debian: intel-opencl-icd, with ocl-icd-libopencl1) and be in group render.",
    "NPU": "Install Intel's Linux NPU driver (or the Windows one) on a Core Ultra processor, and be in group render.",
}
NODES = {"GPU": "/dev/dri", "NPU": "/dev/accel"}  # where the Linux kernel's drivers put their devices
# y = x + x with x float32[1,2] as OpenVINO IR; needs no ONNX front end.
PROBE = """<?xml version="1.0"?><net name="probe" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,2" element_type="f32"/>
<output><port id="0" precision="FP32" names="x"><dim>1</dim><dim>2</dim></port></output></layer>
<layer id="1" name="y" type="Add" version="opset1"><data auto_broadcast="numpy"/>
<input><port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port>
<port id="1" precision="FP32"><dim>1</dim><dim>2</dim></port></input>
<output><port id="2" precision="FP32" names="y"><dim>1</dim><dim>2</dim></port></output></layer>
<layer id="2" name="r" type="Result" version="opset1"><input><port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port>
</input></layer></layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="0" from-port="0" to-layer="1" to-port="1"/><edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>
</edges></net>"""


class OpenVinoBackend:
    """See backends.base.Backend. Beside the listed targets there are auto, hetero and multi with a list: hetero:gpu,cpu."""

    name = "openvino"
    formats: tuple[str, ...] = ("onnx", "openvino")

    def targets(self) -> tuple[str, ...]:
        """The device kinds that OpenVINO's plugins serve, and AUTO, which chooses among them."""
        return tuple(DEVICES)

    def target_named(self, name: str) -> str | None:
        """One of `targets()`, or a choosing plugin with its list of devices."""
        return name if name in DEVICES or LISTED.fullmatch(name) else None

    def default_precision(self, target: str) -> str | None:
        """The device chooses: bf16 on a CPU that has it, else fp32; fp16 on graphics. The probe's details tell which."""
        return None

    def probe(self, target: str, device_index: int = 0) -> TargetStatus:
        """Compile one addition for the device and run it."""
        verified = target in ("cpu", "auto")
        version = None
        try:
            ov = import_runtime()
            version = version_of(ov)
            core = ov.Core()
            device = device_of(core, target, device_index)
            compiled = compile_model(
                core, core.read_model(PROBE.encode()), device, ONE_DEVICE if kind_of(device) == "AUTO" else {}
            )
            session = OpenVinoSession(ov, compiled, device, 0.0, 0.0, version, profiling=False)
            report = run_addition(session, target)
            used = report.devices[0] if report.devices else device
            name = str(core.get_property(used, "FULL_DEVICE_NAME"))
            details = {
                "execution_devices": list(report.devices),
                "capabilities": list(core.get_property(used, "OPTIMIZATION_CAPABILITIES")),
                "default_precision": report.precision,
            }
            if kind_of(device) in CHOOSING:
                verified = report.target == "cpu"
        except BackendError as error:
            return TargetStatus("openvino", target, False, error.what, error.fix or None, verified, None, version)
        except RuntimeError as error:
            return TargetStatus("openvino", target, False, f"{reason_of(error)}.", None, verified, None, version)
        return TargetStatus("openvino", target, True, None, None, verified, name, version, details)

    def load(self, model: Path, model_format: str, target: str, options: LoadOptions) -> OpenVinoSession:
        """Read, pin the shapes, compile for the one device."""
        if model_format not in self.formats:
            raise ModelRejected(f"OpenVINO reads {' and '.join(self.formats)} files here, not {model_format}.")
        require_file(model)
        require_counts(options)
        ov = import_runtime()
        start = time.perf_counter_ns()  # before the first question to the core, which loads the device's plugin
        core = ov.Core()
        device = device_of(core, target, options.device_index)
        configuration = configuration_of(core, device, options)
        if options.cache_dir is not None:
            core.set_property({"CACHE_DIR": str(options.cache_dir)})
        try:
            read = core.read_model(str(model))
        except RuntimeError as error:
            raise ModelRejected(f"OpenVINO cannot read {model.name}: {reason_of(error)}.") from error
        loaded = time.perf_counter_ns()
        reshape(read, options)
        compiled = compile_model(core, read, device, configuration, model.name)
        done = time.perf_counter_ns()
        load_ms, compile_ms = (loaded - start) / 1e6, (done - loaded) / 1e6
        profiling = options.profile_dir is not None
        split = split_of(core, read, device) if kind_of(device) == "HETERO" else None
        session = OpenVinoSession(ov, compiled, device, load_ms, compile_ms, version_of(ov), profiling, split)
        if options.precision == "int8" and "int8" not in session.report().details["layer_precisions"]:
            session.close()
            raise OptionUnsupported(
                f"{model.name} holds no quantised layers, so OpenVINO does not run it in int8.",
                "Take an artifact whose precision is int8.",
            )
        return session


def import_runtime() -> Any:
    """Import openvino with its telemetry kept out. Raises RuntimeMissing."""
    # Reading a model sends statistics and leaves files in the home folder unless this package is absent.
    if "openvino_telemetry" not in sys.modules:
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # None makes an import fail
    try:
        import openvino as ov
    except Exception as error:  # a missing native library raises more than ImportError
        raise RuntimeMissing(
            f"OpenVINO cannot be imported in {sys.executable} ({first_line(error)}).",
            f"Install it: {sys.executable} -m pip install openvino.",
        ) from error
    return ov


def version_of(ov: Any) -> str:
    """The release without the build's hash: "2026.4.1"."""
    return str(ov.__version__).split("-")[0]


def device_of(core: Any, target: str, index: int) -> str:
    """OpenVINO's name of the device. Raises TargetUnsupported with what the plugin says."""
    device = target.upper() if LISTED.fullmatch(target) else DEVICES.get(target)
    if device is None:
        raise TargetUnsupported(
            f"OpenVINO has no target {target!r}.",
            f"Its targets are {', '.join(DEVICES)}, and lists like hetero:gpu,cpu.",
        )
    if device == "CPU" or kind_of(device) in CHOOSING:
        if index:
            raise TargetUnsupported(f"OpenVINO has one {target}; there is no number {index}.")
        return device
    found = [name for name in core.available_devices if name.split(".")[0] == device]
    if not found:
        reason = f"OpenVINO sees no {device} device"
        try:
            core.get_property(device, "FULL_DEVICE_NAME")
        except RuntimeError as error:
            if "Cannot load library" in str(error):
                reason = f"OpenVINO's {device} plugin says: {reason_of(error)}"
        if sys.platform.startswith("linux") and not Path(NODES[device]).exists():
            reason += f"; the kernel offers no {NODES[device]}"
        raise TargetUnsupported(f"{target} cannot run: {reason}.", FIXES[device])
    if index >= len(found):
        raise TargetUnsupported(f"OpenVINO has {len(found)} {device} device(s); there is no number {index}.")
    return str(found[index])


def kind_of(device: str) -> str:
    """The plugin's name without its list of devices: "HETERO:GPU,CPU" is "HETERO"."""
    return device.split(":")[0]


def configuration_of(core: Any, device: str, options: LoadOptions) -> dict[str, Any]:
    """The properties to compile with. Raises OptionUnsupported for a precision that the device does not compute in."""
    made: dict[str, Any] = {}
    if options.precision == "int8":
        made["INFERENCE_PRECISION_HINT"] = "f32"  # what is not quantised in the file then stays fp32
    elif options.precision != "default":
        hint = HINTS.get(options.precision)
        if hint is None:
            raise OptionUnsupported(
                f"OpenVINO knows no precision {options.precision!r}.", "Use fp32, bf16, fp16, int8 or default."
            )
        if kind_of(device) not in CHOOSING:
            able = core.get_property(device, "OPTIMIZATION_CAPABILITIES")
            if CAPABILITIES[options.precision] not in able:
                raise OptionUnsupported(
                    f"OpenVINO's {device} here does not compute in {options.precision} (it has {', '.join(able)})."
                )
        made["INFERENCE_PRECISION_HINT"] = hint
    for name, value in (("INFERENCE_NUM_THREADS", options.threads), ("NUM_STREAMS", options.streams)):
        if value is not None:
            if device != "CPU" and (name == "INFERENCE_NUM_THREADS" or kind_of(device) in CHOOSING):
                raise OptionUnsupported(f"OpenVINO's {device} takes no {name}.")
            made[name] = value
    if kind_of(device) == "AUTO":
        made.update(ONE_DEVICE)
    if options.profile_dir is not None:
        made["PERF_COUNT"] = "YES"
    made.update(options.extra)
    return made


def reshape(model: Any, options: LoadOptions) -> None:
    """Pin every free dimension of the inputs: as asked, else 1. Raises ModelRejected."""
    names: dict[str, set[str]] = {}
    shapes: dict[Any, list[int]] = {}
    for position, port in enumerate(model.inputs):
        info = tensor_info(port)
        names[info.name] = set(port.get_names()) | {info.name}
        asked = next((options.input_shapes[name] for name in names[info.name] if name in options.input_shapes), None)
        shapes[position] = list(pin(info.name, info.shape, asked))
    require_names(options.input_shapes, [name for all_names in names.values() for name in all_names])
    if all(tensor_info(port).shape == tuple(shapes[position]) for position, port in enumerate(model.inputs)):
        return
    try:
        model.reshape(shapes)
    except RuntimeError as error:
        wanted = ", ".join("x".join(map(str, shape)) for shape in shapes.values())
        raise ModelRejected(f"The model cannot take the input shapes {wanted}: {reason_of(error)}.") from error


def compile_model(core: Any, model: Any, device: str, configuration: dict[str, Any], name: str = "the model") -> Any:
    """Compile, and tell a refused option from a refused model by OpenVINO's own words."""
    try:
        return core.compile_model(model, device, configuration)
    except (RuntimeError, TypeError) as error:
        text = str(error)
        if "property" in text and any(key in text for key in configuration):
            raise OptionUnsupported(f"OpenVINO refuses an option: {reason_of(error)}.") from error
        if "Cannot load library" in text:
            raise TargetUnsupported(f"{device} cannot run: {reason_of(error)}.", FIXES.get(device, "")) from error
        raise ModelRejected(f"OpenVINO cannot compile {name} for {device}: {reason_of(error)}.") from error


BACKEND = OpenVinoBackend()
