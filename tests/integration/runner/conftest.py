"""Real onnxruntime on tiny networks, and interpreters in which something goes wrong on purpose."""

from __future__ import annotations

import site
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.artifacts import Port
from harness.tasks.base import Sample
from harness.worker.job import Job, JobModel
from harness.worker.pack import worker_archive

BrokenPython = Callable[[str], Path]

# Runs in a worker of the kind that is to suffer, before the worker's own code; a probe runs undisturbed.
PRELUDE = """
import json, os, sys, threading
arguments = sys.orig_argv
kind = None
if arguments and arguments[-1].endswith("job.json"):
    with open(arguments[-1]) as file:
        kind = json.load(file)["kind"]
def later(seconds, call, *values):
    timer = threading.Timer(seconds, call, values)
    timer.daemon = True
    timer.start()
if kind == "timing":
"""


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worker_archive(tmp_path_factory.mktemp("worker-cache"))


@pytest.fixture(scope="session")
def tiny_onnx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = x w, with x [N, 16] and a fixed w."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.RandomState(0).rand(16, 16).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 16])],
        [numpy_helper.from_array(weights, "w")],
    )
    path = tmp_path_factory.mktemp("model") / "tiny.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


@pytest.fixture
def timing_job(tiny_onnx: Path) -> Job:
    """A third of a second of the tiny network on onnxruntime's CPU."""
    inputs = (Port("x", "x", "float32", (0, 16)),)
    return Job(
        trial_id="00000000-0000-0000-0000-000000000001",
        kind="timing",
        backend="onnxruntime",
        out_dir="",
        timeout_s=60,
        target="cpu",
        model=JobModel(str(tiny_onnx), "onnx", inputs, (Port("y", "y", "float32", (0, 16)),)),
        options={"precision": "fp32", "threads": 1, "input_shapes": {"x": [1, 16]}},
        task="random_inputs",
        task_parameters={
            "ports": [{"role": "x", "tensor": "x", "dtype": "float32", "shape": [0, 16], "layout": "as_is"}]
        },
        samples=tuple(Sample(str(seed), data={"seed": seed}) for seed in range(5)),
        scenario="single_stream",
        scenario_parameters={"duration_s": 0.3, "warmup_s": 0.1, "min_queries": 10},
    )


@pytest.fixture
def broken_python(tmp_path: Path) -> BrokenPython:
    """Return a function that makes an interpreter with this environment's packages that runs `code` in timing workers."""

    def make(code: str) -> Path:
        folder = tmp_path / "broken"
        venv.EnvBuilder(symlinks=True).create(folder)
        packages = next(folder.glob("lib/python*/site-packages"))
        indented = "".join(f"    {line}\n" for line in code.strip().splitlines())
        (packages / "trouble.py").write_text(PRELUDE + indented)
        here = next(place for place in site.getsitepackages() if Path(place).is_dir())
        (packages / "trouble.pth").write_text(f"{here}\nimport trouble\n")
        return folder / "bin" / Path(sys.executable).name

    return make
