"""The Core ML backend: reads a package anywhere, compiles and predicts on macOS.

What happens on macOS follows coremltools' documentation and is not verified on hardware (`verified=False`).
"""

from __future__ import annotations

import logging
import platform
import sys
import tempfile
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
    TensorInfo,
)
from backends.coreml.plan import available_units, read_plan
from backends.coreml.session import CoreMLSession
from backends.coreml.specification import Specification, read_specification
from backends.slots import first_line
from backends.tensors import require_counts, require_file, require_names

UNITS = {"cpu_only": "CPU_ONLY", "cpu_and_gpu": "CPU_AND_GPU", "cpu_and_ne": "CPU_AND_NE", "all": "ALL"}
NEEDED = {"cpu_and_gpu": "gpu", "cpu_and_ne": "ane"}
HINTS = {
    "reshapeFrequency": ("ReshapeFrequency", ("Frequent", "Infrequent")),
    "specializationStrategy": ("SpecializationStrategy", ("Default", "FastPrediction")),
    "allowLowPrecisionAccumulationOnGPU": (None, ("true", "false")),
}


class CoreMLBackend:
    """See backends.base.Backend."""

    name = "coreml"
    formats: tuple[str, ...] = ("coreml",)

    def targets(self) -> tuple[str, ...]:
        """Which processors Core ML may use; the CPU is always among them."""
        return tuple(UNITS)

    def target_named(self, name: str) -> str | None:
        """One of `targets()`."""
        return name if name in UNITS else None

    def default_precision(self, target: str) -> str | None:
        """On the CPU alone fp32 stays fp32, in both kinds of Core ML files; other processors may compute in fp16."""
        return "fp32" if target == "cpu_only" else None

    def probe(self, target: str, device_index: int = 0) -> TargetStatus:
        """Convert, compile and predict one addition; away from macOS say what is missing, and what still works."""
        version = None
        try:
            require_system(target)
            ct = import_runtime()
            version = str(ct.__version__)
            with tempfile.TemporaryDirectory(prefix="weighbridge-probe-") as folder:
                package = Path(folder) / "probe.mlpackage"
                write_probe(ct, package)
                options = LoadOptions(precision="default", device_index=device_index)
                report = run_addition(self.load(package, "coreml", target, options), target)
        except BackendError as error:
            return TargetStatus("coreml", target, False, error.what, error.fix or None, False, None, version)
        details = {"units": sorted(available_units(ct)), "prefers": dict(report.placement_nodes or {})}
        return TargetStatus("coreml", target, True, None, None, False, platform.processor(), version, details)

    def load(self, model: Path, model_format: str, target: str, options: LoadOptions) -> CoreMLSession:
        """Read the specification (any system), then compile and load for the target's processors (macOS)."""
        if model_format != "coreml":
            raise ModelRejected(f"The coreml backend reads Core ML packages, not {model_format}.")
        require_file(model, folder=True)
        require_target(target)
        require_options(options)
        ct = import_runtime()
        start = time.perf_counter_ns()
        _, specification = read_specification(ct, model)
        load_ms = (time.perf_counter_ns() - start) / 1e6
        inputs = pinned(specification, options)
        require_precision(specification, options.precision, target, model)
        hints = hints_of(ct, options)
        require_system(target)
        have = available_units(ct)
        need = NEEDED.get(target)
        if need is not None and have and need not in have:
            raise TargetUnsupported(
                f"{target} cannot run: this Mac has no {need} that Core ML uses ({', '.join(have)})."
            )
        return _compile(ct, model, specification, inputs, target, hints, load_ms)


def _compile(
    ct: Any,
    model: Path,
    specification: Specification,
    inputs: tuple[TensorInfo, ...],
    target: str,
    hints: dict[str, Any],
    load_ms: float,
) -> CoreMLSession:
    """Compile into a folder of our own and load for the target's processors."""
    units = getattr(ct.ComputeUnit, UNITS[target])
    folder = tempfile.TemporaryDirectory(prefix="weighbridge-coreml-")
    start = time.perf_counter_ns()
    try:
        compiled = ct.utils.compile_model(str(model), str(Path(folder.name) / "model.mlmodelc"))
        loaded = ct.models.CompiledMLModel(compiled, compute_units=units, optimization_hints=hints or None)
    except Exception as error:  # coremltools raises plain Exception and RuntimeError
        folder.cleanup()
        raise ModelRejected(f"Core ML cannot compile {model.name}: {first_line(error)}.") from error
    compile_ms = (time.perf_counter_ns() - start) / 1e6
    precision = specification.precision
    if precision is None and target == "cpu_only" and specification.kind == "neuralNetwork":
        precision = "fp32"  # the older format is computed in fp32 on the CPU, in fp16 elsewhere
    facts = {
        "version": f"macOS {platform.mac_ver()[0]}",  # Core ML is part of the system and has no version of its own
        "coremltools": str(ct.__version__),
        "precision": precision,
        "kind": specification.kind,
        "specification_version": specification.version,
        "hints": {name: getattr(value, "name", value) for name, value in hints.items()},
    }
    plan = read_plan(ct, compiled, units)
    return CoreMLSession(
        loaded, inputs, specification.outputs, target, load_ms, compile_ms, facts, plan, folder.cleanup
    )


def import_runtime() -> Any:
    """Import coremltools without its warnings about missing native parts. Raises RuntimeMissing."""
    logging.getLogger("coremltools").setLevel(logging.ERROR)
    try:
        import coremltools as ct
    except Exception as error:
        raise RuntimeMissing(
            f"coremltools cannot be imported in {sys.executable} ({first_line(error)}).",
            f"Install it: {sys.executable} -m pip install coremltools.",
        ) from error
    return ct


def require_target(target: str) -> None:
    """Raise TargetUnsupported for a target that Core ML does not have."""
    if target not in UNITS:
        raise TargetUnsupported(f"Core ML has no target {target!r}.", f"Its targets are {', '.join(UNITS)}.")


def require_system(target: str) -> None:
    """Raise TargetUnsupported where Core ML, or the target's processor, does not exist."""
    require_target(target)
    if sys.platform != "darwin":
        raise TargetUnsupported(
            f"{target} cannot run: Core ML exists on macOS only, this machine runs {platform.system()} "
            f"on {platform.machine()}; here packages can be converted and read, not run.",
            "Run this backend on a Mac.",
        )
    if target == "cpu_and_ne":
        release = tuple(int(part) for part in platform.mac_ver()[0].split(".")[:1] if part.isdigit())
        if platform.machine() != "arm64":
            raise TargetUnsupported("cpu_and_ne cannot run: a Mac with an Intel processor has no neural engine.")
        if release < (13,):
            raise TargetUnsupported("cpu_and_ne cannot run: it needs macOS 13.", "Update macOS.")


def require_options(options: LoadOptions) -> None:
    """Core ML chooses threads, streams and devices itself. Raises OptionUnsupported where they are asked for."""
    require_counts(options)
    for name, value in (("threads", options.threads), ("streams", options.streams), ("device", options.device_index)):
        if value:
            raise OptionUnsupported(f"Core ML has no option for {name}; it chooses itself.")
    if options.precision not in ("fp32", "fp16", "int8", "default"):
        raise OptionUnsupported(
            f"Core ML knows no precision {options.precision!r}.", "Use fp32, fp16, int8 or default."
        )


def require_precision(specification: Specification, precision: str, target: str, model: Path) -> None:
    """Core ML computes in the file's own types. Raises OptionUnsupported where another precision is asked for."""
    found = specification.precision
    if precision == "default" or found is None or found == precision:
        return
    raise OptionUnsupported(
        f"Core ML computes in the types of the file; {model.name} holds {found}, {precision} was asked for.",
        f"Take an artifact whose precision is {precision}.",
    )


def hints_of(ct: Any, options: LoadOptions) -> dict[str, Any]:
    """Core ML's optimisation hints from `extra`, by their own names. Raises OptionUnsupported."""
    hints: dict[str, Any] = {}
    for name, value in options.extra.items():
        if name not in HINTS:
            raise OptionUnsupported(f"Core ML has no option {name!r}.", f"Its hints are {', '.join(HINTS)}.")
        kind, allowed = HINTS[name]
        if value not in allowed:
            raise OptionUnsupported(f"Core ML's {name} cannot be {value!r}.", f"It is one of {', '.join(allowed)}.")
        hints[name] = value == "true" if kind is None else getattr(getattr(ct, kind), value)
    return hints


def pinned(specification: Specification, options: LoadOptions) -> tuple[TensorInfo, ...]:
    """The inputs with the shapes to feed."""
    require_names(options.input_shapes, [info.name for info in specification.inputs])
    return tuple(
        TensorInfo(info.name, info.dtype, specification.shape_of(info, options.input_shapes.get(info.name)))
        for info in specification.inputs
    )


def write_probe(ct: Any, package: Path) -> None:
    """Write y = x + x, float32[1,2], as an .mlpackage. Works on every system."""
    from coremltools.converters.mil import Builder as mb  # noqa: N813, coremltools' own habit

    # mypy is told off: coremltools has no type hints.
    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 2))], opset_version=ct.target.macOS13)  # type: ignore[untyped-decorator]
    def addition(x: Any) -> Any:
        return mb.add(x=x, y=x, name="y")

    model = ct.convert(
        addition,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=ct.target.macOS13,
        skip_model_load=True,
    )
    model.save(str(package))


BACKEND = CoreMLBackend()
