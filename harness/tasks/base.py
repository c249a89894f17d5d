"""What a task is: how one sample becomes the network's inputs, and how its outputs become a prediction.

Runs inside a worker: Python 3.10, the standard library, numpy, Pillow (and `tokenizers` for text only). Tasks speak
canonical arrays by role ("image" is NCHW float32 and so on; see docs/workloads.md); the worker translates them to the
tensors of one file, casts to their dtype, and leaves out roles that the file has no tensor for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Sample:
    """One labelled input. JSON-able, so that it travels in a job file; `files` are absolute paths on this machine."""

    id: str
    files: tuple[str, ...] = ()
    label: Any = None
    data: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Sample:
        """Read what `dataclasses.asdict` wrote and JSON carried."""
        return cls(
            id=str(document["id"]),
            files=tuple(str(name) for name in document.get("files", ())),
            label=document.get("label"),
            data=dict(document.get("data") or {}),
        )


class Task(Protocol):
    """The three host stages around the inference, each timed apart. Made from the workload's `parameters`.

    `carry` names, for a network with state, the input role that takes the previous call's output role. `preprocess`
    always gives the state of a new stream; `carried` says when it is replaced.
    """

    carry: Mapping[str, str]

    def decode(self, sample: Sample) -> Any:
        """Read the sample's bytes: JPEG to pixels, WAV to a waveform. Raises ModelError for an unreadable file."""
        ...

    def preprocess(self, decoded: Any) -> dict[str, Array]:
        """Return the canonical inputs by role, each with a leading batch of 1."""
        ...

    def postprocess(self, outputs: Mapping[str, Array]) -> list[Any]:
        """Return one JSON-able prediction per sample of the batch, from canonical outputs by role."""
        ...


def carried(
    task: Task, sample: Sample, inputs: Mapping[str, Array], previous: Mapping[str, Array] | None
) -> dict[str, Array]:
    """Return `inputs` with the state of the stream that the sample goes on with.

    `previous` holds the outputs of the call before. A sample whose data says `first` begins a stream and keeps its own,
    fresh state. The arrays are copied, because a runtime may write its next outputs over them.
    """
    chosen = dict(inputs)
    if previous is not None and not sample.data.get("first", False):
        for taking, giving in task.carry.items():
            chosen[taking] = np.array(previous[giving], copy=True)
    return chosen
