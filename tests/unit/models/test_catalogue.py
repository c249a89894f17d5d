"""The catalogue is read strictly, and says where each file comes from and under which licence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import SuiteError, UsageError
from harness.models.catalog import catalogue, find_model, read_entry
from harness.models.sources import parse_source

ENTRY = """
name = "net"
title = "A network"
licence = "MIT"
homepage = "https://example.org"

[[source]]
name = "weights"
source = "pypi:a-model==1.0!a_model/weights.bin"
sha256 = "{sha256}"
bytes = 12

[[input]]
role = "x"
dtype = "float32"
shape = [0, 3]

[[output]]
role = "y"
dtype = "float32"
shape = [0, 4]

[[artifact]]
format = "onnx"
precision = "fp32"
shipped = "weights"
tensors = {{ x = "in:0", y = "out:0" }}

[[artifact]]
format = "tflite"
precision = "fp32"
recipe = "tflite_writer"
""".format(sha256="ab" * 32)


@pytest.fixture
def entry(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "net.toml"
        path.write_text(text)
        return path

    return write


def test_an_entry_is_read(entry: Callable[[str], Path]) -> None:
    model = read_entry(entry(ENTRY))
    assert model.source("weights").bytes == 12
    assert model.artifact("onnx", "fp32").tensors == {"x": "in:0", "y": "out:0"}
    assert model.inputs[0].shape == (0, 3)


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ('title = "A network"', 'titel = "A network"', 3, "'titel' is not known"),
        ('licence = "MIT"', "", None, "'licence' is missing"),
        ('licence = "MIT"', "licence = 3", 4, "licence must be a text"),
        ("bytes = 12", 'bytes = "12"', 11, "bytes must be a whole number"),
        ("bytes = 12", "bytes = true", 11, "bytes must be a whole number"),
        ("bytes = 12", "bytes = -1", 11, "bytes must be positive"),
        ("abab", "XXXX", 10, "64 hexadecimal digits"),
        ("pypi:a-model==1.0", "ftp:a-model==1.0", 9, "is no source"),
        ("pypi:a-model==1.0", "pypi:a-model>=1.0", 9, "NAME==VERSION"),
        ("shape = [0, 3]", "shape = [0, -3]", 16, "shape must be a list of whole numbers"),
        ('dtype = "float32"', 'dtype = "float31"', 15, "'float31' is not a dtype"),
        ('format = "onnx"', 'format = "onyx"', 24, "'onyx' is not a format"),
        ('precision = "fp32"', 'precision = "fp31"', 25, "'fp31' is not a precision"),
        ('shipped = "weights"', 'shipped = "wights"', 26, "'wights' is not a shipped"),
        ('shipped = "weights"', "", 24, "it needs either shipped or recipe"),
        ('x = "in:0", ', "", 27, "tensors must name exactly the roles x, y"),
        ('recipe = "tflite_writer"', 'recipe = "coreml_writer"', 32, "'coreml_writer' is not a recipe"),
        ('format = "tflite"', 'format = "onnx"', None, "stands here twice|is not a recipe"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_key(
    entry: Callable[[str], Path], old: str, new: str, line: int | None, what: str
) -> None:
    assert old in ENTRY
    with pytest.raises(SuiteError, match=what) as error:
        read_entry(entry(ENTRY.replace(old, new, 1)))
    assert "net.toml" in str(error.value)
    if line is not None:
        assert f"line {line}:" in str(error.value)


def test_every_model_of_the_suite_is_there_with_its_licence() -> None:
    models = catalogue()
    assert set(models) == {
        "basic-pitch", "centerface", "efficientnet-lite0", "minilm-l6", "resnet50-seeded", "resnet50-zoo", "silero-vad",
    }  # fmt: skip
    for name, model in models.items():
        assert model.name == name
        assert model.licence in ("Apache-2.0", "MIT")
        assert model.artifact("onnx", "fp32")
        for source in model.sources:
            assert parse_source(source.source).scheme in ("pypi", "url")


def test_the_zoo_files_are_those_that_its_makers_publish() -> None:
    """Digests and sizes as the ONNX Model Zoo's own manifest gives them."""
    zoo = find_model("resnet50-zoo")
    assert zoo.source("fp32").sha256 == "3f03fdef724b22947eed826f1eef1dc5c34151bb4c37d634f1db89dfa2dd1526"
    assert zoo.source("int8").sha256 == "e6429d274805654c79ba68dc886c1efd4eff95393e747c35d3fdab579febd8a0"
    assert (zoo.source("fp32").bytes, zoo.source("int8").bytes) == (102576593, 25753167)


def test_an_unknown_model_gets_the_names_there_are() -> None:
    with pytest.raises(UsageError, match=r"no model 'resnet'.*resnet50-seeded"):
        find_model("resnet")
