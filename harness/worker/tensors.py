"""Between the task's canonical tensors and one file's: names, layout, dtype, batch. All outside the timed boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from backends.base import Array, ModelRejected, TensorInfo
from harness.artifacts import Port


class TensorMap:
    """The inputs (or the outputs) of a loaded session, in the session's order, each tied to its port."""

    def __init__(self, ports: Sequence[Port], tensors: Sequence[TensorInfo]) -> None:
        by_name = {port.tensor: port for port in ports}
        if len(ports) == 1 and len(tensors) == 1:
            by_name = {tensors[0].name: ports[0]}  # runtimes may rename the one tensor there is
        missing = [tensor.name for tensor in tensors if tensor.name not in by_name]
        if missing:
            raise ModelRejected(
                f"The model has a tensor {missing[0]!r} that its description does not name "
                f"(it names {', '.join(sorted(by_name)) or 'none'})."
            )
        self.tensors = tuple(tensors)
        self.ports = tuple(by_name[tensor.name] for tensor in tensors)

    def index_of(self, role: str) -> int:
        """Return the session's position of a role. Raises ModelRejected where the file has no such tensor."""
        for position, port in enumerate(self.ports):
            if port.role == role:
                return position
        raise ModelRejected(f"The model has no tensor for {role!r}, which its task carries on from call to call.")

    def to_file(self, samples: Sequence[Mapping[str, Array]]) -> tuple[Array, ...]:
        """Return one array per input, of `len(samples)` samples stacked along the first axis, as the session wants it."""
        arrays = []
        for port, tensor in zip(self.ports, self.tensors, strict=True):
            try:
                parts = [sample[port.role] for sample in samples]
            except KeyError:
                raise ModelRejected(f"The task gives no input {port.role!r}, which the model needs.") from None
            array = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=0)
            if port.layout == "nhwc":
                array = np.moveaxis(array, 1, -1)
            # A copy in every case: a pool must not share memory with what the task may use again.
            array = np.array(array, dtype=tensor.dtype, order="C", copy=True)
            if array.shape != tuple(tensor.shape):
                raise ModelRejected(
                    f"The task gives {port.role!r} the shape {_sizes(array.shape)}, "
                    f"the loaded model wants {_sizes(tensor.shape)}."
                )
            arrays.append(array)
        return tuple(arrays)

    def to_canonical(self, arrays: Sequence[Array]) -> dict[str, Array]:
        """Return copies of the session's outputs by role, in canonical layout."""
        return {
            port.role: np.array(np.moveaxis(array, -1, 1) if port.layout == "nhwc" else array, order="C", copy=True)
            for port, array in zip(self.ports, arrays, strict=True)
        }


def _sizes(shape: Sequence[int]) -> str:
    return "x".join(str(size) for size in shape) or "scalar"
