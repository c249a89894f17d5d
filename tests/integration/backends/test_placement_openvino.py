"""Where OpenVINO ran the layers, in which precision: real plugins on the CPU, and a constructed split over two devices."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backends.base import LoadOptions, TargetUnsupported
from backends.openvino import BACKEND
from backends.openvino.placement import layer_times, node_shares, shares

BATCH = {"x": (4, 64)}


def report_of(path: Path, samples: list, target: str, **options: Any) -> Any:
    session = BACKEND.load(path, "onnx", target, LoadOptions(input_shapes=BATCH, **options))
    session.prepare(1)
    for sample in samples:
        session.infer(0, [sample])
    report = session.report()
    session.close()
    return report


@pytest.mark.parametrize("target", ["auto", "auto:cpu", "hetero:cpu", "multi:cpu"])
def test_a_choosing_plugin_resolves_to_the_device_that_ran(
    target: str, onnx_file: Any, samples: list, tmp_path: Path
) -> None:
    report = report_of(onnx_file(), samples, target, profile_dir=tmp_path)
    assert BACKEND.target_named(target) == target
    assert (report.target, report.devices) == ("cpu", ("CPU",))
    assert report.placement_nodes == {"CPU": 1.0}
    assert report.placement_time == {"CPU": 1.0}
    assert report.details["asked_device"] == target.upper()


@pytest.mark.parametrize("target", ["hetero:", "hetero:tpu", "auto:cpu,", "batch:cpu", "cpu:gpu", "HETERO:CPU"])
def test_other_lists_are_no_targets(target: str, onnx_file: Any) -> None:
    assert BACKEND.target_named(target) is None
    with pytest.raises(TargetUnsupported):
        BACKEND.load(onnx_file(), "onnx", target, LoadOptions())


def test_the_time_in_each_precision_is_that_of_the_layers(onnx_file: Any, samples: list, tmp_path: Path) -> None:
    report = report_of(onnx_file(), samples, "cpu", profile_dir=tmp_path, precision="fp32")
    assert report.details["time_by_precision"] in ({"fp32": 1.0}, {})  # {}: too quick for its clock of 1 us
    assert report.details["math_modes"]["INFERENCE_PRECISION_HINT"] == "fp32"


def layer(name: str, kind: str, kernel: str, microseconds: int) -> SimpleNamespace:
    """One entry of InferRequest.profiling_info; the names are those of a real HETERO request."""
    return SimpleNamespace(
        node_name=name, node_type=kind, exec_type=kernel, real_time=timedelta(microseconds=microseconds)
    )


LAYERS = [
    layer("subgraph0: image", "Parameter", "unknown_f32", 0),
    layer("subgraph0: reorder_1", "Reorder", "jit_uni_f32", 10),  # put in by OpenVINO
    layer("subgraph0: conv", "Convolution", "brgconv_avx512_amx_bf16", 590),
    layer("subgraph1: detect", "NonMaxSuppression", "ref_any_f32", 300),
    layer("subgraph1: reorder_2", "Reorder", "undef", 100),
]
SPLIT = {"conv": "GPU.0", "relu": "GPU.0", "pool": "GPU.0", "detect": "CPU"}


def test_a_split_over_two_devices_has_its_share_of_nodes_and_of_time() -> None:
    assert node_shares(SPLIT) == {"GPU.0": 0.75, "CPU": 0.25}
    found = layer_times(LAYERS, SPLIT)
    assert found.by_device == {"GPU.0": 0.6, "CPU": 0.4}
    assert found.by_precision == {"bf16": pytest.approx(590 / 900), "fp32": pytest.approx(310 / 900)}
    assert found.by_type["Convolution"] == 0.59


def test_without_a_split_no_device_is_guessed() -> None:
    assert node_shares({}) is None
    assert layer_times(LAYERS, {}).by_device is None
    assert layer_times(LAYERS, {"conv": "GPU.0"}).by_device is None  # the second part is not known
    assert shares(Counter()) == {}


def test_the_real_plugin_names_a_device_for_every_computing_operation(onnx_file: Any) -> None:
    import openvino as ov

    from backends.openvino.placement import split_of

    core = ov.Core()
    model = core.read_model(str(onnx_file(1)))
    split = split_of(core, model, "HETERO:CPU")
    assert split == {"dense": "CPU"} or set(split.values()) == {"CPU"}
    assert not {"x", "w"} & set(split)  # inputs and weights compute nothing
    assert np.isclose(sum((node_shares(split) or {}).values()), 1)
    assert split_of(core, model, "HETERO:NPU,GPU") == {}  # not here
