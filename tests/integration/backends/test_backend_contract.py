"""What every backend owes the harness, on real runtimes: right numbers from rotating inputs, own buffers per slot, one
sentence for what goes wrong."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends import BACKENDS, create
from backends.base import InferenceFailed, LoadOptions, ModelRejected, OptionUnsupported, TargetUnsupported

RUNNING = ("onnxruntime", "openvino", "tflite")
FP32 = LoadOptions(precision="fp32", threads=1, input_shapes={"x": (4, 64)})


@pytest.fixture(params=RUNNING)
def loadable(request: pytest.FixtureRequest) -> tuple[Any, Path, str]:
    """A backend that runs here, with the dense layer in a format that it reads."""
    backend = create(request.param)
    if request.param == "tflite":
        return backend, request.getfixturevalue("tflite_file")(), "tflite"
    return backend, request.getfixturevalue("onnx_file")(), "onnx"


@pytest.fixture
def session(loadable: tuple[Any, Path, str]) -> Any:
    """The dense layer loaded on the CPU for a batch of four, with two slots."""
    backend, path, kind = loadable
    made = backend.load(path, kind, "cpu", FP32)
    made.prepare(2)
    yield made
    made.close()


def test_rotating_inputs_give_each_its_own_answer(session: Any, samples: list, weights: np.ndarray) -> None:
    for sample in samples * 2:
        (answer,) = session.infer(0, [sample])
        np.testing.assert_allclose(answer, sample @ weights, rtol=1e-5, atol=1e-5)


def test_a_free_batch_takes_the_size_that_was_asked_for(session: Any) -> None:
    assert [(i.name, i.dtype, i.shape) for i in session.inputs] == [("x", "float32", (4, 64))]
    assert [(o.dtype, o.shape) for o in session.outputs] == [("float32", (4, 32))]


def test_a_free_batch_is_one_when_nothing_is_asked(loadable: tuple[Any, Path, str]) -> None:
    backend, path, kind = loadable
    session = backend.load(path, kind, "cpu", LoadOptions(threads=1))
    assert session.inputs[0].shape == (1, 64)
    session.close()


def test_two_requests_in_flight_do_not_disturb_each_other(session: Any, samples: list, weights: np.ndarray) -> None:
    for left, right in pairwise(samples):
        session.submit(0, [left])
        session.submit(1, [right])
        second, first = session.wait(1)[0].copy(), session.wait(0)[0].copy()
        np.testing.assert_allclose(first, left @ weights, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(second, right @ weights, rtol=1e-5, atol=1e-5)


def test_each_ended_request_is_told_once_in_any_order(session: Any, samples: list, weights: np.ndarray) -> None:
    for left, right in pairwise(samples):
        session.submit(0, [left])
        session.submit(1, [right])
        asked = {0: left, 1: right}
        while asked:
            slot = session.next_done()
            np.testing.assert_allclose(session.wait(slot)[0], asked.pop(slot) @ weights, rtol=1e-5, atol=1e-5)
    with pytest.raises(InferenceFailed, match="No request"):
        session.next_done()


def test_a_request_is_told_within_the_time_or_nothing_is(session: Any, samples: list, weights: np.ndarray) -> None:
    assert session.done_within(0.0) is None
    for left, right in pairwise(samples):
        session.submit(0, [left])
        session.submit(1, [right])
        asked = {0: left, 1: right}
        while asked:
            slot = session.done_within(60.0)
            np.testing.assert_allclose(session.wait(slot)[0], asked.pop(slot) @ weights, rtol=1e-5, atol=1e-5)
        assert session.done_within(0.001) is None


def test_a_busy_slot_and_an_idle_one_are_refused(session: Any, samples: list) -> None:
    session.submit(0, [samples[0]])
    with pytest.raises(InferenceFailed, match="busy"):
        session.submit(0, [samples[1]])
    session.wait(0)
    with pytest.raises(InferenceFailed, match="no request"):
        session.wait(0)


def test_an_answer_outlives_a_call_on_the_other_slot(session: Any, samples: list, weights: np.ndarray) -> None:
    (first,) = session.infer(0, [samples[0]])
    session.infer(1, [samples[1]])
    np.testing.assert_allclose(first, samples[0] @ weights, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 64), (4, 32), (64,)])
def test_an_input_of_another_shape_is_never_broadcast(session: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(InferenceFailed):
        session.infer(0, [np.zeros(shape, dtype=np.float32)])


def test_an_input_of_another_type_is_never_cast(session: Any) -> None:
    with pytest.raises(InferenceFailed):
        session.infer(0, [np.zeros((4, 64), dtype=np.float64)])


def test_closing_twice_is_harmless(loadable: tuple[Any, Path, str], samples: list) -> None:
    backend, path, kind = loadable
    session = backend.load(path, kind, "cpu", FP32)
    session.prepare(2)
    session.submit(1, [samples[0]])
    session.wait(1)
    session.close()
    session.close()


def test_the_report_names_what_ran(session: Any) -> None:
    report = session.report()
    assert (report.target, report.precision, report.threads) == ("cpu", "fp32", 1)
    assert sum(report.placement_nodes.values()) == pytest.approx(1)
    assert report.runtime_version[0].isdigit()
    assert json.loads(json.dumps(asdict(report)))["target"] == "cpu"  # it travels as JSON


def test_loading_is_timed(session: Any) -> None:
    assert session.load_ms > 0
    assert session.compile_ms is None or session.compile_ms > 0


@pytest.mark.parametrize("data", [b"", b"not a model" * 50, bytes(4096)], ids=["empty", "text", "zeros"])
def test_garbage_is_rejected_in_one_sentence(loadable: tuple[Any, Path, str], tmp_path: Path, data: bytes) -> None:
    backend, _, kind = loadable
    path = tmp_path / "garbage.bin"
    path.write_bytes(data)
    with pytest.raises(ModelRejected) as caught:
        backend.load(path, kind, "cpu", FP32)
    assert "\n" not in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_truncated_model_is_rejected(loadable: tuple[Any, Path, str], tmp_path: Path) -> None:
    backend, whole, kind = loadable
    path = tmp_path / "half.bin"
    path.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(ModelRejected):
        backend.load(path, kind, "cpu", FP32)


def test_a_missing_file_is_named(loadable: tuple[Any, Path, str], tmp_path: Path) -> None:
    backend, _, kind = loadable
    with pytest.raises(ModelRejected, match=r"nowhere\.bin"):
        backend.load(tmp_path / "nowhere.bin", kind, "cpu", FP32)


def test_an_input_that_the_model_lacks_is_named_with_those_it_has(loadable: tuple[Any, Path, str]) -> None:
    backend, path, kind = loadable
    with pytest.raises(ModelRejected, match=r"'picture'.*x"):
        backend.load(path, kind, "cpu", LoadOptions(input_shapes={"picture": (1, 3)}))


@pytest.mark.parametrize("shape", [(4, 63), (4, 64, 1), (0, 64)])
def test_a_shape_that_the_model_cannot_take_is_refused(loadable: tuple[Any, Path, str], shape: tuple[int, ...]) -> None:
    backend, path, kind = loadable
    with pytest.raises(ModelRejected, match="cannot take"):
        backend.load(path, kind, "cpu", LoadOptions(input_shapes={"x": shape}))


@pytest.mark.parametrize(
    "options",
    [
        LoadOptions(threads=0),
        LoadOptions(streams=-1),
        LoadOptions(device_index=-1),
        LoadOptions(precision="tf32"),
        LoadOptions(precision="fp8"),
        LoadOptions(precision="int8"),
        LoadOptions(extra={"NO_SUCH_OPTION": "1"}),
    ],
    ids=["threads", "streams", "device", "tf32", "fp8", "int8 of an fp32 file", "unknown name"],
)
def test_options_that_cannot_be_honoured_are_refused(loadable: tuple[Any, Path, str], options: LoadOptions) -> None:
    backend, path, kind = loadable
    with pytest.raises(OptionUnsupported):
        backend.load(path, kind, "cpu", options)


def test_an_unknown_target_is_refused(loadable: tuple[Any, Path, str]) -> None:
    backend, path, kind = loadable
    with pytest.raises(TargetUnsupported):
        backend.load(path, kind, "abacus", FP32)


@pytest.mark.parametrize("name", RUNNING)
def test_the_cpu_works_here_and_is_verified(name: str) -> None:
    status = create(name).probe("cpu")
    assert (status.works, status.verified, status.reason) == (True, True, None)
    assert status.version
    assert status.device_name


@pytest.mark.parametrize("name", BACKENDS)
def test_a_probe_never_raises_and_always_gives_a_reason(name: str) -> None:
    backend = create(name)
    for target in (*backend.targets(), "abacus"):
        status = backend.probe(target)
        assert status.works or (status.reason and "\n" not in status.reason)


@pytest.mark.parametrize("name", BACKENDS)
def test_another_backends_format_is_rejected(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    backend = create(name)
    with pytest.raises(ModelRejected, match="gguf"):
        backend.load(path, "gguf", backend.targets()[0], LoadOptions())


def test_a_default_that_is_known_to_be_fp32_computes_what_fp32_computes(
    loadable: tuple[Any, Path, str], samples: list
) -> None:
    backend, path, kind = loadable
    known = backend.default_precision("cpu")
    found = {}
    for precision in ("fp32", "default"):
        options = LoadOptions(precision=precision, threads=1, input_shapes={"x": (4, 64)})
        loaded = backend.load(path, kind, "cpu", options)
        loaded.prepare(1)
        found[precision] = (loaded.report().precision, np.array(loaded.infer(0, [samples[0]])[0]))
        loaded.close()
    if known is None:  # only a loaded session knows
        assert found["default"][0] in ("fp32", "bf16")
        return
    assert (known, found["default"][0]) == ("fp32", "fp32")
    assert np.array_equal(found["default"][1], found["fp32"][1])


@pytest.mark.parametrize("name", BACKENDS)
def test_no_backend_claims_a_default_for_a_target_that_it_does_not_know(name: str) -> None:
    assert create(name).default_precision("a target that does not exist") is None
