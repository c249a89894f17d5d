"""A compiled OpenVINO model: one infer request per slot over prebound host memory."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from backends.base import Array, InferenceFailed, ModelRejected, Report, TensorInfo
from backends.openvino.placement import PRECISIONS, SPLIT, WHOLE_GRAPH, LayerTimes, layer_times, node_shares
from backends.openvino.precision import LayerPrecisions, effective_precision, layer_precisions, layers_of
from backends.slots import first_line
from backends.tensors import allocate, write

FAILED_REQUEST_POLL_S = 1.0
RELEASE_S, RELEASE_POLL_S = 5.0, 0.0002


def tensor_info(port: Any) -> TensorInfo:
    """Describe an input or output of a model; sizes that are still free are 0. Raises ModelRejected."""
    name = tensor_name(port)
    kind = port.get_element_type().get_type_name()
    try:
        dtype = np.dtype(port.get_element_type().to_dtype()).name
    except (RuntimeError, KeyError, TypeError) as error:
        raise ModelRejected(f"{name!r} holds {kind}; only tensors of plain numbers can be measured.") from error
    shape = port.get_partial_shape()
    if shape.rank.is_dynamic:
        raise ModelRejected(f"{name!r} has no fixed number of dimensions.", "Give the shape of every input.")
    return TensorInfo(name, dtype, tuple(0 if size.is_dynamic else size.get_length() for size in shape))


def tensor_name(port: Any) -> str:
    """The name that the source file gives the tensor. OpenVINO keeps every alias, in no order; its node keeps the file's."""
    names = port.get_names()
    node = port.get_node().get_friendly_name().split("/sink_port_")[0]
    return str(node if node in names or not names else port.get_any_name())


class OpenVinoSession:
    """See backends.base.Session."""

    def __init__(
        self,
        ov: Any,
        compiled: Any,
        device: str,
        load_ms: float,
        compile_ms: float,
        version: str,
        profiling: bool,
        split: Mapping[str, str] | None = None,
    ) -> None:
        self._ov = ov
        self._compiled: Any = compiled
        self._device = device
        self._version = version
        self._profiling = profiling
        self._split = split or {}  # of HETERO: the device of each operation
        self.inputs = tuple(tensor_info(port) for port in compiled.inputs)
        self.outputs = tuple(tensor_info(port) for port in compiled.outputs)
        self.load_ms: float | None = load_ms
        self.compile_ms: float | None = compile_ms
        self.preferred_slots = int(self._property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") or 1)
        self._fixed = [0 not in output.shape or not output.shape for output in self.outputs]
        self._requests: list[Any] = []
        self._in: list[list[Array]] = []
        self._out: list[list[Array]] = []
        self._busy: list[bool] = []
        self._done: SimpleQueue[int] = SimpleQueue()
        self._calls: list[Any] = []  # weak references to what the requests call back

    def prepare(self, slots: int) -> None:
        """Make the requests and bind each to host buffers that it shares (no copy by the runtime on CPU)."""
        for slot in range(slots):
            request = self._compiled.create_infer_request()
            buffers = allocate(self.inputs)
            for position, buffer in enumerate(buffers):
                request.set_input_tensor(position, self._ov.Tensor(buffer, shared_memory=True))
            results: list[Array] = []
            for position, info in enumerate(self.outputs):
                results.append(np.zeros(info.shape, dtype=info.dtype))
                if self._fixed[position]:
                    request.set_output_tensor(position, self._ov.Tensor(results[position], shared_memory=True))
            if slots > 1:
                call = partial(self._done.put)
                self._calls.append(weakref.ref(call))
                request.set_callback(call, slot)
                del call
            self._requests.append(request)
            self._in.append(buffers)
            self._out.append(results)
            self._busy.append(False)

    def infer(self, slot: int, inputs: Sequence[Array]) -> Sequence[Array]:
        """Write, run, read: host to host, in the calling thread."""
        write(self._in[slot], inputs)
        try:
            self._requests[slot].infer(share_outputs=True)
        except RuntimeError as error:
            raise InferenceFailed(f"OpenVINO failed: {reason_of(error)}.") from error
        return self._outputs(slot)

    def submit(self, slot: int, inputs: Sequence[Array]) -> None:
        """Start the slot's request on OpenVINO's own threads."""
        if self._busy[slot]:
            raise InferenceFailed(f"Slot {slot} is still busy.", "Wait for its answer before the next request.")
        write(self._in[slot], inputs)
        try:
            self._requests[slot].start_async()
        except RuntimeError as error:
            raise InferenceFailed(f"OpenVINO failed: {reason_of(error)}.") from error
        self._busy[slot] = True

    def next_done(self) -> int:
        """Return the slot of a request that has ended, whichever was first. Raises InferenceFailed where none runs."""
        while any(self._busy):
            try:
                slot = self._done.get(timeout=FAILED_REQUEST_POLL_S)
            except Empty:
                # OpenVINO does not call back for a request that failed.
                ended = (s for s, busy in enumerate(self._busy) if busy and self._requests[s].wait_for(0))
                slot = next(ended, -1)
            if slot >= 0 and self._busy[slot]:
                return slot
        raise InferenceFailed("No request is in flight.")

    def done_within(self, timeout_s: float) -> int | None:
        """Return the slot of a request that has ended, None after so many seconds. Failed ones: see `next_done`."""
        try:
            slot = self._done.get(timeout=max(0.0, timeout_s))
        except Empty:
            return None
        return slot if self._busy[slot] else None

    def wait(self, slot: int) -> Sequence[Array]:
        """Wait for the slot's request; its outputs are then in host memory."""
        if not self._busy[slot]:
            raise InferenceFailed(f"Slot {slot} has no request to wait for.")
        self._busy[slot] = False
        try:
            self._requests[slot].wait()
        except RuntimeError as error:
            raise InferenceFailed(f"OpenVINO failed: {reason_of(error)}.") from error
        return self._outputs(slot)

    def _outputs(self, slot: int) -> Sequence[Array]:
        results = self._out[slot]
        for position, fixed in enumerate(self._fixed):
            if not fixed:
                results[position] = self._requests[slot].get_output_tensor(position).data
        return results

    def report(self) -> Report:
        """Devices, precision, threads and placement as the compiled model tells them."""
        devices = tuple(str(name).strip("()") for name in (self._property("EXECUTION_DEVICES") or ()))
        kinds = sorted({name.split(".")[0].lower() for name in devices})
        layers = self._layers()
        threads, streams = self._property("INFERENCE_NUM_THREADS"), self._property("NUM_STREAMS")
        placement = {devices[0]: 1.0} if len(devices) == 1 else node_shares(self._split)
        times = self._times() if self._profiling else None
        return Report(
            runtime="openvino",
            runtime_version=self._version,
            target=kinds[0] if len(kinds) == 1 else ("mixed" if kinds else None),
            devices=devices,
            precision=effective_precision(self._hint(), layers),
            threads=int(threads) if threads else None,
            streams=int(streams) if streams else None,
            placement_nodes=placement,
            placement_time=None if times is None else ({devices[0]: 1.0} if len(devices) == 1 else times.by_device),
            placement_method=(WHOLE_GRAPH if len(devices) == 1 else SPLIT) if placement else None,
            details={
                "asked_device": self._device,
                "inference_precision_hint": self._hint(),
                "layer_precisions": layers.counts,
                "performance_hint": _text(self._property("PERFORMANCE_HINT")),
                "execution_mode": _text(self._property("EXECUTION_MODE_HINT")),
                "cpu_pinning": self._property("ENABLE_CPU_PINNING"),
                "loaded_from_cache": self._property("LOADED_FROM_CACHE"),
                "math_modes": {
                    "INFERENCE_PRECISION_HINT": self._hint(),
                    "DYNAMIC_QUANTIZATION_GROUP_SIZE": self._dynamic_group(),
                },
                "time_by_layer_type": times.by_type if times is not None else None,
                "time_by_precision": times.by_precision if times is not None else None,
            },
        )

    def _property(self, name: str) -> Any:
        """A property of the compiled model; AUTO keeps those of the device that it chose one level below."""
        try:
            return self._compiled.get_property(name)
        except RuntimeError:
            pass
        try:
            below = self._compiled.get_property("DEVICE_PROPERTIES")
            return next(iter(below.values())).get(name)
        except (RuntimeError, StopIteration, AttributeError):
            return None

    def _hint(self) -> str | None:
        value = self._property("INFERENCE_PRECISION_HINT")
        if value is None:
            return None
        name = value.get_type_name() if hasattr(value, "get_type_name") else str(value)
        return PRECISIONS.get(name)

    def _layers(self) -> LayerPrecisions:
        try:
            return layer_precisions(layers_of(self._compiled.get_runtime_model()), bool(self._dynamic_group()))
        except RuntimeError:
            return LayerPrecisions()

    def _dynamic_group(self) -> int | None:
        """How many activations share a scale where they are made int8 as they come; 0: they stay floats."""
        value = self._property("DYNAMIC_QUANTIZATION_GROUP_SIZE")
        return None if value is None else int(value)

    def _times(self) -> LayerTimes:
        layers = [layer for request in self._requests for layer in request.get_profiling_info()]
        return layer_times(layers, self._split)

    def close(self) -> None:
        """Wait for what still runs, and release requests and model."""
        for slot, busy in enumerate(self._busy):
            if busy:
                self._requests[slot].wait()
        self._busy.clear()
        self._requests.clear()
        # OpenVINO's thread may be the last that holds a request. It needs Python's lock to let go of the call back, and
        # releasing the model waits for that thread with the lock held.
        patience = time.monotonic() + RELEASE_S
        while any(call() is not None for call in self._calls) and time.monotonic() < patience:
            time.sleep(RELEASE_POLL_S)
        self._out.clear()
        self._in.clear()
        self._compiled = None


def reason_of(error: BaseException) -> str:
    """The telling line of OpenVINO's message: it begins with lines that only name its own source files."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [
        line for line in lines if not line.startswith(("Exception from", "Check '", "While validating"))
    ] or lines
    text = telling[0] if telling else type(error).__name__
    if text.endswith(":") and len(telling) > 1:
        text = f"{text} {telling[1]}"
    named = re.sub(r"""["'][^"']*/([^"'/]+)["']""", r"\1", text)  # file names without our folders
    return first_line(RuntimeError(named))


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(getattr(value, "name", value))
