"""Reader of torch's legacy checkpoint (before the zip format), without torch and without running what a pickle says.

The file is a chain: three small pickles (magic number, protocol, system), a pickle of the state dictionary whose
tensors name their storages by persistent id, a pickle of the storages' keys, then for each key an int64 element count and
the raw little-endian data (torch/serialization.py, `_legacy_save`). A pickle can call any function it names, so the
unpickler here finds three kinds of name and refuses the rest.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from os import SEEK_END
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from harness.errors import ModelError

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
MAX_ELEMENTS = 1 << 31

_STORAGES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
}


@dataclass(frozen=True)
class _StorageType:
    dtype: str


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: str
    elements: int


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild_tensor(
    storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any = False, hooks: Any = None
) -> _Tensor:
    """Stand in for torch._utils._rebuild_tensor_v2: note what is asked for, and check it later."""
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, _Storage) or not all(type(n) is int and n >= 0 for n in numbers):
        raise pickle.UnpicklingError("a tensor is not described by a storage and sizes")
    if len(shape) != len(strides):
        raise pickle.UnpicklingError("a tensor has more sizes than strides")
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


class _StateUnpickler(pickle.Unpickler):
    """Finds OrderedDict, the tensor's description and the storages' names; everything else is refused by name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in _STORAGES:
            return _StorageType(_STORAGES[name])
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which a table of weights does not need")

    def persistent_load(self, pid: Any) -> _Storage:
        # ("storage", type, key, location, elements, view metadata)
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], _StorageType):
            raise pickle.UnpicklingError("it names something that is no storage")
        if type(pid[4]) is not int or not 0 <= pid[4] <= MAX_ELEMENTS:
            raise pickle.UnpicklingError("a storage has an impossible size")
        return _Storage(str(pid[2]), pid[1].dtype, pid[4])


class _PlainUnpickler(pickle.Unpickler):
    """For the pickles that hold numbers, texts, lists and dictionaries only."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, where only plain values belong")


def read_state(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the tensors of a legacy checkpoint by name.

    Raises ModelError when the file is of another kind, is cut, or asks for anything but weights; nothing that it names is
    ever imported or called.
    """
    try:
        with path.open("rb") as stream:
            return _read(stream)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error
    except ModelError:
        raise
    except Exception as error:  # a crafted pickle can make the unpickler raise nearly anything
        raise ModelError(
            f"The checkpoint {path.name} is refused: {error}.",
            "It is not a legacy torch checkpoint of plain weights; nothing in it was run.",
        ) from error


def _read(stream: IO[bytes]) -> dict[str, npt.NDArray[Any]]:
    if _PlainUnpickler(stream).load() != MAGIC:
        raise pickle.UnpicklingError("its magic number is not that of a legacy torch checkpoint")
    if _PlainUnpickler(stream).load() != PROTOCOL:
        raise pickle.UnpicklingError("its protocol is not 1001")
    system = _PlainUnpickler(stream).load()
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise pickle.UnpicklingError("it was not written little-endian")
    state = _StateUnpickler(stream).load()
    if not isinstance(state, Mapping):
        raise pickle.UnpicklingError("it holds no table of weights")
    tensors = {name: tensor for name, tensor in state.items() if isinstance(tensor, _Tensor)}
    if len(tensors) != len(state) or not all(isinstance(name, str) for name in tensors):
        raise pickle.UnpicklingError("its table holds something else than tensors by name")
    keys = _PlainUnpickler(stream).load()
    storages = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
    if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(storages):
        raise pickle.UnpicklingError("its list of storages does not fit its tensors")
    data = {str(key): _read_storage(stream, storages[str(key)]) for key in keys}
    return {name: _view(data[tensor.storage.key], tensor) for name, tensor in tensors.items()}


def _read_storage(stream: IO[bytes], storage: _Storage) -> npt.NDArray[Any]:
    count = int.from_bytes(stream.read(8), "little", signed=True)
    if count != storage.elements:
        raise pickle.UnpicklingError(f"storage {storage.key} has {count} elements, not {storage.elements}")
    dtype = np.dtype(storage.dtype)
    begin = stream.tell()
    if count * dtype.itemsize > stream.seek(0, SEEK_END) - begin:
        raise pickle.UnpicklingError("it ends before its data do")
    stream.seek(begin)
    return np.frombuffer(stream.read(count * dtype.itemsize), dtype=dtype)


def _view(flat: npt.NDArray[Any], tensor: _Tensor) -> npt.NDArray[Any]:
    """Return the tensor as a contiguous array of its own. Its last element must lie inside the storage."""
    if prod(tensor.shape) == 0:
        return np.zeros(tensor.shape, dtype=flat.dtype)
    last = tensor.offset + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))
    if last >= flat.size or prod(tensor.shape) > flat.size:  # strides of 0 could ask for any amount of memory
        raise pickle.UnpicklingError("a tensor reaches beyond its storage")
    strides = [stride * flat.itemsize for stride in tensor.strides]
    view = np.lib.stride_tricks.as_strided(flat[tensor.offset :], shape=tensor.shape, strides=strides)
    return view.copy()  # keeps the shape () of a scalar, which np.ascontiguousarray does not
