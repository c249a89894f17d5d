"""Rows 1 to 4 of the cases that people reported: what was asked for and what really ran, from `weigh run` to the store.

1. CUDA libraries were missing, the session quietly ran on the CPU, and the number was published as a GPU's.
2. A delegate took a third of the nodes, and the rest ran elsewhere.
3. The request said f32, and the hardware ran bf16.
4. AUTO hid which device worked.
"""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

SUITE = """
name = "placed"
version = "1"
placement = true

[targets]
onnxruntime = ["cpu", "cuda"]
openvino = ["cpu", "auto"]
tflite = ["cpu"]

[[workload]]
name = "dense"
task = "random_inputs"
model = { path = "dense.onnx", format = "onnx" }

[[workload]]
name = "remainder"
task = "random_inputs"
model = { path = "remainder.tflite", format = "tflite" }

[[measure]]
scenario = "single_stream"
workloads = ["dense", "remainder"]
precisions = ["fp32", "default"]
trials = 1
duration_s = 0.1
warmup_s = 0.02
min_queries = 10
"""

# A build with CUDA whose libraries are missing, as onnxruntime-gpu behaves: the provider is listed, the session is made
# without a word, and every node runs on the CPU. It may even name CUDA first among its providers.
PRETENDED = """
import onnxruntime as ort
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
real = ort.InferenceSession
class Silent(real):
    def __init__(self, path, made, enable_fallback=1, providers=None, provider_options=None):
        self.asked = (providers or [CPU])[0]
        options = ort.SessionOptions()
        options.enable_profiling = made.enable_profiling
        options.profile_file_prefix = made.profile_file_prefix
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        super().__init__(path, options, providers=[CPU])
    def get_providers(self):
        return [CPU] if HONEST or self.asked == CPU else [CUDA, CPU]
    def get_provider_options(self):
        return {CPU: {}, CUDA: {"use_tf32": "0"}}
    def __getattribute__(self, name):
        if BLIND and name == "get_provider_graph_assignment_info":
            raise AttributeError(name)
        return super().__getattribute__(name)
ort.InferenceSession = Silent
ort.get_available_providers = lambda: [CUDA, CPU]
ort.preload_dlls = lambda *arguments, **named: None
"""


def onnx_file(path: Path) -> None:
    """Write y = x w with 64 inputs and 32 outputs: a layer that OpenVINO computes in bf16 where it may."""
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(7).standard_normal((64, 32)).astype(np.float32)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="dense")],
        "dense",
        [value("x", TensorProto.FLOAT, [1, 64])],
        [value("y", TensorProto.FLOAT, [1, 32])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def tflite_file(path: Path) -> None:
    """Write y = (x w) mod 0.7: XNNPACK takes the dense layer and leaves the remainder, which it does not know."""
    from .backends.conftest import TinyTflite

    weights = np.random.default_rng(7).standard_normal((64, 32)).astype(np.float32)
    path.write_bytes(TinyTflite().dense(weights, 0.7))


class Measured:
    """One run of the suite in folders of its own, with its record and its store."""

    def __init__(self, home: Path, *arguments: str) -> None:
        onnx_file(home / "dense.onnx")
        tflite_file(home / "remainder.tflite")
        (home / "placed.toml").write_text(SUITE)
        folders = {f"WEIGHBRIDGE_{name}": str(home / name.lower()) for name in ("DATA", "CONFIG", "STATE")}
        self.url = f"sqlite:///{home / 'store.sqlite'}"
        self.environment = {**os.environ, **folders, "WEIGHBRIDGE_STORE": self.url, "COLUMNS": "200", "NO_COLOR": "1"}
        self.done = self.weigh("run", str(home / "placed.toml"), "--json", str(home / "run.json"), *arguments)
        assert (home / "run.json").is_file(), self.done.stderr
        self.record = json.loads((home / "run.json").read_text())

    def weigh(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "weigh", *arguments],
            capture_output=True, text=True, timeout=240, env=self.environment, check=False,
        )  # fmt: skip

    def rows(self) -> list[Any]:
        """The measurements as the store gives them to every page."""
        from db.queries import results
        from db.store import open_store

        store = open_store(self.url)
        try:
            return list(results(store.engine))
        finally:
            store.close()

    def row(self, backend: str, target: str, asked: str = "fp32", workload: str = "dense") -> Any:
        wanted = (workload, backend, target, asked)
        (found,) = [
            row for row in self.rows() if (row.workload, row.backend, row.target, row.requested_precision) == wanted
        ]
        return found


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return Measured(tmp_path_factory.mktemp("placed"))


@pytest.fixture
def pretended(tmp_path: Path) -> Callable[..., Measured]:
    """Return a function that measures CUDA in an interpreter whose onnxruntime pretends to have it."""

    def run(honest: bool, blind: bool) -> Measured:
        folder = tmp_path / "gpu-build"
        venv.EnvBuilder(symlinks=True).create(folder)
        packages = next(folder.glob("lib/python*/site-packages"))
        (packages / "pretended.py").write_text(f"HONEST, BLIND = {honest}, {blind}\n{PRETENDED}")
        here = next(place for place in site.getsitepackages() if Path(place).is_dir())
        (packages / "pretended.pth").write_text(f"{here}\nimport pretended\n")
        python = folder / "bin" / Path(sys.executable).name
        home = tmp_path / "home"
        (home / "config").mkdir(parents=True)
        (home / "config" / "config.toml").write_text(f'[runtimes]\nonnxruntime = "{python}"\n')
        return Measured(home, "--backend", "onnxruntime", "--target", "cuda", "--workload", "dense")

    return run


def codes(row: Any) -> dict[str, str]:
    return dict(row.flags)


def test_row_1_cuda_that_is_not_here_is_unsupported_and_names_what_is_missing(measured: Measured) -> None:
    """Row 1 on this machine's real onnxruntime, which has no CUDA."""
    row = measured.row("onnxruntime", "cuda")
    assert row.status == "unsupported"
    assert "CUDAExecutionProvider" in row.reason
    assert "libcuda.so.1" in row.reason
    assert (row.effective_target, row.p50_ms, row.throughput_per_s) == (None, None, None)


@pytest.mark.parametrize(
    ("honest", "blind"), [(True, False), (False, False), (False, True)], ids=["admits it", "graph", "profile"]
)
def test_row_1_a_session_that_lands_on_the_cpu_is_never_a_gpu_number(
    pretended: Callable[..., Measured], honest: bool, blind: bool
) -> None:
    """Row 1: the session says so itself; or only the graph's assignment shows it; or only a profile of what executed."""
    found = pretended(honest, blind)
    assert found.done.returncode == 1  # asked for by name, and it did not run
    rows = found.rows()
    assert rows
    for row in rows:
        assert (row.target, row.status) == ("cuda", "unsupported" if honest else "invalid"), row.reason
        # The missing piece is named where it is known before, else what ran in its place.
        assert ("libcuda.so.1" if honest else "cuda was asked for, but cpu ran") in row.reason
        assert row.effective_target == (None if honest else "cpu")
    assert "Traceback" not in found.done.stderr
    shown = json.loads(found.weigh("results", "--json").stdout)
    assert not [entry for entry in shown if entry["status"] == "ok"]


def test_row_1_holds_after_ingest_for_a_record_that_calls_itself_ok(
    make_bundle: Callable[..., Any], store: Any
) -> None:
    """Row 1: a device with an older or a doctored agent sends the number as a GPU's; stored and shown it is invalid."""
    from db.ingest import ingest
    from db.queries import results
    from harness.records import Effective, Run

    def forged(run: Run) -> Run:
        (measurement,) = run.measurements
        case = replace(measurement.case, target="cuda", compute_unit="gpu0")
        ran = Effective("cpu", "cpu", "fp32", 2, 1, "onnxruntime", "1.32.0", ("CPU",))
        told = replace(measurement, case=case, case_key=case.key, effective=ran, status="ok", reason=None)
        return replace(run, measurements=(told,))

    ingest(store.engine, make_bundle(change=forged))
    (row,) = results(store.engine)
    assert row.status == "invalid"
    assert "cuda was asked for, but cpu ran" in row.reason


def test_row_2_a_delegate_that_takes_a_part_is_stored_by_node_and_by_time_and_called_mixed(measured: Measured) -> None:
    """Row 2, real: XNNPACK takes the dense layer of two nodes."""
    from dashboard.grids import placement_words

    row = measured.row("tflite", "cpu", workload="remainder")
    assert row.status == "ok", row.reason
    placement = row.effective["placement"]
    assert placement["nodes"] == {"xnnpack": 0.5, "builtin": 0.5}
    assert sum(placement["time"].values()) == pytest.approx(1)
    assert "cutting the file" in placement["method"]
    assert codes(row)["mixed_placement"].startswith(
        "The network ran on several processors or delegates: by nodes builtin 50 %, xnnpack 50 %; by time "
    )
    words = placement_words(row.effective)
    assert words.startswith("mixed: ")
    assert "xnnpack 50 % (" in words


def test_row_3_bf16_for_the_default_is_stored_flagged_and_never_like_fp32(measured: Measured) -> None:
    """Row 3, real: OpenVINO's default is bf16 on a processor that has it, fp32 when that is asked for by name."""
    from harness.judgement.verdict import judge_pair

    asked, default = measured.row("openvino", "cpu"), measured.row("openvino", "cpu", "default")
    assert (asked.status, default.status) == ("ok", "ok")
    assert (asked.requested_precision, asked.effective_precision) == ("fp32", "fp32")
    assert "reduced_precision" not in codes(asked)
    assert default.requested_precision == "default"
    if has_bf16():
        assert default.effective_precision == "bf16"
        assert "bf16 is what ran" in codes(default)["reduced_precision"]
        for metric in ("p50", "throughput"):
            assert judge_pair(asked, default, metric).kind != "like_for_like"
    else:
        assert default.effective_precision == "fp32"
        assert "reduced_precision" not in codes(default)
    # On onnxruntime's CPU the default is fp32: it would be the same case again, so it is not measured.
    others = {row.requested_precision for row in measured.rows() if (row.backend, row.target) == ("onnxruntime", "cpu")}
    assert others == {"fp32"}


def has_bf16() -> bool:
    import openvino as ov

    return "BF16" in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


@pytest.mark.parametrize("asked", ["fp32", "default"])
def test_row_4_auto_is_never_a_device(measured: Measured, asked: str) -> None:
    """Row 4, real: AUTO resolves to the processor that worked, which is what is stored and shown."""
    row = measured.row("openvino", "auto", asked)
    assert row.status == "ok", row.reason
    assert row.effective_target == "cpu"
    assert row.effective["devices"] == ["CPU"]
    assert row.effective["compute_unit"] == "cpu"
    assert codes(row)["auto_target"] == "auto leaves the choice to openvino, which ran it on: CPU."
    assert row.compute_unit == "cpu"
    assert "auto" not in (row.hardware_model or "").lower()


def test_every_run_knows_what_the_harness_itself_costs(measured: Measured) -> None:
    cost = measured.record["self_cost"]
    assert cost["reason"] is None
    assert 0 < cost["recorded_us"] <= cost["wall_us"]
    assert measured.row("openvino", "cpu").self_cost == cost
