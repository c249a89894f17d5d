"""A published file that comes by URL, as ResNet-50 of the ONNX Model Zoo does: fetched, its tensors read, converted."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.errors import ModelError
from harness.models.catalog import ModelEntry, find_model
from harness.models.store import ModelStore


def published(classes: int = 1000) -> bytes:
    """A small network with the inputs and outputs of the zoo's ResNet-50, and its weights among the inputs, as there."""
    kernel = numpy_helper.from_array(np.ones((8, 3, 1, 1), np.float32), "kernel")
    matrix = numpy_helper.from_array(np.ones((classes, 8), np.float32), "matrix")
    bias = numpy_helper.from_array(np.zeros(classes, np.float32), "bias")
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["data", "kernel"], ["c"], kernel_shape=[1, 1], strides=[4, 4]),
            helper.make_node("GlobalAveragePool", ["c"], ["p"]),
            helper.make_node("Flatten", ["p"], ["f"]),
            helper.make_node("Gemm", ["f", "matrix", "bias"], ["resnetv17_dense0_fwd"], transB=1),
        ],
        "zoo",
        [
            helper.make_tensor_value_info("data", TensorProto.FLOAT, ["N", 3, 224, 224]),
            helper.make_tensor_value_info("kernel", TensorProto.FLOAT, [8, 3, 1, 1]),
        ],
        [helper.make_tensor_value_info("resnetv17_dense0_fwd", TensorProto.FLOAT, ["N", classes])],
        [kernel, matrix, bias],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=7)
    return bytes(model.SerializeToString())


@pytest.fixture
def zoo(web_server: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The catalogue's entry, with our server in the place of the zoo's."""

    def serve(data: bytes) -> None:
        entry = find_model("resnet50-zoo")
        source = replace(
            entry.source("fp32"),
            source=f"url:{web_server.url}",
            sha256=hashlib.sha256(data).hexdigest(),
            bytes=len(data),
        )
        changed: ModelEntry = replace(entry, sources=(source, entry.source("int8")))
        monkeypatch.setattr("harness.models.store.find_model", lambda name: changed)
        web_server.content = data

    return serve


def test_tensors_are_read_from_the_file_by_position(zoo: Any, tmp_path: Path) -> None:
    zoo(published())
    file = ModelStore(tmp_path).ensure("resnet50-zoo", "onnx")
    assert [(p.role, p.tensor, p.shape) for p in (*file.inputs, *file.outputs)] == [
        ("image", "data", (0, 3, 224, 224)),
        ("logits", "resnetv17_dense0_fwd", (0, 1000)),
    ]
    assert file.batch is None


def test_it_is_converted_like_every_other(zoo: Any, tmp_path: Path) -> None:
    zoo(published())
    store = ModelStore(tmp_path)
    file = store.ensure("resnet50-zoo", "tflite", batch=2)
    assert [(p.role, p.shape) for p in (*file.inputs, *file.outputs)] == [
        ("image", (2, 3, 224, 224)),
        ("logits", (2, 1000)),
    ]
    assert file.artifact.source_sha256 == store.ensure("resnet50-zoo", "onnx").artifact.sha256


def test_another_network_than_expected_is_refused(zoo: Any, tmp_path: Path) -> None:
    zoo(published(classes=10))
    with pytest.raises(ModelError, match="other inputs or outputs"):
        ModelStore(tmp_path).ensure("resnet50-zoo", "onnx")


def test_a_connection_that_breaks_costs_only_the_rest(zoo: Any, web_server: Any, tmp_path: Path) -> None:
    data = published()
    zoo(data)
    web_server.breaks = [len(data) // 2]
    assert ModelStore(tmp_path).ensure("resnet50-zoo", "onnx").path.read_bytes() == data
    assert web_server.seen == [None, f"bytes={len(data) // 2}-"]
