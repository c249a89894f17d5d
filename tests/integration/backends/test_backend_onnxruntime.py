"""onnxruntime: strict providers, TF32, placement, threads. CUDA is played by a recording stand-in: no GPU is here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from backends import create
from backends.base import InferenceFailed, LoadOptions, OptionUnsupported, TargetUnsupported
from backends.onnxruntime import adapter, providers
from backends.onnxruntime.graph import read_graph
from backends.onnxruntime.options import STRICT, session_options

FileMaker = Callable[..., Path]
CUDA = "CUDAExecutionProvider"
BACKEND = create("onnxruntime")


def test_the_probe_model_is_what_onnx_writes() -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"], name="add")],
        "probe",
        [value("x", TensorProto.FLOAT, [1, 2])],
        [value("y", TensorProto.FLOAT, [1, 2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="")
    assert model.SerializeToString() == adapter.PROBE


def test_without_the_strict_entry_onnxruntime_falls_back_and_with_it_it_does_not(onnx_file: FileMaker) -> None:
    path = str(onnx_file(1))
    with pytest.warns(UserWarning, match="not in available provider names"):
        quiet = ort.InferenceSession(path, ort.SessionOptions(), providers=[CUDA])
    assert quiet.get_providers()[0] == "CPUExecutionProvider"
    strict, _ = session_options(ort, CUDA, LoadOptions(), None)
    assert strict.get_session_config_entry(STRICT) == "1"
    with (
        pytest.warns(UserWarning, match="not in available provider names"),
        pytest.raises(Exception, match="fallback to CPU EP has been explicitly disabled"),
    ):
        ort.InferenceSession(path, strict, providers=[CUDA])


def test_a_provider_that_takes_no_node_is_unsupported(onnx_file: FileMaker) -> None:
    # Azure's provider is in this build and takes no ordinary node: the real case of a silent fallback.
    with pytest.raises(TargetUnsupported, match="does not take every node"):
        BACKEND.load(onnx_file(1), "onnx", "AzureExecutionProvider", LoadOptions())


def test_an_explicit_fallback_is_reported_as_the_cpu_that_it_is(onnx_file: FileMaker, samples: list) -> None:
    options = LoadOptions(extra={STRICT: "0"}, input_shapes={"x": (4, 64)})
    session = BACKEND.load(onnx_file(), "onnx", "AzureExecutionProvider", options)
    session.prepare(1)
    session.infer(0, [samples[0]])
    report = session.report()
    session.close()
    assert report.target == "cpu"
    assert report.placement_nodes == {"CPUExecutionProvider": 1.0}
    assert report.details["cpu_fallback"] is True


def test_cuda_here_names_what_is_missing_and_where_to_install_it() -> None:
    status = BACKEND.probe("cuda")
    assert (status.works, status.verified) == (False, False)
    assert f"CPU package onnxruntime {ort.__version__}" in status.reason
    assert "no CUDAExecutionProvider" in status.reason
    assert "libcuda.so.1" in status.reason
    assert "onnxruntime-gpu[cuda,cudnn]" in status.fix
    assert sys.executable in status.fix


@pytest.mark.parametrize(
    ("target", "words"), [("directml", "Windows only"), ("coreml", "macOS only"), ("tensorrt", "libnvinfer.so.10")]
)
def test_other_providers_say_why_not(target: str, words: str) -> None:
    assert words in BACKEND.probe(target).reason


@pytest.mark.parametrize(("precision", "expected"), [("fp32", "0"), ("tf32", "1"), ("default", None)])
def test_tf32_is_set_by_the_precision(precision: str, expected: str | None) -> None:
    options = providers.provider_options(CUDA, LoadOptions(precision=precision, device_index=1), {})
    assert options.get("use_tf32") == expected
    assert options["device_id"] == "1"


def test_tensorrt_gets_its_builder_flags_and_cache(tmp_path: Path) -> None:
    options = providers.provider_options(
        "TensorrtExecutionProvider", LoadOptions(precision="fp16", cache_dir=tmp_path), {}
    )
    assert options["trt_fp16_enable"] == "1"
    assert options["trt_engine_cache_path"] == str(tmp_path)


def test_the_cpu_does_not_pretend_to_run_a_file_in_another_precision(onnx_file: FileMaker) -> None:
    with pytest.raises(OptionUnsupported, match=r"is fp32.*fp16"):
        BACKEND.load(onnx_file(), "onnx", "cpu", LoadOptions(precision="fp16"))


def test_threads_are_those_asked_for_and_otherwise_counted(onnx_file: FileMaker) -> None:
    two = BACKEND.load(onnx_file(), "onnx", "cpu", LoadOptions(threads=2))
    assert two.report().threads == 2
    two.close()
    one = BACKEND.load(onnx_file(), "onnx", "cpu", LoadOptions(extra={"session.intra_op.allow_spinning": "0"}))
    report = one.report()
    one.close()
    assert report.threads is not None and 1 <= report.threads <= len(os.sched_getaffinity(0))
    assert "session started" in report.details["threads_method"]


def test_counted_threads_are_right_where_the_number_is_known(onnx_file: FileMaker) -> None:
    # The same count that stands in for the unknown default, beside sessions of a known size.
    path = str(onnx_file(1))
    for threads in (1, 3):
        made = ort.SessionOptions()
        made.intra_op_num_threads = threads
        before = adapter._thread_count()
        session = ort.InferenceSession(path, made, providers=["CPUExecutionProvider"])
        assert adapter._thread_count() - before + 1 == threads
        del session


def test_a_placement_pass_gives_shares_of_time(onnx_file: FileMaker, samples: list, tmp_path: Path) -> None:
    options = LoadOptions(profile_dir=tmp_path / "profile", input_shapes={"x": (4, 64)})
    session = BACKEND.load(onnx_file(), "onnx", "cpu", options)
    session.prepare(1)
    session.infer(0, [samples[0]])
    report = session.report()
    assert report.placement_time == {"CPUExecutionProvider": 1.0}
    assert session.report().placement_time == report.placement_time
    session.close()


@pytest.mark.parametrize(
    "extra",
    [{"graph_optimization_level": "ORT_DISABLE_ALL"}, {"enable_mem_pattern": "0"}, {"inter_op_num_threads": "2"}],
)
def test_session_options_pass_by_their_own_names(onnx_file: FileMaker, extra: dict[str, str]) -> None:
    made, rest = session_options(ort, "CPUExecutionProvider", LoadOptions(extra=extra), None)
    (name,) = extra
    assert not rest
    assert getattr(made, name) != getattr(ort.SessionOptions(), name)


@pytest.mark.parametrize("extra", [{"graph_optimization_level": "ALL"}, {"enable_mem_pattern": "perhaps"}])
def test_wrong_values_of_session_options_are_refused(onnx_file: FileMaker, extra: dict[str, str]) -> None:
    with pytest.raises(OptionUnsupported):
        BACKEND.load(onnx_file(), "onnx", "cpu", LoadOptions(extra=extra))


def test_an_output_whose_size_depends_on_the_data_is_read_whole(onnx_graph: FileMaker) -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["y"])],
        "nonzero",
        [value("x", TensorProto.FLOAT, [5])],
        [value("y", TensorProto.INT64, [1, "found"])],
    )
    session = BACKEND.load(onnx_graph(graph), "onnx", "cpu", LoadOptions(threads=1))
    session.prepare(1)
    for row in ([0, 1, 0, 2, 3], [0, 0, 0, 0, 9]):
        (answer,) = session.infer(0, [np.array(row, dtype=np.float32)])
        assert answer.tolist() == [np.flatnonzero(row).tolist()]
    session.close()


def test_the_file_tells_its_free_dimensions_and_its_precision(onnx_file: FileMaker) -> None:
    graph = read_graph(onnx_file("batch", "float16"))
    assert graph is not None
    assert graph.inputs == {"x": ("batch", 64)}
    assert graph.precision == "fp16"


def test_quantised_files_are_int8(onnx_graph: FileMaker) -> None:
    value = helper.make_tensor_value_info
    scale = numpy_helper.from_array(np.array(0.1, dtype=np.float32), "scale")
    zero = numpy_helper.from_array(np.array(0, dtype=np.int8), "zero")
    graph = helper.make_graph(
        [
            helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
        ],
        "quantised",
        [value("x", TensorProto.FLOAT, [2])],
        [value("y", TensorProto.FLOAT, [2])],
        [scale, zero],
    )
    session = BACKEND.load(onnx_graph(graph), "onnx", "cpu", LoadOptions(precision="int8"))
    assert session.report().precision == "int8"
    session.close()


@pytest.mark.parametrize("position", range(0, 60, 7))
def test_a_flipped_byte_never_breaks_the_reader_of_the_graph(position: int, tmp_path: Path) -> None:
    data = bytearray(adapter.PROBE)
    data[position] ^= 0xFF
    path = tmp_path / "flipped.onnx"
    path.write_bytes(data)
    read_graph(path)  # None or facts, never an exception


def test_onnxruntime_leaves_nothing_in_the_home_folder(tmp_path: Path) -> None:
    code = "from backends.onnxruntime.adapter import import_runtime; import_runtime()"
    environment = {**os.environ, "HOME": str(tmp_path)}
    environment.pop("XDG_CACHE_HOME", None)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60)
    assert list(tmp_path.iterdir()) == []


class Recorded:
    """A stand-in for a CUDA build: the interface of onnxruntime, computing on the CPU, noting what it is asked."""

    __version__ = ort.__version__
    SessionOptions = ort.SessionOptions

    def __init__(self, lands_on: str = CUDA, fails: str | None = None) -> None:
        self.calls: list[Any] = []
        self.hosts: list[np.ndarray] = []
        self.override: str | None = None
        self.lands_on = lands_on
        self.fails = fails
        self.hides_memory = False
        outer = self

        class OrtValue:
            @staticmethod
            def ortvalue_from_numpy(array: np.ndarray) -> Any:
                return ort.OrtValue.ortvalue_from_numpy(array)

            @staticmethod
            def ortvalue_from_shape_and_type(shape: list[int], dtype: Any, device: str, index: int) -> Any:
                outer.calls.append(("allocate", device, index, tuple(shape)))
                if outer.hides_memory:
                    raise RuntimeError("no allocator for this device")
                array = np.zeros(shape, dtype)
                real = ort.OrtValue.ortvalue_from_numpy(array)

                def update_inplace(host: np.ndarray) -> None:
                    outer.calls.append(("host to device", float(host[0, 0])))
                    outer.hosts.append(host)
                    np.copyto(array, host)

                return SimpleNamespace(real=real, update_inplace=update_inplace)

        class InferenceSession:
            def __init__(
                self, path: str, made: Any, enable_fallback: int, providers: list[str], provider_options: list[dict]
            ) -> None:
                assert not enable_fallback  # Python's own second try, on the CPU
                outer.calls.append(("session", providers, provider_options, made.get_session_config_entry(STRICT)))
                if outer.fails:
                    raise RuntimeError(outer.fails)
                self.real = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
                self.options = provider_options[0]

            def __getattr__(self, name: str) -> Any:
                return getattr(self.real, name)

            def get_providers(self) -> list[str]:
                return [outer.lands_on]

            def get_provider_options(self) -> dict[str, dict[str, str]]:
                return {CUDA: {"use_tf32": "1", **self.options}}

            def io_binding(self) -> Any:
                real = self.real.io_binding()
                bind = real.bind_ortvalue_input
                real.bind_ortvalue_input = lambda name, value: bind(name, getattr(value, "real", value))
                return real

            def run_with_iobinding(self, binding: Any) -> None:
                outer.calls.append(("run",))
                self.real.run_with_iobinding(binding)

        self.OrtValue = OrtValue
        self.InferenceSession = InferenceSession

    def get_available_providers(self) -> list[str]:
        return [CUDA, "CPUExecutionProvider"]

    def preload_dlls(self) -> None:
        self.calls.append(("preload",))
        self.override = os.environ.get("NVIDIA_TF32_OVERRIDE")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """Put the stand-in where the real runtime would be, as on a machine with a driver and an Ampere board."""
    made = Recorded()
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "")  # the adapter sets it; afterwards it is as it was
    monkeypatch.setattr(adapter, "import_runtime", lambda: made)
    monkeypatch.setattr(providers, "missing_libraries", lambda provider, cuda: [])
    monkeypatch.setattr(adapter, "cuda_device", lambda index: ("Test Board", (8, 0)))
    return made


def test_on_cuda_each_request_copies_its_input_and_its_output(
    recorded: Recorded, onnx_file: FileMaker, samples: list, weights: np.ndarray
) -> None:
    session = BACKEND.load(onnx_file(4), "onnx", "cuda", LoadOptions(device_index=1))
    session.prepare(1)
    recorded_before = len(recorded.calls)
    for sample in samples[:2]:
        (answer,) = session.infer(0, [sample])
        np.testing.assert_allclose(answer, sample @ weights, rtol=1e-5, atol=1e-5)
    assert recorded.calls[recorded_before:] == [
        ("host to device", float(samples[0][0, 0])),
        ("run",),
        ("host to device", float(samples[1][0, 0])),
        ("run",),
    ]
    assert ("allocate", "cuda", 1, (4, 64)) in recorded.calls
    assert all(host is sample for host, sample in zip(recorded.hosts, samples[:2], strict=True))  # no copy in between
    with pytest.raises(InferenceFailed, match="the model wants"):
        session.infer(0, [samples[0].astype(np.float64)])
    session.close()


def test_a_build_that_hides_its_device_memory_is_called_by_run(
    recorded: Recorded, onnx_file: FileMaker, samples: list, weights: np.ndarray
) -> None:
    recorded.hides_memory = True
    session = BACKEND.load(onnx_file(4), "onnx", "cuda", LoadOptions())
    session.prepare(2)
    np.testing.assert_allclose(session.infer(1, [samples[0]])[0], samples[0] @ weights, rtol=1e-5, atol=1e-5)
    assert session.report().details["call"] == "run"
    session.close()


@pytest.mark.parametrize(
    ("precision", "capability", "effective"),
    [("fp32", (8, 0), "fp32"), ("tf32", (8, 0), "tf32"), ("default", (9, 0), "tf32"), ("default", (7, 5), "fp32")],
)
def test_on_cuda_the_math_mode_is_set_and_reported(
    recorded: Recorded,
    onnx_file: FileMaker,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    capability: tuple[int, int],
    effective: str,
) -> None:
    monkeypatch.setattr(adapter, "cuda_device", lambda index: ("Test Board", capability))
    session = BACKEND.load(onnx_file(4), "onnx", "cuda", LoadOptions(precision=precision))
    report = session.report()
    session.close()
    assert report.precision == effective
    assert report.details["math_modes"] == {"use_tf32": "0" if precision == "fp32" else "1"}
    assert report.devices == ("Test Board",)


@pytest.mark.parametrize(("precision", "override"), [("fp32", "0"), ("tf32", None), ("default", None)])
def test_no_variable_of_the_users_decides_over_tf32(
    recorded: Recorded,
    onnx_file: FileMaker,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    override: str | None,
) -> None:
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1" if precision == "fp32" else "0")
    BACKEND.load(onnx_file(4), "onnx", "cuda", LoadOptions(precision=precision)).close()
    assert recorded.override == override  # as it is when NVIDIA's libraries are loaded


def test_on_cuda_libraries_are_preloaded_and_the_session_is_strict(recorded: Recorded, onnx_file: FileMaker) -> None:
    BACKEND.load(onnx_file(4), "onnx", "cuda", LoadOptions()).close()
    assert recorded.calls[0] == ("preload",)
    assert recorded.calls[1] == ("session", [CUDA], [{"device_id": "0", "use_tf32": "0"}], "1")


def test_a_session_that_landed_elsewhere_is_never_returned(recorded: Recorded, onnx_file: FileMaker) -> None:
    recorded.lands_on = "CPUExecutionProvider"
    with pytest.raises(TargetUnsupported, match="put the session on CPUExecutionProvider"):
        BACKEND.load(onnx_file(4), "onnx", "cuda", LoadOptions())


def test_a_missing_cuda_library_is_named(
    recorded: Recorded, onnx_file: FileMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.fails = (
        "This session contains graph nodes, but fallback to CPU EP has been explicitly disabled by the user."
    )
    monkeypatch.setattr(providers, "missing_libraries", lambda provider, cuda: ["libcudnn.so.9"])
    with pytest.raises(TargetUnsupported, match=r"libcudnn\.so\.9 not found") as caught:
        BACKEND.load(onnx_file(4), "onnx", "cuda", LoadOptions())
    assert "onnxruntime-gpu[cuda,cudnn]" in caught.value.fix


@pytest.mark.parametrize(("build", "wanted"), [("12.8", "libcublasLt.so.12"), ("13.0", "libcublasLt.so.13")])
def test_the_libraries_looked_for_are_those_of_the_builds_own_cuda(build: str, wanted: str) -> None:
    missing = providers.missing_libraries(CUDA, providers.cuda_of(SimpleNamespace(cuda_version=build)))
    assert [name for name in missing if "cublasLt" in name] == [wanted]


def test_weights_inside_branches_are_seen(onnx_graph: FileMaker) -> None:
    value = helper.make_tensor_value_info
    half = numpy_helper.from_array(np.ones(2, dtype=np.float16), "half")
    branch = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=half)], "branch", [], [value("c", TensorProto.FLOAT16, [2])]
    )
    graph = helper.make_graph(
        [helper.make_node("If", ["choice"], ["y"], then_branch=branch, else_branch=branch)],
        "chosen",
        [value("choice", TensorProto.BOOL, [])],
        [value("y", TensorProto.FLOAT16, [2])],
    )
    found = read_graph(onnx_graph(graph))
    assert found is not None
    assert (found.precision, found.inputs) == ("fp16", {"choice": ()})


def test_half_precision_on_the_cpu_is_claimed_only_with_a_profile(onnx_file: FileMaker, tmp_path: Path) -> None:
    for folder in (None, tmp_path / "profile"):
        session = BACKEND.load(
            onnx_file(1, "float16"), "onnx", "cpu", LoadOptions(precision="fp16", profile_dir=folder, threads=1)
        )
        session.prepare(1)
        session.infer(0, [np.ones((1, 64), dtype=np.float16)])
        precision = session.report().precision
        session.close()
        assert precision is None if folder is None else precision in ("mixed", "fp16")
