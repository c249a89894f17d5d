"""Interpreters over one TensorFlow Lite file: one per slot, because an interpreter serves one request at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from backends.base import Array, InferenceFailed, Report, TensorInfo
from backends.slots import SlotThreads, ThreadedSession, first_line
from backends.tflite.placement import nodes_of, precision_of, shares
from backends.tflite.runtime import DELEGATE, Runtime
from backends.tflite.slicing import Part, parts_of

NODES = "nodes that the delegates replaced"
TIMES = "time by cutting the file where the delegates' parts end"
Timer = Callable[[Sequence[Part], Sequence[Array]], dict[str, float] | None]


def tensor_info(detail: dict[str, Any]) -> TensorInfo:
    """Describe one entry of get_input_details() or get_output_details()."""
    return TensorInfo(str(detail["name"]), np.dtype(detail["dtype"]).name, tuple(int(size) for size in detail["shape"]))


def output_info(interpreter: Any, detail: dict[str, Any]) -> TensorInfo:
    """Describe an output. One that is allocated in each run has no sizes yet: those that its signature leaves free are 0."""
    info = tensor_info(detail)
    try:
        interpreter.get_tensor(detail["index"])
    except ValueError:  # "Tensor data is null": the shape in the details is the file's, not that of these inputs
        signature = [int(size) for size in detail.get("shape_signature", ())] or [-1] * len(info.shape)
        return TensorInfo(info.name, info.dtype, tuple(0 if size < 0 else size for size in signature))
    return info


class TfliteSession(ThreadedSession):
    """See backends.base.Session."""

    preferred_slots = 1

    def __init__(
        self,
        runtime: Runtime,
        make: Callable[[], tuple[Any, int]],
        target: str,
        threads: int | None,
        interpreter: Any,
        own_nodes: int,
        load_ms: float,
        compile_ms: float,
        processor: str,
        timer: Timer | None = None,
    ) -> None:
        self._runtime = runtime
        self._make: Callable[[], tuple[Any, int]] = make
        self._target = target
        self._threads_asked = threads
        self._own_nodes = own_nodes
        self._processor = processor
        self._timer = timer
        self._times: dict[str, float] | None = None
        self._interpreters: list[Any] = [interpreter]
        self._in: list[int] = [int(detail["index"]) for detail in interpreter.get_input_details()]
        self._out: list[int] = [int(detail["index"]) for detail in interpreter.get_output_details()]
        self.inputs = tuple(tensor_info(detail) for detail in interpreter.get_input_details())
        self.outputs = tuple(output_info(interpreter, detail) for detail in interpreter.get_output_details())
        self._quantisation = {
            str(detail["name"]): {
                "scale": float(detail["quantization"][0]),
                "zero_point": int(detail["quantization"][1]),
            }
            for detail in (*interpreter.get_input_details(), *interpreter.get_output_details())
            if detail["quantization"][0]
        }
        self._nodes = nodes_of(interpreter)
        self.load_ms: float | None = load_ms
        self.compile_ms: float | None = compile_ms

    def prepare(self, slots: int) -> None:
        """Make an interpreter for each further slot."""
        while len(self._interpreters) < slots:
            self._interpreters.append(self._make()[0])
        self._threads = SlotThreads(slots, self.infer)

    def infer(self, slot: int, inputs: Sequence[Array]) -> Sequence[Array]:
        """Write, invoke, read. Outputs are copies: a view into the interpreter would make the next invoke fail."""
        interpreter = self._interpreters[slot]
        if len(inputs) != len(self._in):
            raise InferenceFailed(f"The model takes {len(self._in)} inputs, {len(inputs)} were given.")
        try:
            for index, array in zip(self._in, inputs, strict=True):
                interpreter.set_tensor(index, array)
            interpreter.invoke()
            return [interpreter.get_tensor(index) for index in self._out]
        except (ValueError, RuntimeError) as error:
            raise InferenceFailed(f"{self._runtime.package} failed: {first_line(error)}.") from error

    @property
    def delegated_share(self) -> float | None:
        """Share of the file's nodes that the delegate asked for by name took; None where the interpreter does not tell."""
        found = self._shares()
        return None if found is None else found.get(self._target, 0.0)

    def report(self) -> Report:
        """Kernels, delegates, precision and threads."""
        found, times = self._shares(), self._time_shares()
        delegated = self._target.startswith(DELEGATE)
        return Report(
            runtime=self._runtime.package,
            runtime_version=self._runtime.version,
            target=self._target,  # a delegate that took nothing was refused; how much it took is the placement
            devices=(self._target, self._processor) if delegated else (self._processor,),
            precision=precision_of(self._nodes) if self._nodes is not None and not delegated else None,
            threads=self._threads_asked if self._threads_asked is not None else 1,  # the interpreter's own default
            placement_nodes=found,
            placement_time=times,
            placement_method=(NODES if times is None else f"{NODES}; {TIMES}") if found is not None else None,
            details={
                "asked_target": self._target,
                "xnnpack_share": (found or {}).get("xnnpack", 0.0) if found is not None else None,
                "quantisation": self._quantisation,
                "interpreters": len(self._interpreters),
            },
        )

    def _shares(self) -> dict[str, float] | None:
        if self._nodes is None:
            return None
        return shares(self._nodes, self._own_nodes, (self._target, "xnnpack"))

    def _time_shares(self) -> dict[str, float] | None:
        """In a placement pass, shares of time, measured once on the inputs that the first interpreter holds."""
        if self._timer is not None and self._nodes is not None:
            parts = parts_of(self._nodes, self._own_nodes, (self._target, "xnnpack"))
            self._times = self._timer(parts, [self._interpreters[0].get_tensor(index) for index in self._in])
            self._timer = None
        return self._times

    def close(self) -> None:
        """Stop the threads and release the interpreters."""
        if self._threads is not None:
            self._threads.close()
        self._interpreters.clear()
        self._make = _closed


def _closed() -> tuple[Any, int]:
    raise InferenceFailed("The session is closed.")
