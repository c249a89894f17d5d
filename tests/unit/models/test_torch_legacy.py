"""The reader of torch's old checkpoints runs nothing that a pickle names."""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections import OrderedDict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import ModelError
from harness.models.torch_legacy import MAGIC, PROTOCOL, read_state

SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}


class Storage:
    """What a tensor names in the file: (key, element type, number of elements)."""

    def __init__(self, key: str, kind: str, elements: int) -> None:
        self.pid = ("storage", getattr(sys.modules["torch"], kind), key, "cpu", elements, None)


class Tensor:
    def __init__(self, storage: Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.arguments = (storage, offset, shape, strides, False, OrderedDict())

    def __reduce__(self) -> tuple[Any, ...]:
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.arguments  # type: ignore[attr-defined]


class Writer(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return obj.pid if isinstance(obj, Storage) else None


@pytest.fixture(autouse=True)
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names that torch's own writer puts into the file; pickle insists that they can be imported."""
    torch, utils = ModuleType("torch"), ModuleType("torch._utils")
    for kind in ("FloatStorage", "LongStorage"):
        setattr(torch, kind, type(kind, (), {"__module__": "torch"}))

    def _rebuild_tensor_v2(*arguments: Any) -> None: ...

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)


def checkpoint(weights: Any, storages: dict[str, np.ndarray[Any, Any]], **changes: Any) -> bytes:
    """A file as torch before 1.6 wrote it: magic, protocol, system, state, keys, then count and data per key."""
    parts = {"magic": MAGIC, "protocol": PROTOCOL, "system": SYSTEM, "state": weights, "keys": sorted(storages)}
    parts |= changes
    sink = io.BytesIO()
    for name in ("magic", "protocol", "system", "state", "keys"):
        Writer(sink, protocol=2).dump(parts[name])
    for key in sorted(storages):
        sink.write(len(storages[key]).to_bytes(8, "little") + storages[key].tobytes())
    return sink.getvalue()


def good() -> tuple[Any, dict[str, np.ndarray[Any, Any]]]:
    numbers, count = np.arange(6, dtype="<f4"), np.array([7], dtype="<i8")
    floats, longs = Storage("1", "FloatStorage", 6), Storage("2", "LongStorage", 1)
    state = OrderedDict(
        rows=Tensor(floats, 0, (2, 3), (3, 1)),
        columns=Tensor(floats, 0, (3, 2), (1, 3)),
        tail=Tensor(floats, 4, (2,), (1,)),
        scalar=Tensor(longs, 0, (), ()),
    )
    return state, {"1": numbers, "2": count}


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "weights.pth"
    path.write_bytes(data)
    return path


def test_tensors_come_back_with_their_shapes_strides_and_offsets(tmp_path: Path) -> None:
    state = read_state(written(tmp_path, checkpoint(*good())))
    assert state["rows"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert state["columns"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert state["tail"].tolist() == [4, 5]
    assert state["scalar"].shape == () and state["scalar"] == 7 and state["scalar"].dtype == np.int64


class Attack:
    """Runs a command when it is unpickled by a reader that trusts its input."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("part", ["magic", "protocol", "system", "state", "keys", "inside"])
def test_a_crafted_system_call_is_refused_wherever_it_stands(tmp_path: Path, part: str) -> None:
    marker = tmp_path / "executed"
    state, storages = good()
    if part == "inside":
        state["evil"] = Attack(marker)
    changes = {} if part == "inside" else {part: Attack(marker)}
    path = written(tmp_path, checkpoint(state, storages, **changes))
    with pytest.raises(ModelError, match=r"refused: it asks for (posix|nt)\.system"):
        read_state(path)
    assert not marker.exists()


def test_the_attack_itself_would_work_on_a_reader_that_trusts(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    pickle.loads(pickle.dumps(Attack(marker)))
    assert marker.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [("builtins", "eval"), ("torch", "load"), ("torch._utils", "_rebuild_parameter"), ("collections", "defaultdict")],
)
def test_any_other_name_is_refused(tmp_path: Path, module: str, name: str) -> None:
    state = b"c" + f"{module}\n{name}\n".encode() + b"."  # the GLOBAL opcode, then STOP
    head = b"".join(pickle.dumps(part, 2) for part in (MAGIC, PROTOCOL, SYSTEM))
    with pytest.raises(ModelError, match=f"asks for {module}.{name}"):
        read_state(written(tmp_path, head + state))


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [(0, (7,), (1,)), (5, (2,), (1,)), (0, (2, 3), (4, 1)), (0, (7,), (0,)), (-1, (1,), (1,)), (0, (2,), (-1,))],
)
def test_a_tensor_cannot_reach_beyond_its_storage(
    tmp_path: Path, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    storage = Storage("1", "FloatStorage", 6)
    state = OrderedDict(x=Tensor(storage, offset, shape, strides))
    with pytest.raises(ModelError, match="refused"):
        read_state(written(tmp_path, checkpoint(state, {"1": np.arange(6, dtype="<f4")})))


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="refused"):
        read_state(written(tmp_path, checkpoint(*good())[:-3]))


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="refused"):
        read_state(written(tmp_path, b"PK\x03\x04" + bytes(100)))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(position=st.integers(0, 10_000), value=st.integers(0, 255))
def test_a_damaged_file_gives_weights_or_one_sentence(tmp_path: Path, position: int, value: int) -> None:
    data = bytearray(checkpoint(*good()))
    data[position % len(data)] = value
    try:
        read_state(written(tmp_path, bytes(data)))
    except ModelError as error:
        assert "weights.pth" in str(error)
