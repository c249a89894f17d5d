"""The tasks by name. Each lives in a module of its own that is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from harness.errors import UsageError
from harness.tasks.base import Sample, Task, carried

__all__ = ["TASKS", "Sample", "Task", "carried", "create"]

TASKS: Mapping[str, str] = {
    "image_classification": "harness.tasks.image_classification:ImageClassification",
    "face_detection": "harness.tasks.face_detection:FaceDetection",
    "sentence_embedding": "harness.tasks.sentence_embedding:SentenceEmbedding",
    "voice_activity": "harness.tasks.voice_activity:VoiceActivity",
    "note_transcription": "harness.tasks.note_transcription:NoteTranscription",
    "random_inputs": "harness.tasks.random_inputs:RandomInputs",
}


def create(name: str, parameters: Mapping[str, Any]) -> Task:
    """Make the task `name` with a workload's parameters. Raises UsageError for an unknown task or a wrong parameter."""
    try:
        module, _, kind = TASKS[name].partition(":")
    except KeyError:
        raise UsageError(f"There is no task {name!r}.", f"Allowed: {', '.join(TASKS)}.") from None
    return cast(Task, getattr(import_module(module), kind)(parameters))
