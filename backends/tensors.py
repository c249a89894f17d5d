"""Checks that every adapter makes on shapes, buffers and plain options, in one wording."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from backends.base import Array, InferenceFailed, LoadOptions, ModelRejected, OptionUnsupported, TensorInfo


def require_file(model: Path, folder: bool = False) -> None:
    """Raise ModelRejected unless `model` is a readable file (or, for a package format, a folder)."""
    if folder and model.is_dir():
        return
    if not model.exists():
        raise ModelRejected(f"There is no model file {model}.")
    if not model.is_file():
        raise ModelRejected(f"{model} is not a file.")
    if model.stat().st_size == 0:
        raise ModelRejected(f"The model file {model} is empty.", "Fetch or build it again.")


def require_counts(options: LoadOptions) -> None:
    """Raise OptionUnsupported where threads, streams or the device index cannot be meant."""
    for name, value, least in (
        ("threads", options.threads, 1),
        ("streams", options.streams, 1),
        ("device_index", options.device_index, 0),
    ):
        if value is not None and value < least:
            raise OptionUnsupported(f"{name} = {value} cannot be meant; it is at least {least}.")


def require_names(shapes: Mapping[str, tuple[int, ...]], names: Sequence[str]) -> None:
    """Raise ModelRejected where a shape is given for an input that the model does not have."""
    for name in shapes:
        if name not in names:
            raise ModelRejected(f"The model has no input {name!r}.", f"Its inputs are {', '.join(names)}.")


def pin(name: str, declared: Sequence[int | str | None], asked: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the concrete shape of an input: `asked` where it fits the declared one, else its free sizes become 1.

    A declared size that is not a positive integer (a name, None, -1, 0) is free. Raises ModelRejected where they clash.
    """
    sizes = [size if isinstance(size, int) and size > 0 else None for size in declared]
    if asked is None:
        return tuple(1 if size is None else size for size in sizes)
    fits = len(asked) == len(sizes) and all(
        want > 0 and size in (None, want) for want, size in zip(asked, sizes, strict=True)
    )
    if not fits:
        shown = "x".join("?" if size is None else str(size) for size in sizes)
        raise ModelRejected(f"Input {name!r} has shape {shown}; it cannot take {'x'.join(map(str, asked))}.")
    return asked


def require_like(buffers: Sequence[Array], arrays: Sequence[Array]) -> None:
    """Raise InferenceFailed where the inputs have not the number, shapes and types of the buffers."""
    if len(buffers) != len(arrays):
        raise InferenceFailed(f"The model takes {len(buffers)} inputs, {len(arrays)} were given.")
    for buffer, array in zip(buffers, arrays, strict=True):
        if buffer.shape != array.shape or buffer.dtype != array.dtype:
            raise InferenceFailed(
                f"An input has {array.dtype} {array.shape}, the model wants {buffer.dtype} {buffer.shape}."
            )


def write(buffers: Sequence[Array], arrays: Sequence[Array]) -> None:
    """Copy the inputs into the runtime's buffers. Never broadcasts or casts: raises InferenceFailed instead."""
    require_like(buffers, arrays)
    for buffer, array in zip(buffers, arrays, strict=True):
        np.copyto(buffer, array)


def allocate(tensors: Sequence[TensorInfo]) -> list[Array]:
    """Zeroed host buffers for tensors of known shape."""
    return [np.zeros(tensor.shape, dtype=tensor.dtype) for tensor in tensors]


def processor_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's own name. An Arm board's kernel names the board instead, which says as much."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""  # not Linux
    found = dict(reversed([(k.strip(), v.strip()) for k, _, v in (line.partition(":") for line in text.splitlines())]))
    for key in ("model name", "Hardware", "Model"):  # "model" in small letters is a number on x86
        if found.get(key):
            return found[key]
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
        if answer:
            return answer
    return platform.processor() or platform.machine()
