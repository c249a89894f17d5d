"""The pieces that recipes are made of, against what they are defined to be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from safetensors.numpy import save_file

from harness.errors import ModelError
from harness.models.recipes import recipe, recipe_digest, resnet50
from harness.models.recipes.graph import GraphWriter, folded, same_padding
from harness.models.recipes.minilm import read_safetensors


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pads"),
    [  # by hand: total = (ceil(size / stride) - 1) * stride + kernel - size, the odd one after
        (224, 3, 2, (0, 0, 1, 1)),
        (112, 3, 1, (1, 1, 1, 1)),
        (56, 5, 2, (1, 1, 2, 2)),
        (15, 5, 2, (2, 2, 2, 2)),
        (7, 1, 1, (0, 0, 0, 0)),
    ],
)
def test_same_padding_is_asymmetric_where_the_stride_makes_it_so(
    size: int, kernel: int, stride: int, pads: tuple[int, ...]
) -> None:
    assert same_padding(size, kernel, stride) == pads


def test_a_folded_normalisation_gives_what_the_two_steps_give() -> None:
    random = np.random.RandomState(0)
    weight = random.randn(4, 3, 1, 1)
    gamma, beta, mean, variance = random.rand(4), random.randn(4), random.randn(4), random.rand(4)
    x = random.randn(3)
    plain = weight[:, :, 0, 0] @ x
    expected = (plain - mean) / np.sqrt(variance + 1e-3) * gamma + beta
    kernel, bias = folded(weight, gamma, beta, mean, variance, 1e-3)
    assert np.allclose(kernel[:, :, 0, 0] @ x + bias, expected, atol=1e-12)


def test_a_scalar_weight_stays_a_scalar() -> None:
    graph = GraphWriter("g")
    graph.node("Clip", "clip", ["x", graph.weight("low", np.array(0, np.float32))], output="y")
    data = graph.model({"x": ("float32", ("n",))}, {"y": ("float32", ("n",))})
    model = onnx.load_model_from_string(data)
    assert list(model.graph.initializer[0].dims) == []
    assert ReferenceEvaluator(model).run(None, {"x": np.array([-1, 2], np.float32)})[0].tolist() == [0, 2]


def test_safetensors_are_read_as_their_own_library_writes_them(tmp_path: Path) -> None:
    tensors = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([5], np.int64)}
    save_file(tensors, tmp_path / "x.safetensors")
    found = read_safetensors(tmp_path / "x.safetensors")
    assert found.keys() == tensors.keys()
    assert all(np.array_equal(found[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 20, (2).to_bytes(8, "little") + b"[]", (1 << 40).to_bytes(8, "little")]
)
def test_what_is_no_safetensors_file_is_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match=r"x\.safetensors is not"):
        read_safetensors(tmp_path / "x.safetensors")


def test_the_identity_of_a_recipe_is_its_name_version_and_parameters() -> None:
    first = recipe_digest("resnet50", "1", {"seed": 50})
    assert first == recipe_digest("resnet50", "1", {"seed": 50})
    others = [("resnet50", "2", {"seed": 50}), ("resnet50", "1", {"seed": 51}), ("minilm", "1", {"seed": 50})]
    assert first not in [recipe_digest(*other) for other in others]


def test_an_unknown_recipe_is_refused() -> None:
    with pytest.raises(ModelError, match=r"no recipe 'os\.path'"):
        recipe("os.path")


def test_resnet50_has_the_size_and_the_strides_of_version_1_5() -> None:
    """25.5 million weights (torchvision's count less the normalisations' 53,120, which are folded into 26,560 biases)."""
    model = onnx.load_model_from_string(resnet50.build({}, {"seed": 1}))
    count = sum(int(np.prod(weight.dims)) for weight in model.graph.initializer)
    assert count == 25_557_032 - 53_120 + 26_560
    nodes = {node.name: node for node in model.graph.node}
    assert sum(node.op_type == "Conv" for node in nodes.values()) == 53
    strides = {name: next(a.ints[0] for a in node.attribute if a.name == "strides") for name, node in nodes.items()
               if node.op_type == "Conv"}  # fmt: skip
    assert strides["stage2.0.conv1"] == 1 and strides["stage2.0.conv2"] == 2
