"""The optional torch environment, from our side of the wall: a stand-in interpreter answers in torch's place."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from harness.errors import ModelError, UsageError
from harness.models.torch_route import convert_with_torch

Interpreter = Callable[[str], Path]


@pytest.fixture
def onnx_bytes(net: Callable[..., bytes]) -> bytes:
    """A network that the writers refuse (CumSum), with 64-bit ids beside a float input."""
    nodes = [
        helper.make_node("CumSum", ["x", "a"], ["c"]),
        helper.make_node("Gather", ["c", "ids"], ["y"]),
    ]
    inputs = {"x": np.zeros((4, 3), dtype=np.float32), "ids": np.zeros((2,), dtype=np.int64)}
    return net(nodes, inputs, {"a": np.array(0)})


@pytest.fixture
def interpreter(tmp_path: Path) -> Interpreter:
    """Makes an executable that gets the same arguments as a Python interpreter would; the body sees `request`."""

    def make(body: str) -> Path:
        path = tmp_path / "python"
        path.write_text(
            f"#!{sys.executable}\nimport json, os, pathlib, sys, time\n"
            "assert sys.argv[1] == '-I' and sys.argv[2].endswith('convert_onnx.py') and os.path.isfile(sys.argv[2])\n"
            "request = json.load(open(sys.argv[3]))\n"
            "def answer(value): pathlib.Path(request['result']).write_text(json.dumps(value))\n"
            f"{body}\n"
        )
        path.chmod(0o755)
        return path

    return make


GOOD = """
assert pathlib.Path(request['model']).read_bytes()[:1]
pathlib.Path(request['output']).write_bytes(json.dumps(request).encode())
print('noise of a runtime')
answer({'inputs': ['args_0', 'args_1'], 'outputs': ['output_0'], 'tools': {}})
"""


def test_the_request_says_everything_and_ports_keep_the_names_of_onnx(
    interpreter: Interpreter, onnx_bytes: bytes
) -> None:
    converted = convert_with_torch(interpreter(GOOD), onnx_bytes, "tflite", precision="fp32")
    request = json.loads(converted.data)
    assert request["inputs"] == [
        {"name": "x", "dtype": "float32", "shape": [4, 3]},
        {"name": "ids", "dtype": "int64", "shape": [2]},
    ]
    assert (request["format"], request["precision"], request["outputs"]) == ("tflite", "fp32", ["y"])
    assert [(p.role, p.tensor, p.dtype, p.shape) for p in (*converted.inputs, *converted.outputs)] == [
        ("x", "args_0", "float32", (4, 3)),
        ("ids", "args_1", "int64", (2,)),
        ("y", "output_0", "float32", (2, 3)),
    ]


def test_a_core_ml_folder_comes_back_as_a_zip_and_takes_32_bit_ids(interpreter: Interpreter, onnx_bytes: bytes) -> None:
    body = (
        "folder = pathlib.Path(request['output']); folder.mkdir(); (folder / 'Manifest.json').write_text('{}')\n"
        "answer({'inputs': ['input_0', 'input_1'], 'outputs': ['output_0']})"
    )
    converted = convert_with_torch(interpreter(body), onnx_bytes, "coreml", precision="fp16")
    assert converted.data[:2] == b"PK" and b"Manifest.json" in converted.data
    assert converted.inputs[1].dtype == "int32"


def test_without_an_environment_the_error_says_how_to_make_one(onnx_bytes: bytes) -> None:
    with pytest.raises(
        ModelError, match=r"No environment.*torch below 2\.15.*litert-torch==0\.10.*\[runtimes\] convert"
    ):
        convert_with_torch(None, onnx_bytes, "tflite")


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path, onnx_bytes: bytes) -> None:
    with pytest.raises(ModelError, match=r"nowhere, does not exist.*config\.toml"):
        convert_with_torch(tmp_path / "nowhere", onnx_bytes, "tflite")
    (tmp_path / "notes.txt").write_text("not a program")
    with pytest.raises(ModelError, match=r"notes\.txt, cannot be started: Permission denied"):
        convert_with_torch(tmp_path / "notes.txt", onnx_bytes, "tflite")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("answer({'error': 'KeyError: no such operator'})", "failed: KeyError: no such operator"),
        (
            "answer({'error': 'its environment lacks the package onnx2torch'})",
            "lacks the package onnx2torch.*pip install",
        ),
        ("print('Illegal instruction'); os._exit(132)", "without an answer; its last words were: Illegal instruction"),
        ("pathlib.Path(request['result']).write_text('{')", "cannot be read"),
        ("pathlib.Path(request['result']).write_text('[1]')", "cannot be read: it is no table"),
        ("answer({'inputs': ['a'], 'outputs': ['b']})", "inputs that are not 2 names"),
        ("answer({'inputs': ['a', 'b'], 'outputs': ['c']})", "said that it is done, but left no file"),
    ],
)
def test_every_way_to_fail_is_one_sentence(
    interpreter: Interpreter, onnx_bytes: bytes, body: str, message: str
) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        convert_with_torch(interpreter(body), onnx_bytes, "tflite")
    assert "\n" not in str(caught.value)


def test_a_conversion_that_hangs_is_stopped(interpreter: Interpreter, onnx_bytes: bytes) -> None:
    with pytest.raises(ModelError, match="did not end within 1 s"):
        convert_with_torch(interpreter("time.sleep(60)"), onnx_bytes, "tflite", timeout_s=1)


def test_another_format_is_refused(onnx_bytes: bytes) -> None:
    with pytest.raises(UsageError, match="not to 'gguf'"):
        convert_with_torch(None, onnx_bytes, "gguf")


def test_the_script_itself_answers_what_its_environment_lacks(onnx_bytes: bytes) -> None:
    """Our own environment has no torch on purpose: the real script says so in its answer."""
    with pytest.raises(ModelError, match=r"its environment lacks the package torch.*own index of CPU builds"):
        convert_with_torch(Path(sys.executable), onnx_bytes, "tflite")
