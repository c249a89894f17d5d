"""Pure parts of making files of lower precision: which layers are the ends, how ranges are rounded, what is in a lineage."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.datasets.catalogue import CALIBRATION, DATASETS
from harness.datasets.definition import Dataset, contents_of, leading
from harness.datasets.rated_snippets import parse_snippets
from harness.errors import ModelError, SuiteError
from harness.models.build import lineage_of, source_of
from harness.models.catalog import catalogue, find_model, read_entry
from harness.models.quantisation import RECIPES, Settings, method
from harness.models.quantisation.onnx_graph_preparation import end_layers
from harness.models.quantisation.onnx_static import rounded_outward
from harness.tasks.base import Sample


def graph(nodes: list[onnx.NodeProto], outputs: list[str], weights: list[str]) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    made = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, [1, 4])],
        [value(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.eye(4, dtype=np.float32), name) for name in weights],
    )
    return helper.make_model(made)


def product(name: str, given: str, result: str) -> onnx.NodeProto:
    return helper.make_node("MatMul", [given, f"w_{name}"], [result], name=name)


def test_the_ends_of_a_chain_are_its_first_and_last_layer() -> None:
    nodes = [product("a", "x", "1"), product("b", "1", "2"), product("c", "2", "y")]
    assert end_layers(graph(nodes, ["y"], ["w_a", "w_b", "w_c"])) == ("a", "c")


def test_a_residual_path_makes_no_inner_layer_an_end() -> None:
    nodes = [
        product("in", "x", "1"),
        product("block", "1", "2"),
        helper.make_node("Add", ["1", "2"], ["3"], name="add"),
        product("out", "3", "y"),
    ]
    assert end_layers(graph(nodes, ["y"], ["w_in", "w_block", "w_out"])) == ("in", "out")


def test_each_head_has_an_end_and_products_of_activations_are_no_layers() -> None:
    nodes = [
        product("in", "x", "1"),
        helper.make_node("MatMul", ["1", "1"], ["2"], name="attention"),
        product("box", "2", "y"),
        product("score", "2", "z"),
    ]
    assert end_layers(graph(nodes, ["y", "z"], ["w_in", "w_box", "w_score"])) == ("in", "box", "score")


def test_layers_that_stay_in_float_anyway_are_passed_over() -> None:
    nodes = [product("spectrum", "x", "1"), product("a", "1", "2"), product("b", "2", "3"), product("c", "3", "y")]
    model = graph(nodes, ["y"], ["w_spectrum", "w_a", "w_b", "w_c"])
    assert end_layers(model, without=["spectrum"]) == ("a", "c")


def test_ranges_are_rounded_outward_by_at_most_a_thousandth() -> None:
    values = np.array([0.0, 1.0, -1.0, 6.0, 0.1, -0.1, 123.456, 1e-30], np.float32)
    low, high = rounded_outward(values, down=True), rounded_outward(values, down=False)
    assert low.tolist()[:4] == high.tolist()[:4] == [0.0, 1.0, -1.0, 6.0]  # eleven binary digits hold them
    assert (low <= values).all() and (high >= values).all()
    assert np.abs(high - low).max() <= 123.456 / 1000
    # 0.1 is 1638.4 / 2^14, and 1638 and 1639 have eleven binary digits
    assert (low[4], high[4]) == (np.float32(1638 / 16384), np.float32(1639 / 16384))


def test_another_cpus_last_bits_make_no_other_range() -> None:
    value = np.float32(5.4321)
    beside = np.nextafter(value, np.float32(6))
    assert rounded_outward(np.array(value), down=False) == rounded_outward(np.array(beside), down=False)


def test_parameters_are_read_strictly() -> None:
    settings = Settings("int8", {"calibration": "magic", "block_size": True})
    with pytest.raises(ModelError, match="Allowed: calibration, percentile"):
        Settings("int8", {"calibratoin": "minmax"}).check_names("calibration", "percentile")
    with pytest.raises(ModelError, match="Allowed: minmax, entropy"):
        settings.text("calibration", "minmax", ("minmax", "entropy"))
    with pytest.raises(ModelError, match="at least 16"):
        settings.whole("block_size", 32, 16)


def test_the_lineage_tells_apart_whatever_decides_the_bytes() -> None:
    entry = find_model("efficientnet-lite0")
    int8, ends = entry.artifact("onnx", "int8"), entry.artifact("onnx", "int8-float-ends")
    assert entry.calibration is not None
    other_data = replace(entry, calibration=replace(entry.calibration, digest="0" * 16))
    fewer = replace(entry, calibration=replace(entry.calibration, samples=100))
    other_way = replace(int8, parameters={"calibration": "entropy"})
    found = [lineage_of(*pair, None) for pair in ((entry, int8), (entry, ends), (other_data, int8), (fewer, int8))]
    found.append(lineage_of(entry, other_way, None))
    assert len({lineage.recipe_sha256 for lineage in found}) == 5
    assert found[0].recipe == "efficientnet_lite0/1 + onnx_static_qdq/1"
    assert {lineage.source_sha256 for lineage in found} == {entry.source("weights").sha256}


def test_every_recipe_of_the_catalogue_can_be_followed_back_to_published_files() -> None:
    for entry in catalogue().values():
        for artifact in entry.artifacts:
            assert artifact.recipe not in RECIPES or artifact.precision in RECIPES[str(artifact.recipe)].precisions
            seen = [artifact]
            while (before := source_of(entry, seen[-1])) is not None:
                seen.append(before)
                assert len(seen) < 5


def test_every_recipe_has_its_method() -> None:
    for name, entry in RECIPES.items():
        found = method(name)
        assert found.version and found.tools and entry.precisions
        assert ("int8" in entry.precisions[0]) or not found.calibrated


def test_calibration_data_are_no_data_that_accuracy_can_be_measured_on() -> None:
    assert not set(CALIBRATION) & set(DATASETS)
    asked = [entry.calibration for entry in catalogue().values()]
    assert all(one is not None and one.dataset in CALIBRATION and one.samples >= 500 for one in asked)


def test_a_recipe_that_needs_calibration_is_refused_without_it(tmp_path: Path) -> None:
    path = Path(str(files("harness.models.catalog"))) / "efficientnet-lite0.toml"
    text = path.read_text(encoding="utf-8")
    start = text.index("[calibration]")
    written = tmp_path / "model.toml"
    written.write_text(text[:start] + text[text.index("[[artifact]]") :], encoding="utf-8")
    with pytest.raises(SuiteError, match=r"onnx_static_qdq needs a \[calibration\]"):
        read_entry(written)


def test_contents_name_each_file_and_each_text_once() -> None:
    samples = (Sample("a", ("/1",)), Sample("b", ("/1", "/2")), Sample("c", data={"text": "x"}))
    dataset = Dataset("d", "D", "0" * 64, samples, files={"/1": "f1", "/2": "f2"})
    assert len(contents_of(dataset)) == 3 and {"f1", "f2"} < set(contents_of(dataset))
    other_label = Dataset("e", "E", "1" * 64, (Sample("z", label=True, data={"text": "x"}),), files={})
    assert set(contents_of(other_label)) < set(contents_of(dataset))
    assert leading(dataset, 1).name == "d-1" and contents_of(leading(dataset, 1)) == ("f1",)


def test_snippets_are_read_strictly() -> None:
    assert parse_snippets("1_1\t-0.9\tno picture\r\n2\t1\ta\tb\n3\t1\t \n") == [("1_1", "no picture"), ("2", "a\tb")]
    with pytest.raises(ModelError, match="Line 2"):
        parse_snippets("1\t1\tgood\nbad\n")
