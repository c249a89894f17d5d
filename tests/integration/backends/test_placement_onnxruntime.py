"""Where onnxruntime ran the nodes, and in which types: real profiles, and one constructed as a GPU build writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.base import LoadOptions, OptionUnsupported
from backends.onnxruntime import BACKEND
from backends.onnxruntime.options import FAST_MATH
from backends.onnxruntime.placement import read_profile

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def kernel(name: str, provider: str, microseconds: int, *types: str) -> dict[str, Any]:
    """One event of the profile; the fields are those of onnxruntime 1.32."""
    arguments = {"provider": provider, "output_type_shape": [{kind: [1, 2]} for kind in types]}
    return {"cat": "Node", "name": f"{name}_kernel_time", "dur": microseconds, "ts": 1, "args": arguments}


def profile(folder: Path, *events: dict[str, Any]) -> Path:
    path = folder / "profile.json"
    path.write_text(json.dumps([{"cat": "Session", "name": "model_run", "dur": 9, "args": {}}, *events]))
    return path


def test_shares_of_kernels_and_of_time_differ_and_both_are_told(tmp_path: Path) -> None:
    found = read_profile(
        profile(
            tmp_path,
            kernel("conv", CUDA, 30, "float"),
            kernel("relu", CUDA, 10, "float"),
            kernel("shape", CPU, 0, "int64"),
            kernel("nms", CPU, 160, "int64"),
        )
    )
    assert found is not None
    assert found.kernels == {CPU: 0.5, CUDA: 0.5}
    assert found.time == {CPU: 0.8, CUDA: 0.2}
    assert found.time_by_precision == {"fp32": 1.0}  # indices are no arithmetic


def test_the_first_call_of_each_kernel_is_left_out_where_there_are_more(tmp_path: Path) -> None:
    slow_start = [kernel("conv", CUDA, 90_000, "float16"), kernel("softmax", CPU, 100, "float")]
    warm = [kernel("conv", CUDA, 300, "float16"), kernel("softmax", CPU, 100, "float")]
    found = read_profile(profile(tmp_path, *slow_start, *warm))
    assert found is not None
    assert found.time == {CPU: 0.25, CUDA: 0.75}
    assert found.time_by_precision == {"fp16": 0.75, "fp32": 0.25}


@pytest.mark.parametrize(
    "events", [[], [{"cat": "Node"}], [7, None], [{"cat": "Node", "name": "x_kernel_time", "args": 3}]]
)
def test_a_profile_that_tells_nothing_is_none(events: list[Any], tmp_path: Path) -> None:
    assert read_profile(profile(tmp_path, *events)) is None


def test_a_real_profile_tells_the_types_of_the_results(onnx_file: Any, samples: list, tmp_path: Path) -> None:
    options = LoadOptions(profile_dir=tmp_path / "profile", input_shapes={"x": (4, 64)})
    session = BACKEND.load(onnx_file(), "onnx", "cpu", options)
    session.prepare(1)
    for sample in samples:
        session.infer(0, [sample])
    details = session.report().details
    session.close()
    assert details["time_by_precision"] == {"fp32": 1.0}


def test_a_profile_of_half_precision_shows_how_much_ran_in_which_type(onnx_file: Any, tmp_path: Path) -> None:
    options = LoadOptions(precision="fp16", profile_dir=tmp_path / "profile", threads=1)
    session = BACKEND.load(onnx_file(1, "float16"), "onnx", "cpu", options)
    session.prepare(1)
    for _ in range(30):
        session.infer(0, [np.ones((1, 64), dtype=np.float16)])
    report = session.report()
    session.close()
    shares = report.details["time_by_precision"]
    assert sum(shares.values()) == pytest.approx(1)
    # "mixed" is said exactly where kernels answered in both.
    assert (report.precision == "mixed") == (set(shares) == {"fp16", "fp32"})


def test_multiplying_in_bf16_is_no_fp32_and_is_not_called_so(onnx_file: Any) -> None:
    with pytest.raises(OptionUnsupported, match="lets the CPU multiply in bf16"):
        BACKEND.load(onnx_file(1), "onnx", "cpu", LoadOptions(extra={FAST_MATH: "1"}))
    session = BACKEND.load(onnx_file(1), "onnx", "cpu", LoadOptions(precision="default", extra={FAST_MATH: "1"}))
    report = session.report()
    session.close()
    assert report.precision is None
    assert report.details["math_modes"] == {FAST_MATH: "1"}
