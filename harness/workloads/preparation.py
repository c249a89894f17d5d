"""From a workload and a model file to what a worker's task needs: its parameters, and ports under the task's own roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from harness.artifacts import ModelFile, Port
from harness.errors import ModelError
from harness.workloads.definition import Workload

# The roles that a task must find in a model. Others (token_type_ids, sr, landmarks) are used where they are.
ROLES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "image_classification": (("image",), ("logits",)),
    "face_detection": (("image",), ("heatmap", "scale", "offset")),
    "sentence_embedding": (("input_ids", "attention_mask"), ("embedding",)),
    "voice_activity": (("input", "state"), ("output", "stateN")),
    "note_transcription": (("audio",), ("note",)),
}


class SourceFiles(Protocol):
    """The part of the model store that is needed here."""

    def source_file(self, model: str, name: str) -> Path:
        """Return one of a model's published files, fetching it where needed. Raises ModelError."""
        ...


def task_parameters(workload: Workload, store: SourceFiles) -> dict[str, Any]:
    """Return the task's parameters with the files filled in that belong to the model. Raises ModelError."""
    parameters = dict(workload.parameters)
    if workload.task == "sentence_embedding" and "tokenizer" not in parameters:
        if not isinstance(workload.model, str):
            raise ModelError(
                f"The workload {workload.name} has a model of your own and no tokenizer.",
                'Write parameters = { tokenizer = "/path/tokenizer.json" }.',
            )
        parameters["tokenizer"] = str(store.source_file(workload.model, "tokenizer").absolute())
    return parameters


def random_parameters(model: ModelFile) -> dict[str, Any]:
    """Return the parameters of the task random_inputs for a model: its input ports, JSON-able."""
    return {"ports": [{**asdict(port), "shape": list(port.shape)} for port in model.inputs]}


def fit_ports(workload: Workload, model: ModelFile) -> ModelFile:
    """Return the model with the task's roles on its ports, for a user's file whose tensors have names of their own.

    The workload's `tensors` decide; else a task with one input (or output) takes the model's only one. A picture
    [N, H, W, 3] is recognised as NHWC. Raises ModelError that lists the model's tensors where a role stays open.
    """
    if workload.task not in ROLES:
        return model
    inputs, outputs = ROLES[workload.task]
    return replace(
        model,
        inputs=_fitted(workload, "input", model.inputs, inputs),
        outputs=_fitted(workload, "output", model.outputs, outputs),
    )


def _fitted(workload: Workload, kind: str, ports: tuple[Port, ...], roles: tuple[str, ...]) -> tuple[Port, ...]:
    named = {tensor: role for role, tensor in workload.tensors.items() if role in roles}
    fitted = [replace(port, role=named.get(port.tensor, port.role)) for port in ports]
    missing = [role for role in roles if role not in {port.role for port in fitted}]
    if len(missing) == len(roles) == len(fitted) == 1:
        fitted = [replace(fitted[0], role=roles[0])]
        missing = []
    if missing:
        tensors = ", ".join(port.tensor for port in ports)
        raise ModelError(
            f"The model of the workload {workload.name} has no {kind} {', '.join(missing)}, which the task "
            f"{workload.task} needs; its {kind}s are {tensors}.",
            f'Say which is which in the suite file: model = {{ ..., tensors = {{ {missing[0]} = "..." }} }}.',
        )
    return tuple(_channels_first(port) if port.role == "image" else port for port in fitted)


def _channels_first(port: Port) -> Port:
    """Return the canonical NCHW shape for a file that wants NHWC; others as they are."""
    if port.layout == "as_is" and len(port.shape) == 4 and port.shape[3] == 3 and port.shape[1] != 3:
        batch, height, width, channels = port.shape
        return replace(port, shape=(batch, channels, height, width), layout="nhwc")
    return port
