"""The TensorFlow Lite backend: probe and load with the kernels or the delegate that the target names."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backends.addition import run_addition
from backends.base import (
    Array,
    BackendError,
    LoadOptions,
    ModelRejected,
    OptionUnsupported,
    TargetStatus,
    TargetUnsupported,
)
from backends.slots import first_line
from backends.tensors import pin, processor_name, require_counts, require_file, require_names
from backends.tflite.placement import nodes_of
from backends.tflite.runtime import DELEGATE, RESOLVERS, Runtime, explain, import_runtime, interpreter_arguments
from backends.tflite.session import TfliteSession, Timer
from backends.tflite.slicing import Part, time_shares

# y = x + x with x float32[1,2], one ADD node (a test writes it again from the schema and compares).
PROBE = bytes.fromhex(
    "1800000054464c3300000e00140010000c000800000004000e0000001000000018000000e800000003000000010000000400000020ffffff"
    "01000000100000000c00140010000c00080004000c00000010000000500000005400000058000000010000001400000000000e0014000000"
    "10000c000b0004000e000000100000000000000b0c0000001000000078ffffff010000000100000002000000000000000000000001000000"
    "010000000100000000000000020000003400000004000000e0ffffff080000000c0000000100000079000000020000000100000002000000"
    "0c000c0008000000000004000c000000080000000c0000000100000078000000020000000100000002000000010000000800000004000400"
    "04000000"
)


class TfliteBackend:
    """See backends.base.Backend. Beside the listed target there are cpu_builtin (no XNNPACK), cpu_reference (slow,
    for checking results) and delegate:LIBRARY, all by name."""

    name = "tflite"
    formats: tuple[str, ...] = ("tflite",)

    def targets(self) -> tuple[str, ...]:
        """What a plain run measures; the other kernels and delegates are asked for by name."""
        return ("cpu",)

    def target_named(self, name: str) -> str | None:
        """The CPU with one of its sets of kernels, or delegate:LIBRARY."""
        return name if name in RESOLVERS or name.removeprefix(DELEGATE) not in ("", name) else None

    def default_precision(self, target: str) -> str | None:
        """The kernels of the CPU compute in the file's types; a delegate may do otherwise."""
        return "fp32" if target in RESOLVERS else None

    def probe(self, target: str, device_index: int = 0) -> TargetStatus:
        """Construct an interpreter over one addition and invoke it: importing alone proves nothing."""
        verified = target in RESOLVERS
        version = None
        try:
            version = import_runtime().version
            with tempfile.TemporaryDirectory(prefix="weighbridge-probe-") as folder:
                model = Path(folder) / "probe.tflite"
                model.write_bytes(PROBE)
                options = LoadOptions(precision="default", device_index=device_index)
                report = run_addition(self.load(model, "tflite", target, options), target)
        except BackendError as error:
            return TargetStatus("tflite", target, False, error.what, error.fix or None, verified, None, version)
        details = {"package": report.runtime, "xnnpack_share": report.details["xnnpack_share"]}
        return TargetStatus("tflite", target, True, None, None, verified, report.devices[0], version, details)

    def load(self, model: Path, model_format: str, target: str, options: LoadOptions) -> TfliteSession:
        """Construct the first interpreter, pin the shapes, allocate."""
        if model_format != "tflite":
            raise ModelRejected(f"The tflite backend reads tflite files, not {model_format}.")
        require_file(model)
        require_counts(options)
        if options.device_index:
            raise OptionUnsupported(
                "TensorFlow Lite has no device numbers.", "Name the device in the delegate's options."
            )
        if options.streams not in (None, 1):
            raise OptionUnsupported(
                "TensorFlow Lite has no streams.", "Ask for several requests in flight (slots) instead."
            )
        runtime = import_runtime()
        with model.open("rb") as file:
            head = file.read(8)
        if head[4:] != b"TFL3":
            raise ModelRejected(f"{model.name} is no TensorFlow Lite file (it lacks the mark TFL3).")

        def make() -> tuple[Any, int, float, float]:
            return _interpreter(runtime, model, target, options)

        interpreter, own, load_ms, compile_ms = make()
        session = TfliteSession(
            runtime,
            lambda: make()[:2],
            target,
            options.threads,
            interpreter,
            own,
            load_ms,
            compile_ms,
            processor_name(),
            _timer(runtime, model, target, options),
        )
        try:
            _require_delegate(session, target, model)
            _require_precision(session, options.precision, target, model)
        except BackendError:
            session.close()
            raise
        return session


def _interpreter(runtime: Runtime, model: Path, target: str, options: LoadOptions) -> tuple[Any, int, float, float]:
    """Return (interpreter ready to run, its node count before the default delegate, load ms, allocate ms)."""
    start = time.perf_counter_ns()
    arguments = interpreter_arguments(runtime, target, options)  # loads a delegate's library
    try:
        interpreter = runtime.module.Interpreter(model_path=str(model), **arguments)
    except Exception as error:  # a runtime built for another numpy raises anything
        trap = explain(runtime, error)
        if trap is not None:
            raise trap from error
        raise ModelRejected(f"{runtime.package} cannot read {model.name}: {first_line(error)}.") from error
    loaded = time.perf_counter_ns()
    own = len(nodes_of(interpreter) or ())
    shapes = _shapes(interpreter, options)
    start_allocation = time.perf_counter_ns()
    try:
        for index, shape in shapes.items():
            interpreter.resize_tensor_input(index, list(shape))
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError) as error:
        wanted = "".join(f" with an input of {'x'.join(map(str, shape))}" for shape in shapes.values())
        raise ModelRejected(f"{runtime.package} cannot prepare {model.name}{wanted}: {first_line(error)}.") from error
    done = time.perf_counter_ns()
    return interpreter, own, (loaded - start) / 1e6, (done - start_allocation) / 1e6


def _timer(runtime: Runtime, model: Path, target: str, options: LoadOptions) -> Timer | None:
    """In a placement pass, what measures the share of time by who computes; else None."""
    folder = options.profile_dir
    if folder is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)

    def timed(parts: Sequence[Part], inputs: Sequence[Array]) -> dict[str, float] | None:
        return time_shares(model, folder, parts, lambda copy: _interpreter(runtime, copy, target, options)[0], inputs)

    return timed


def _shapes(interpreter: Any, options: LoadOptions) -> dict[int, tuple[int, ...]]:
    """The inputs to resize, by tensor index. A file's free sizes are -1 in its shape signature.

    Files often forget the signature, so the first size (the batch) may change wherever the network takes it.
    """
    details = interpreter.get_input_details()
    require_names(options.input_shapes, [str(detail["name"]) for detail in details])
    shapes: dict[int, tuple[int, ...]] = {}
    for detail in details:
        now = tuple(int(size) for size in detail["shape"])
        declared: list[int | str | None] = [int(size) for size in detail.get("shape_signature", now)] or list(now)
        asked = options.input_shapes.get(str(detail["name"]))
        if asked is not None and len(asked) == len(declared) and declared:
            declared[0] = None
        wanted = pin(str(detail["name"]), declared, asked)
        if wanted != now:
            shapes[int(detail["index"])] = wanted
    return shapes


def _require_delegate(session: TfliteSession, target: str, model: Path) -> None:
    if target.startswith(DELEGATE) and session.delegated_share == 0.0:
        raise TargetUnsupported(
            f"{target} took none of the nodes of {model.name}; everything would have run on the CPU.",
            "Take an artifact that is made for this delegate.",
        )


def _require_precision(session: TfliteSession, precision: str, target: str, model: Path) -> None:
    """The interpreter computes as the file says; a delegate may do otherwise and is not judged here."""
    if precision in ("default", "fp32") or target.startswith(DELEGATE):
        return
    found = session.report().precision
    if precision == "int8" and found in ("int8", "mixed", None):
        return
    raise OptionUnsupported(
        f"TensorFlow Lite computes in the precision of the file; {model.name} has {found or 'an unknown one'}, "
        f"and {precision} was asked for."
    )


BACKEND = TfliteBackend()
