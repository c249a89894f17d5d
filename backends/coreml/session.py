"""A compiled Core ML model. Prediction exists on macOS only; not verified on hardware, tested with a stand-in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from backends.base import Array, InferenceFailed, Report, TensorInfo
from backends.coreml.plan import Plan
from backends.slots import SlotThreads, ThreadedSession, first_line


class CoreMLSession(ThreadedSession):
    """See backends.base.Session. Core ML keeps its own buffers: predict() copies inputs in and outputs out."""

    preferred_slots = 1

    def __init__(
        self,
        model: Any,
        inputs: tuple[TensorInfo, ...],
        outputs: tuple[TensorInfo, ...],
        target: str,
        load_ms: float,
        compile_ms: float,
        facts: dict[str, Any],
        plan: Plan | None,
        release: Callable[[], None],
    ) -> None:
        self._model: Any = model
        self._target = target
        self._facts = facts
        self._plan = plan
        self._release: Callable[[], None] | None = release
        self.inputs = inputs
        self.outputs = outputs
        self._names = [info.name for info in inputs]
        self._results = [info.name for info in outputs]
        self.load_ms: float | None = load_ms
        self.compile_ms: float | None = compile_ms

    def prepare(self, slots: int) -> None:
        """One thread per slot; Core ML serves predictions of one model from several threads."""
        self._threads = SlotThreads(slots, self.infer)

    def infer(self, slot: int, inputs: Sequence[Array]) -> Sequence[Array]:
        """Predict: host to host."""
        if len(inputs) != len(self._names):
            raise InferenceFailed(f"The model takes {len(self._names)} inputs, {len(inputs)} were given.")
        try:
            answer = self._model.predict(dict(zip(self._names, inputs, strict=True)))
            return [answer[name] for name in self._results]
        except Exception as error:  # coremltools raises plain Exception and RuntimeError
            raise InferenceFailed(f"Core ML failed: {first_line(error)}.") from error

    def report(self) -> Report:
        """Where Core ML prefers to run each operation. It is a preference: Core ML tells no more."""
        nodes = self._plan.nodes if self._plan is not None else None
        target: str | None = self._target
        if nodes is not None and set(nodes) == {"cpu"}:
            target = "cpu_only"  # whatever was allowed, nothing else is used
        return Report(
            runtime="coreml",
            runtime_version=self._facts["version"],
            target=target,
            devices=tuple(sorted(nodes)) if nodes else (),
            precision=self._facts["precision"],
            placement_nodes=nodes,
            placement_method="MLComputePlan: the processor that Core ML prefers for each operation" if nodes else None,
            details={
                "asked_target": self._target,
                "estimated_cost": self._plan.estimated_cost if self._plan is not None else None,
                "coremltools": self._facts["coremltools"],
                "kind": self._facts["kind"],
                "specification_version": self._facts["specification_version"],
                "optimization_hints": self._facts["hints"],
            },
        )

    def close(self) -> None:
        """Stop the threads, release the model, remove its compiled copy."""
        if self._threads is not None:
            self._threads.close()
        self._model = None
        if self._release is not None:
            self._release()
            self._release = None
