"""A loaded onnxruntime session: buffers bound once, host to host, one thread per slot for requests in flight."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backends.base import Array, InferenceFailed, ModelRejected, Report, TensorInfo
from backends.onnxruntime.options import FAST_MATH
from backends.onnxruntime.placement import Profile, node_shares, read_profile
from backends.onnxruntime.providers import CPU, target_of
from backends.slots import SlotThreads, ThreadedSession, first_line
from backends.tensors import allocate, require_like, write

DTYPES = {
    "float": "float32",
    "float16": "float16",
    "double": "float64",
    "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
DEVICE_MEMORY = {"CUDAExecutionProvider": "cuda", "TensorrtExecutionProvider": "cuda"}


def tensor_info(argument: Any, shape: Sequence[Any] | None = None) -> TensorInfo:
    """Describe an input or output; free sizes of an output are 0. Raises ModelRejected for what is no plain tensor."""
    kind = str(argument.type)
    dtype = DTYPES.get(kind[len("tensor(") : -1]) if kind.startswith("tensor(") else None
    if dtype is None:
        raise ModelRejected(f"{argument.name!r} is a {kind}; only tensors of plain numbers can be measured.")
    sizes = shape if shape is not None else argument.shape
    return TensorInfo(argument.name, dtype, tuple(size if isinstance(size, int) else 0 for size in sizes))


class OnnxRuntimeSession(ThreadedSession):
    """See backends.base.Session. One onnxruntime session serves all slots; each slot has its own binding and buffers."""

    preferred_slots = 1  # intra-op threads already use every core

    def __init__(
        self,
        ort: Any,
        session: Any,
        provider: str,
        inputs: tuple[TensorInfo, ...],
        load_ms: float,
        facts: dict[str, Any],
    ) -> None:
        self._ort = ort
        self._session: Any = session
        self._provider = provider
        self._facts = facts
        self.inputs = inputs
        self.outputs = tuple(tensor_info(output) for output in session.get_outputs())
        self.load_ms: float | None = load_ms
        self.compile_ms: float | None = None
        self._fixed = all(0 not in output.shape or not output.shape for output in self.outputs)
        self._nodes = node_shares(session)
        self._profile: Profile | None = None
        self._bindings: list[Any] = []
        self._in: list[list[Array]] = []
        self._out: list[list[Array]] = []
        self._device_in: list[list[Any]] = []

    def prepare(self, slots: int) -> None:
        """Allocate and bind the buffers of each slot."""
        for _ in range(slots):
            self._in.append(allocate(self.inputs))
            self._out.append(allocate(self.outputs) if self._fixed else [])
            self._device_in.append([])
        if self._provider == CPU:
            self._bindings = [self._bind(slot) for slot in range(slots)]
        elif self._provider in DEVICE_MEMORY:
            try:
                self._bindings = [self._bind(slot) for slot in range(slots)]
            except Exception:  # a build that keeps its device memory from Python; run() copies both ways itself
                self._device_in = [[] for _ in range(slots)]
        self._threads = SlotThreads(slots, self.infer)

    def _bind(self, slot: int) -> Any:
        value = self._ort.OrtValue
        binding = self._session.io_binding()
        memory = DEVICE_MEMORY.get(self._provider)
        for info, buffer in zip(self.inputs, self._in[slot], strict=True):
            if memory is None:
                bound = value.ortvalue_from_numpy(buffer)  # shares the buffer's memory: no copy
            else:
                # A host value would be copied to the device here, once, and the timed run would leave that copy out.
                index = self._facts["device_index"]
                bound = value.ortvalue_from_shape_and_type(list(info.shape), buffer.dtype.type, memory, index)
                self._device_in[slot].append(bound)
            binding.bind_ortvalue_input(info.name, bound)
        for position, info in enumerate(self.outputs):
            if self._fixed:
                binding.bind_ortvalue_output(info.name, value.ortvalue_from_numpy(self._out[slot][position]))
        return binding

    def infer(self, slot: int, inputs: Sequence[Array]) -> Sequence[Array]:
        """Write, run, read: host to host. On CUDA both copies are inside."""
        try:
            if not self._bindings:  # providers whose memory onnxruntime hides: run() copies both ways itself
                require_like(self._in[slot], inputs)
                named = {info.name: array for info, array in zip(self.inputs, inputs, strict=True)}
                outputs: Sequence[Array] = self._session.run(None, named)
                return outputs
            binding = self._bindings[slot]
            if self._device_in[slot]:  # from the caller's memory to the device: one more copy here would be ours alone
                require_like(self._in[slot], inputs)
                for device, host in zip(self._device_in[slot], inputs, strict=True):
                    device.update_inplace(host)
            else:
                write(self._in[slot], inputs)
            if not self._fixed:
                for info in self.outputs:  # else the binding insists on the size of the last answer
                    binding.bind_output(info.name, "cpu")
            self._session.run_with_iobinding(binding)
            if self._fixed:
                return self._out[slot]
            found: Sequence[Array] = binding.copy_outputs_to_cpu()
            return found
        except InferenceFailed:
            raise
        except Exception as error:
            raise InferenceFailed(f"onnxruntime failed: {first_line(error)}.") from error

    def report(self) -> Report:
        """Providers, placement, precision and threads as the session tells them. Ends the profile, where one runs."""
        providers = tuple(self._session.get_providers())
        nodes = self._nodes
        method = "onnxruntime graph assignment" if nodes else None
        times = None
        profile = self._end_profile()
        if profile is not None:
            nodes, times = profile.kernels, profile.time
            method = "onnxruntime profile of executed kernels"
        target: str | None = target_of(providers[0])
        if self._provider.endswith(".AUTO"):
            target = None  # a policy, not a device
        elif nodes and self._provider not in nodes:
            target = target_of(max(nodes, key=lambda name: nodes[name]))
        return Report(
            runtime="onnxruntime",
            runtime_version=str(self._ort.__version__),
            target=target,
            devices=self._facts["devices"],
            precision=self._precision(),
            threads=self._facts["threads"],
            placement_nodes=nodes,
            placement_time=times,
            placement_method=method,
            details={
                "providers": list(providers),
                "provider_options": self._session.get_provider_options().get(self._provider, {}),
                "package": self._facts["package"],
                "file_precision": self._facts["file_precision"],
                "threads_method": self._facts["threads_method"],
                "cpu_fallback": self._facts["cpu_fallback"],
                "call": "run_with_iobinding" if self._bindings else "run",
                "output_buffers": "prebound" if self._fixed else "allocated by the runtime in each request",
                "math_modes": self._facts["math_modes"],
                "time_by_precision": profile.time_by_precision if profile is not None else None,
            },
        )

    def _precision(self) -> str | None:
        precision: str | None = self._facts["file_precision"]
        if self._provider == CPU:
            if self._facts["math_modes"].get(FAST_MATH, "0") != "0":
                return None  # bf16 where the processor has it and the kernel knows it; onnxruntime does not tell
            if precision not in ("fp16", "bf16"):
                return precision
            # Few CPU kernels exist in half precision; only a profile shows whether casts to fp32 were put in.
            return None if self._profile is None else ("mixed" if self._profile.casts_inserted else precision)
        if self._provider in DEVICE_MEMORY:
            math: str | None = self._facts["math"]
            return math if precision == "fp32" else precision
        return None

    def _end_profile(self) -> Profile | None:
        if self._facts["profiling"] and self._profile is None:
            self._facts["profiling"] = False
            self._profile = read_profile(Path(self._session.end_profiling()))
        return self._profile

    def close(self) -> None:
        """Release bindings, buffers and the session."""
        if self._threads is not None:
            self._threads.close()
        self._bindings.clear()
        self._device_in.clear()
        self._in.clear()
        self._out.clear()
        self._session = None
