"""The published files behind a model: their pins, and the ports of those that are used as they are."""

from __future__ import annotations

from pathlib import Path

from harness.artifacts import Port
from harness.errors import ModelError
from harness.models.build import published
from harness.models.catalog import ArtifactEntry, ModelEntry, SourceFile
from harness.models.inspection import read_ports
from harness.models.sources import Pinned


def pins_of(entry: ModelEntry, artifact: ArtifactEntry) -> list[Pinned]:
    """Return the published files behind an artifact: the file itself, or the weights it is built from."""
    root = published(entry, artifact)
    return [pin(entry.source(name)) for name in (root.sources if root.shipped is None else (root.shipped,))]


def pin(source: SourceFile) -> Pinned:
    """Return a source and what it must give."""
    return Pinned(source.source, source.sha256, source.bytes)


def companions(entry: ModelEntry) -> list[Pinned]:
    """Return the published files that belong to the model and are no model themselves, such as a tokenizer."""
    used = {name for artifact in entry.artifacts for name in (artifact.shipped, *artifact.sources)}
    return [pin(source) for source in entry.sources if source.name not in used]


def ports_of(
    entry: ModelEntry, artifact: ArtifactEntry, path: Path
) -> tuple[tuple[Port, ...], tuple[Port, ...], int | None]:
    """Return the ports of a shipped file: by the catalogue's names, else by position from the file itself."""
    if artifact.tensors:
        inputs, outputs = (
            tuple(Port(t.role, artifact.tensors[t.role], t.dtype, t.shape) for t in tensors)
            for tensors in (entry.inputs, entry.outputs)
        )
        return inputs, outputs, artifact.batch
    found = read_ports(path, artifact.format)
    for tensors, ports in zip((entry.inputs, entry.outputs), found, strict=True):
        fits = len(tensors) == len(ports) and all(
            t.dtype == p.dtype and all(a == b or not a or not b for a, b in zip(t.shape, p.shape, strict=False))
            for t, p in zip(tensors, ports, strict=True)
        )
        if not fits:
            raise ModelError(f"{path.name} of {entry.name} has other inputs or outputs than the catalogue says.")
    inputs, outputs = (
        tuple(Port(t.role, p.tensor, p.dtype, t.shape) for t, p in zip(tensors, ports, strict=True))
        for tensors, ports in zip((entry.inputs, entry.outputs), found, strict=True)
    )
    return inputs, outputs, found[0][0].shape[0] or None
