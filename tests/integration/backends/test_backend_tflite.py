"""TensorFlow Lite: which kernels and delegates took which nodes, on the real LiteRT.

A delegate that works is played by a stand-in for the interpreter's list of nodes: no accelerator is here.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backends import create
from backends.base import LoadOptions, ModelRejected, OptionUnsupported, RuntimeMissing, TargetUnsupported
from backends.tflite import adapter, runtime
from backends.tflite.placement import delegated, nodes_of, precision_of, shares

FileMaker = Callable[..., Path]
BACKEND = create("tflite")
BATCH = {"x": (4, 64)}


def test_the_probe_model_is_what_the_schema_writes(tiny_tflite: Any) -> None:
    assert tiny_tflite.addition() == adapter.PROBE


def test_xnnpack_takes_all_of_a_dense_layer(tflite_file: FileMaker) -> None:
    session = BACKEND.load(tflite_file(), "tflite", "cpu", LoadOptions())
    assert session.report().placement_nodes == {"xnnpack": 1.0}
    session.close()


def test_a_node_that_xnnpack_leaves_alone_is_counted(
    tflite_file: FileMaker, weights: np.ndarray, samples: list
) -> None:
    session = BACKEND.load(tflite_file(remainder=3.0), "tflite", "cpu", LoadOptions(input_shapes=BATCH))
    session.prepare(1)
    (answer,) = session.infer(0, [samples[0]])
    np.testing.assert_allclose(answer, np.mod(samples[0] @ weights, 3.0), rtol=1e-4, atol=1e-4)
    assert session.report().placement_nodes == {"xnnpack": 0.5, "builtin": 0.5}
    session.close()


@pytest.mark.parametrize("target", ["cpu_builtin", "cpu_reference"])
def test_other_kernels_can_be_asked_for_by_name(
    target: str, tflite_file: FileMaker, weights: np.ndarray, samples: list
) -> None:
    session = BACKEND.load(tflite_file(), "tflite", target, LoadOptions(input_shapes=BATCH))
    session.prepare(1)
    np.testing.assert_allclose(session.infer(0, [samples[0]])[0], samples[0] @ weights, rtol=1e-4, atol=1e-4)
    report = session.report()
    session.close()
    assert report.placement_nodes == {"builtin": 1.0}
    assert report.details["asked_target"] == target
    assert report.target == BACKEND.target_named(target) == target  # else the result would be that of another target


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
@pytest.mark.parametrize(("asked", "effective"), [(None, 1), (1, 1), (2, 2), (3, 3)])
def test_as_many_threads_as_reported_are_there(
    asked: int | None, effective: int, tflite_file: FileMaker, samples: list
) -> None:
    gc.collect()  # the threads of an interpreter that nobody holds end with it
    before = len(os.listdir("/proc/self/task"))
    session = BACKEND.load(tflite_file(), "tflite", "cpu", LoadOptions(threads=asked, input_shapes=BATCH))
    session.prepare(1)
    session.infer(0, [samples[0]])
    started = len(os.listdir("/proc/self/task")) - before
    assert session.report().threads == effective
    assert started + 1 == effective  # the caller's own works too
    session.close()


def test_each_slot_has_its_own_interpreter(tflite_file: FileMaker) -> None:
    session = BACKEND.load(tflite_file(), "tflite", "cpu", LoadOptions())
    session.prepare(3)
    assert session.report().details["interpreters"] == 3
    session.close()


def test_outputs_stay_valid_across_the_next_invoke(tflite_file: FileMaker, weights: np.ndarray, samples: list) -> None:
    session = BACKEND.load(tflite_file(), "tflite", "cpu", LoadOptions(input_shapes=BATCH))
    session.prepare(1)
    (first,) = session.infer(0, [samples[0]])
    session.infer(0, [samples[1]])  # a view held here would make LiteRT raise
    np.testing.assert_allclose(first, samples[0] @ weights, rtol=1e-4, atol=1e-4)
    session.close()


def test_a_delegate_that_cannot_be_loaded_is_named(tflite_file: FileMaker) -> None:
    with pytest.raises(TargetUnsupported, match=r"libnothere\.so cannot be loaded"):
        BACKEND.load(tflite_file(), "tflite", "delegate:libnothere.so", LoadOptions())


def test_a_library_that_is_no_delegate_is_named(tflite_file: FileMaker) -> None:
    with pytest.raises(TargetUnsupported, match="tflite_plugin_create_delegate"):
        BACKEND.load(tflite_file(), "tflite", "delegate:libm.so.6", LoadOptions())


def test_a_delegate_without_a_name_is_refused() -> None:
    status = BACKEND.probe("delegate:")
    assert not status.works
    assert "names no library" in status.reason


def test_a_delegate_is_not_verified_here() -> None:
    assert BACKEND.probe("delegate:libedgetpu.so.1").verified is False


@pytest.mark.parametrize("options", [LoadOptions(device_index=1), LoadOptions(streams=2)], ids=["device", "streams"])
def test_what_the_interpreter_does_not_have_is_refused(options: LoadOptions, tflite_file: FileMaker) -> None:
    with pytest.raises(OptionUnsupported):
        BACKEND.load(tflite_file(), "tflite", "cpu", options)


def test_a_file_without_the_mark_is_rejected_before_the_runtime_sees_it(tmp_path: Path) -> None:
    path = tmp_path / "picture.tflite"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" * 100)
    with pytest.raises(ModelRejected, match="TFL3"):
        BACKEND.load(path, "tflite", "cpu", LoadOptions())


def node(name: str, inputs: list[int], outputs: list[int], *types: Any) -> dict[str, Any]:
    """A node as `_get_ops_details()` gives it."""
    return {"op_name": name, "inputs": inputs, "outputs": outputs, "operand_types": list(types)}


CHAIN = [
    node("CONV_2D", [0, 10], [1], np.float32, np.float32),
    node("RELU", [1], [2], np.float32),
    node("CUSTOM", [2], [3], np.float32),
    node("FULLY_CONNECTED", [3, 11], [4], np.float32, np.float32),
]


def test_a_delegates_nodes_are_those_between_its_inputs_and_outputs() -> None:
    assert delegated([*CHAIN, node("DELEGATE", [0, 10], [2])], node("DELEGATE", [0, 10], [2])) == {0, 1}


def test_a_users_delegate_and_xnnpack_are_told_apart_by_their_order() -> None:
    nodes = [*CHAIN, node("DELEGATE", [0, 10], [2]), node("DELEGATE", [3, 11], [4])]
    found = shares(nodes, own=5, names=("delegate:lib.so", "xnnpack"))
    assert found == {"delegate:lib.so": 0.5, "xnnpack": 0.25, "builtin": 0.25}


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ((np.float32, np.float32), "fp32"),
        ((np.int8, np.int8), "int8"),
        ((np.float32, np.int8), "mixed"),  # dynamic range: quantised weights, floating-point activations
        ((np.float16, np.float16), "fp16"),
    ],
)
def test_the_precision_is_that_of_the_arithmetic(types: tuple[Any, Any], expected: str) -> None:
    assert precision_of([node("CONV_2D", [0, 1], [2], *types)]) == expected


def test_nodes_that_differ_are_mixed() -> None:
    nodes = [
        node("CONV_2D", [0, 1], [2], np.int8, np.int8),
        node("FULLY_CONNECTED", [2, 3], [4], np.float32, np.float32),
    ]
    assert precision_of(nodes) == "mixed"


def test_tflite_runtime_beside_numpy_2_is_explained() -> None:
    # As tflite-runtime 2.14.0 fails beside numpy 2.4; what it says of numpy goes to standard error.
    old = runtime.Runtime(SimpleNamespace(), "tflite-runtime", "2.14.0")
    raised = SystemError("<built-in method CreateWrapperFromFile> returned a result with an exception set")
    error = runtime.explain(old, raised)
    assert isinstance(error, RuntimeMissing)
    assert "numpy<2" in error.fix


def test_an_ordinary_refusal_is_not_blamed_on_numpy() -> None:
    old = runtime.Runtime(SimpleNamespace(), "tflite-runtime", "2.14.0")
    assert runtime.explain(old, ValueError("The model is not a valid Flatbuffer buffer")) is None


def test_a_node_list_without_types_gets_them_from_the_tensors() -> None:
    # As tflite-runtime 2.14.0 lists its nodes.
    old = SimpleNamespace(
        _get_ops_details=lambda: [{"index": 0, "op_name": "CONV_2D", "inputs": [0, 1, -1], "outputs": [2]}],
        get_tensor_details=lambda: [{"index": i, "dtype": np.int8} for i in range(3)],
    )
    nodes = nodes_of(old)
    assert nodes is not None
    assert precision_of(nodes) == "int8"


def test_an_interpreter_without_a_node_list_claims_nothing() -> None:
    assert nodes_of(SimpleNamespace(get_tensor_details=list)) is None


def test_tflite_runtime_is_taken_where_litert_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = SimpleNamespace(Interpreter=object)
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    monkeypatch.setitem(sys.modules, "tflite_runtime", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "tflite_runtime.interpreter", stand_in)
    monkeypatch.setattr(runtime.importlib.metadata, "version", lambda name: "2.14.0")
    found = runtime.import_runtime()
    assert (found.package, found.module) == ("tflite-runtime", stand_in)


def test_without_any_runtime_both_names_and_the_interpreter_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    monkeypatch.setitem(sys.modules, "tflite_runtime.interpreter", None)
    status = BACKEND.probe("cpu")
    assert not status.works
    assert "ai-edge-litert" in status.reason
    assert "tflite-runtime" in status.reason
    assert sys.executable in status.fix
