"""A user's own model file: used as it is, or converted, or refused with the reason."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from harness.artifacts import Port
from harness.canonical import sha256_hex
from harness.configuration import Configuration
from harness.errors import ModelError
from harness.models.inspection import read_ports
from harness.models.manifest import CalibrationRecord, Lineage, Manifest, write_manifest
from harness.models.own_quantisation import quantise_own
from harness.models.store import ModelStore
from harness.models.user_model import SUFFIXES, UserModel


def network(path: Path, batch: int | str = "n", operator: str = "Relu", domain: str = "", width: int | str = 3) -> Path:
    weight = numpy_helper.from_array(np.eye(3, dtype=np.float32), "weight")
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["h"]),
        helper.make_node(operator, ["h"], ["y"], domain=domain),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 3])],
        [weight],
    )
    opsets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    return path


def onnx_of_half_precision() -> bytes:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [2, 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def own(path: Path) -> UserModel:
    return UserModel(path, SUFFIXES[path.suffix])


def test_the_file_is_used_where_it_lies(tmp_path: Path) -> None:
    path = network(tmp_path / "own.onnx")
    file = ModelStore(tmp_path / "cache").ensure(UserModel(path, "onnx"), "onnx")
    assert file.path == path
    assert file.artifact.sha256 == hashlib.sha256(path.read_bytes()).hexdigest() == file.artifact.source_sha256
    assert file.inputs == (Port("x", "x", "float32", (0, 3)),) and file.outputs == (Port("y", "y", "float32", (0, 3)),)
    assert file.batch is None
    assert not (tmp_path / "cache").exists()


def test_a_fixed_batch_is_said(tmp_path: Path) -> None:
    assert ModelStore(tmp_path).ensure(UserModel(network(tmp_path / "own.onnx", batch=4), "onnx"), "onnx").batch == 4


def test_given_ports_win_over_those_of_the_file(tmp_path: Path) -> None:
    port = Port("image", "x", "float32", (0, 3))
    model = UserModel(network(tmp_path / "own.onnx"), "onnx", inputs=(port,))
    assert ModelStore(tmp_path).ensure(model, "onnx").inputs == (port,)


def test_onnx_becomes_tflite_with_its_lineage(tmp_path: Path) -> None:
    path = network(tmp_path / "own.onnx")
    store = ModelStore(tmp_path / "cache")
    file = store.ensure(own(path), "tflite", batch=2)
    assert (file.artifact.format, file.batch, file.inputs[0].shape) == ("tflite", 2, (2, 3))
    assert file.artifact.source_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert file.artifact.recipe == "tflite_writer" and "ai-edge-litert" in file.artifact.tools
    assert read_ports(file.path, "tflite")[0][0].shape == (2, 3)
    assert store.ensure(own(path), "tflite", batch=2) == file
    again = ModelStore(tmp_path / "other").ensure(own(path), "tflite", batch=2)
    assert again.artifact == file.artifact


def test_another_file_of_the_same_name_is_another_model(tmp_path: Path) -> None:
    store = ModelStore(tmp_path / "cache")
    first = store.ensure(own(network(tmp_path / "own.onnx")), "tflite")
    second = store.ensure(own(network(tmp_path / "own.onnx", operator="Sigmoid")), "tflite")
    assert first.artifact.sha256 != second.artifact.sha256


def test_an_operator_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path) -> None:
    path = network(tmp_path / "own.onnx", operator="Frobnicate", domain="com.example")
    with pytest.raises(ModelError) as error:
        ModelStore(tmp_path / "cache").ensure(own(path), "tflite")
    assert "own.onnx cannot be written as tflite" in str(error.value)
    assert "Frobnicate" in str(error.value) and str(error.value).count("[runtimes] convert") == 1


def test_torch_is_named_as_a_way_out_where_the_error_itself_names_another(tmp_path: Path) -> None:
    path = tmp_path / "own.onnx"
    half = onnx_of_half_precision()
    path.write_bytes(half)
    with pytest.raises(ModelError) as error:
        ModelStore(tmp_path / "cache").ensure(own(path), "tflite")
    assert "Give the float32 file" in str(error.value) and str(error.value).count("[runtimes] convert") == 1


def test_free_sizes_besides_the_batch_must_be_given(tmp_path: Path) -> None:
    path = network(tmp_path / "own.onnx", width="w")
    with pytest.raises(ModelError, match="leaves sizes of its input 'x' free"):
        ModelStore(tmp_path / "cache").ensure(own(path), "tflite")


def test_what_it_can_be_asked_for_is_listed(tmp_path: Path) -> None:
    store = ModelStore(tmp_path / "cache")
    listed = [(s.format, s.precision, s.origin) for s in store.formats(own(network(tmp_path / "own.onnx")))]
    assert listed == [
        ("onnx", "fp32", "file"),
        ("tflite", "fp32", "built"),
        ("coreml", "fp32", "built"),
        ("coreml", "fp16", "built"),
    ]
    tflite = store.ensure(own(tmp_path / "own.onnx"), "tflite").path
    assert [s.format for s in store.formats(own(tflite))] == ["tflite"]


def test_only_onnx_is_converted(tmp_path: Path) -> None:
    store = ModelStore(tmp_path / "cache")
    tflite = store.ensure(own(network(tmp_path / "own.onnx")), "tflite").path
    with pytest.raises(ModelError, match="Only ONNX files are converted"):
        store.ensure(own(tflite), "coreml")
    with pytest.raises(ModelError, match="cannot be made onnx"):
        store.ensure(own(tflite), "onnx")


def test_a_precision_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = network(tmp_path / "own.onnx")
    with pytest.raises(ModelError, match="cannot be"):
        ModelStore(tmp_path / "cache").ensure(UserModel(path, "onnx"), "onnx", "int8")
    with pytest.raises(ModelError, match="cannot be written as tflite int8"):
        ModelStore(tmp_path / "cache").ensure(own(path), "tflite", "int8")


@pytest.mark.parametrize("model_format", ["onnx", "tflite", "openvino"])
@pytest.mark.parametrize("data", [b"", b"\x00" * 64, b"<net><layers/></net>", b"<!DOCTYPE x [<!ENTITY a 'b'>]><net/>"])
def test_a_file_of_another_kind_is_said_in_one_sentence(tmp_path: Path, model_format: str, data: bytes) -> None:
    path = tmp_path / "own.model"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"own\.model"):
        read_ports(path, model_format)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_an_openvino_ir_with_entities_is_refused_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    from backends.openvino.adapter import PROBE

    path = tmp_path / "own.xml"
    path.write_text(PROBE, encoding="utf-8")
    assert read_ports(path, "openvino")[0][0].tensor == "x"
    declared = PROBE.replace('<?xml version="1.0"?>', '<?xml version="1.0"?><!DOCTYPE net [<!ENTITY a "x">]>')
    path.write_text(declared.replace('names="x"', 'names="&a;"'), encoding=encoding)
    with pytest.raises(ModelError, match=r"own\.xml (is refused|is not a openvino file)"):
        read_ports(path, "openvino")


def test_an_openvino_ir_is_read_by_its_tensors_own_names(tmp_path: Path) -> None:
    import openvino

    model = openvino.Core().read_model(network(tmp_path / "own.onnx"))
    openvino.save_model(model, tmp_path / "own.xml", compress_to_fp16=False)
    file = ModelStore(tmp_path / "cache").ensure(own(tmp_path / "own.xml"), "openvino")
    assert [(p.tensor, p.dtype, p.shape) for p in (*file.inputs, *file.outputs)] == [
        ("x", "float32", (0, 3)),
        ("y", "float32", (0, 3)),
    ]
    sha256 = file.artifact.sha256
    weights = tmp_path / "own.bin"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert ModelStore(tmp_path / "cache").ensure(own(tmp_path / "own.xml"), "openvino").artifact.sha256 != sha256


def test_a_configured_torch_environment_is_tried_where_the_writers_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment named here does not exist, and the error is then about it and not about the operator."""
    path = network(tmp_path / "own.onnx", operator="Frobnicate", domain="com.example")
    configured = Configuration(runtimes={"convert": tmp_path / "torch" / "bin" / "python"})
    monkeypatch.setattr("harness.configuration.load_configuration", lambda: configured)
    with pytest.raises(ModelError, match=r"torch/bin/python, does not exist"):
        ModelStore(tmp_path / "cache").ensure(own(path), "tflite")


def test_a_file_that_was_built_here_brings_its_calibration_under_any_name(tmp_path: Path) -> None:
    """`weigh models build FILE` tells where the built file lies; a copy of it must not be judged by what set its scales."""
    path = network(tmp_path / "copy-of-mine-int8.onnx")
    store = ModelStore(tmp_path / "cache")
    model = UserModel(path, "onnx", precision="int8")
    assert store.ensure(model, "onnx", "int8").calibrated_on == ()
    calibration = CalibrationRecord("shelf@0123456789abcdef", 2, ("a" * 64, "b" * 64))
    lineage = Lineage("mine.onnx", "onnx", "int8", None, "onnx_static_qdq/1", "c" * 64, "file:mine.onnx", "d" * 64)
    digest = sha256_hex(path.read_bytes())
    write_manifest(store.cache, Manifest(lineage, {}, "e" * 64, 1, ".onnx", (), ()))
    assert store.ensure(model, "onnx", "int8").calibrated_on == ()
    write_manifest(store.cache, Manifest(lineage, {"onnx": "1"}, digest, 1, ".onnx", (), (), calibration))
    found = store.ensure(model, "onnx", "int8")
    assert found.calibrated_on == calibration.contents
    assert found.artifact.calibration == calibration.identity
    assert found.path == path


def with_weights_outside(path: Path, location: str) -> Path:
    model = onnx.load(str(network(path)))
    weight = model.graph.initializer[0]
    external_data_helper.set_external_data(weight, location, offset=0, length=36)
    weight.ClearField("raw_data")
    path.write_bytes(model.SerializeToString())
    return path


def test_weights_in_another_file_are_part_of_what_a_model_is(tmp_path: Path) -> None:
    path = with_weights_outside(tmp_path / "own.onnx", "weights.bin")
    store, weights = ModelStore(tmp_path / "cache"), tmp_path / "weights.bin"
    weights.write_bytes(np.eye(3, dtype=np.float32).tobytes())
    first = store.ensure(own(path), "onnx").artifact
    weights.write_bytes(np.ones((3, 3), dtype=np.float32).tobytes())
    second = store.ensure(own(path), "onnx").artifact
    assert first.sha256 != second.sha256
    assert first.bytes == second.bytes == path.stat().st_size + 36
    weights.unlink()
    with pytest.raises(ModelError, match=r"weights\.bin cannot be read: No such file"):
        store.ensure(own(path), "onnx")


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "a/../../b", "..\\b", ""])
def test_weights_outside_a_models_folder_are_refused(location: str, tmp_path: Path) -> None:
    path = with_weights_outside(tmp_path / "own.onnx", location)
    with pytest.raises(ModelError, match="which lies outside its folder"):
        ModelStore(tmp_path / "cache").ensure(own(path), "onnx")


@pytest.mark.parametrize("precision", ["fp16", "int4"])
def test_a_model_in_two_files_or_none_at_all_is_not_quantised(precision: str, tmp_path: Path) -> None:
    """What is built is known by the digest of what it was built from; a second file would be outside that."""
    path = with_weights_outside(tmp_path / "own.onnx", "weights.bin")
    (tmp_path / "weights.bin").write_bytes(bytes(36))
    store = ModelStore(tmp_path / "cache")
    with pytest.raises(ModelError, match="keeps its weight 'weight' in another file"):
        quantise_own(store, own(path), precision, None, None)
    given = UserModel(
        tmp_path / "bad.onnx", "onnx", (Port("x", "x", "float32", (0, 3)),), (Port("y", "y", "float32", (0, 3)),)
    )
    given.path.write_bytes(b"\x08\x07nonsense")
    with pytest.raises(ModelError, match="not an ONNX"):
        quantise_own(store, given, precision, None, None)
