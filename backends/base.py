"""What every runtime adapter offers: probe, load, run, and say what really ran.

The timed boundary is host to host for every runtime: write the inputs into the runtime's buffers, run, outputs readable on
the host. This module and its neighbours import no other room, stay within Python 3.10, and import their runtime inside
functions only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from backends.errors import (
    BackendError,
    InferenceFailed,
    ModelRejected,
    OptionUnsupported,
    RuntimeMissing,
    TargetUnsupported,
)

__all__ = [
    "Array",
    "Backend",
    "BackendError",
    "InferenceFailed",
    "LoadOptions",
    "ModelRejected",
    "OptionUnsupported",
    "Report",
    "RuntimeMissing",
    "Session",
    "TargetStatus",
    "TargetUnsupported",
    "TensorInfo",
]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class TargetStatus:
    """Whether one target of a backend works here, seen by really creating a session."""

    backend: str
    target: str
    works: bool
    reason: str | None = None  # precise, when it does not work
    fix: str | None = None
    verified: bool = True  # False: code follows the vendor's documentation, not verified on hardware
    device_name: str | None = None  # "Intel(R) Xeon(R) ...", "NVIDIA T4"
    version: str | None = None  # of the runtime
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TensorInfo:
    """One input or output as the loaded session has it. `shape` is concrete once loaded."""

    name: str
    dtype: str  # numpy name: "float32", "int64"
    shape: tuple[int, ...]


@dataclass(frozen=True)
class LoadOptions:
    """What is asked of the runtime. None means: its own default, which `report()` then names."""

    precision: str = (
        "fp32"  # execution precision: fp32, fp16, bf16, int8; "default" leaves the vendor's choice (TF32, bf16)
    )
    threads: int | None = None
    streams: int | None = None
    device_index: int = 0
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # by tensor name; pins dynamic dimensions
    cache_dir: Path | None = None  # compile cache; None: no cache is used
    profile_dir: Path | None = None  # a placement pass: profiling on, timing not valid
    extra: Mapping[str, str] = field(default_factory=dict)  # the runtime's own options, by its own names


@dataclass(frozen=True)
class Report:
    """What really ran, from the runtime itself. None means that the runtime does not tell."""

    runtime: str
    runtime_version: str
    target: str | None  # effective, e.g. "cpu" when "auto" was asked for
    devices: tuple[str, ...] = ()
    precision: str | None = None
    threads: int | None = None
    streams: int | None = None
    placement_nodes: Mapping[str, float] | None = None  # shares, sum 1
    placement_time: Mapping[str, float] | None = None
    placement_method: str | None = None
    device_memory_mb: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class Session(Protocol):
    """A loaded model. `prepare` allocates; after it, `infer` allocates nothing of its own.

    `load_ms` and `compile_ms` are what `load` measured: reading the file, and making it ready to run (None where the
    runtime does both in one step; then `load_ms` holds the sum).
    """

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    load_ms: float | None
    compile_ms: float | None
    preferred_slots: int  # requests in flight that the runtime itself would choose for throughput

    def prepare(self, slots: int) -> None:
        """Make `slots` independent requests with their own buffers. Called once, before the first inference."""
        ...

    def infer(self, slot: int, inputs: Sequence[Array]) -> Sequence[Array]:
        """Synchronous, host to host. Inputs in the order of `self.inputs`, C-contiguous, right dtype and shape.

        The returned arrays are valid until the next call on the same slot; copy what must live longer.
        """
        ...

    def submit(self, slot: int, inputs: Sequence[Array]) -> None:
        """Start a request on a free slot; the inputs must stay untouched until `wait`."""
        ...

    def next_done(self) -> int:
        """Block until any submitted request has ended and return its slot, for `wait`; each ended request once.

        A loop that waited in the order of submission would let one slow stream stall the others.
        """
        ...

    def done_within(self, timeout_s: float) -> int | None:
        """As `next_done`, but give up after so many seconds: None. For a loop that must start the next request in time.

        A request that failed may only be told by `next_done`.
        """
        ...

    def wait(self, slot: int) -> Sequence[Array]:
        """Wait for the slot's request and return its outputs, readable on the host."""
        ...

    def report(self) -> Report:
        """What really ran. May be called after inference, never during it."""
        ...

    def close(self) -> None:
        """Release the session. Harmless twice."""
        ...


class Backend(Protocol):
    """The adapter to one runtime."""

    name: str
    formats: tuple[str, ...]  # artifact formats it reads, best first

    def targets(self) -> tuple[str, ...]:
        """The targets that this product names for the runtime, whether or not they work here. Needs no runtime."""
        ...

    def target_named(self, name: str) -> str | None:
        """The backend's one name for the target that `name` asks for; None where it has none. Needs no runtime.

        Beside `targets()` there may be targets that are only asked for by name, and second names.
        """
        ...

    def default_precision(self, target: str) -> str | None:
        """What "default" comes to for an fp32 file on this target, where that is certain before anything is loaded.

        None: it depends on the hardware, and only a loaded session knows (`report()`). Where it is "fp32", a case that asks
        for "default" would measure the fp32 case a second time. Needs no runtime.
        """
        ...

    def probe(self, target: str, device_index: int = 0) -> TargetStatus:
        """Say whether `target` works here, by really creating and running a tiny session. Never raises BackendError."""
        ...

    def load(self, model: Path, model_format: str, target: str, options: LoadOptions) -> Session:
        """Load strictly: no silent fallback to another target. Raises a BackendError."""
        ...
