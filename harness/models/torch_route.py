"""Converts a user's ONNX model in an environment with torch, where the built-in writers have no operator for it.

torch stays out of the product's environment: its ordinary Linux build brings several gigabytes of CUDA, and litert-torch
forces other packages back. The environment's interpreter is named as `convert` under [runtimes] of the configuration
file; a small script runs there, gets its request in a file and answers in a file.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from harness.artifacts import Port
from harness.errors import ModelError, UsageError
from harness.models.converted import Converted

TIMEOUT_S = 1800.0  # large nets take minutes; half an hour without an answer is a hang
MAX_ANSWER_BYTES = 1 << 20
_LAST_WORDS = 400  # characters of what the script wrote, for the error

HOW_TO_MAKE_IT = (
    "Make an environment with Python 3.11 of its own (`python3.11 -m venv torch-env`), install the CPU build of torch below "
    "2.15 into it from PyTorch's own index of CPU builds (an ordinary `pip install torch` takes the CUDA build on Linux), "
    "then `torch-env/bin/pip install 'litert-torch==0.10.*' onnx onnx2torch coremltools`, and name its interpreter in "
    'config.toml: [runtimes] convert = "/path/to/torch-env/bin/python".'
)


def convert_with_torch(
    interpreter: Path | None,
    onnx_bytes: bytes,
    model_format: str,
    batch: int = 1,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    precision: str = "fp32",
    timeout_s: float = TIMEOUT_S,
) -> Converted:
    """The network in another format, with ports in ONNX's names and layout (torch keeps NCHW in TFLite files, too).

    Unlike the writers' bytes, these need not be equal from one conversion to the next. ModelError says how to make the
    environment where none is configured, and repeats the converter's reason where it fails.
    """
    from harness.models.onnx_graph.read import read_ends

    if model_format not in ("tflite", "coreml"):
        raise UsageError(f"Models are converted to tflite or coreml, not to '{model_format}'.")
    if interpreter is None:
        raise ModelError("No environment for conversions with torch is configured.", HOW_TO_MAKE_IT)
    inputs, outputs = read_ends(onnx_bytes, batch, input_shapes or {})
    with tempfile.TemporaryDirectory(prefix="weighbridge-convert-") as temporary:
        folder = Path(temporary)
        model, result = folder / "model.onnx", folder / "result.json"
        output = folder / ("converted.tflite" if model_format == "tflite" else "converted.mlpackage")
        model.write_bytes(onnx_bytes)
        request = {
            "format": model_format,
            "precision": precision,
            "model": str(model),
            "output": str(output),
            "result": str(result),
            "inputs": [{"name": p.role, "dtype": p.dtype, "shape": list(p.shape)} for p in inputs],
            "outputs": [port.role for port in outputs],
        }
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        words = _run(interpreter, folder / "request.json", timeout_s)
        answer = _answer(result, interpreter, words)
        found = _names(answer, "inputs", len(inputs)), _names(answer, "outputs", len(outputs))
        data = _read_output(output, interpreter)
    return Converted(
        data,
        tuple(_renamed(port, name, model_format) for port, name in zip(inputs, found[0], strict=True)),
        tuple(_renamed(port, name, model_format) for port, name in zip(outputs, found[1], strict=True)),
    )


def _run(interpreter: Path, request: Path, timeout_s: float) -> str:
    """Run the script; gives the end of what it wrote. Its status says nothing that the answer file does not say better."""
    with as_file(files("harness.models.torch_environment") / "convert_onnx.py") as script:
        try:
            done = subprocess.run(
                [str(interpreter), "-I", str(script), str(request)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
                cwd=request.parent,
            )
        except FileNotFoundError as error:
            raise ModelError(
                f"The interpreter for conversions, {interpreter}, does not exist.",
                "Correct `convert` under [runtimes] in config.toml.",
            ) from error
        except OSError as error:
            raise ModelError(
                f"The interpreter for conversions, {interpreter}, cannot be started: {error.strerror}.",
                "Correct `convert` under [runtimes] in config.toml.",
            ) from error
        except subprocess.TimeoutExpired as error:
            raise ModelError(
                f"The conversion with torch did not end within {timeout_s:.0f} s and was stopped.",
                "Convert the model by hand, and give the converted file.",
            ) from error
    return done.stdout.decode("utf-8", errors="replace").strip()[-_LAST_WORDS:]


def _answer(result: Path, interpreter: Path, words: str) -> dict[str, Any]:
    """The script's answer; ModelError for a refusal, and for none or a strange one."""
    if not result.is_file():
        last = words.splitlines()[-1] if words else "nothing"
        raise ModelError(
            f"The conversion with {interpreter} ended without an answer; its last words were: {last}", HOW_TO_MAKE_IT
        )
    try:
        if result.stat().st_size > MAX_ANSWER_BYTES:
            raise ValueError("it is too long")
        answer = json.loads(result.read_text(encoding="utf-8"))
        if not isinstance(answer, dict):
            raise ValueError("it is no table")
    except ValueError as error:
        raise ModelError(f"The answer of the conversion with {interpreter} cannot be read: {error}.") from error
    if "error" in answer:
        lacks = "lacks the package" in str(answer["error"])
        raise ModelError(
            f"The conversion with torch failed: {str(answer['error'])[:_LAST_WORDS]}.",
            HOW_TO_MAKE_IT if lacks else "Convert the model by hand, and give the converted file.",
        )
    return answer


def _names(answer: Mapping[str, Any], key: str, count: int) -> list[str]:
    names = answer.get(key)
    if not isinstance(names, list) or len(names) != count or not all(isinstance(name, str) for name in names):
        raise ModelError(f"The conversion with torch answered with {key} that are not {count} names: {names!r}.")
    return names


def _read_output(output: Path, interpreter: Path) -> bytes:
    """The converted file, or the zip of the converted folder."""
    from harness.models.archives import pack_folder

    if output.is_dir():
        return pack_folder(output)
    if output.is_file():
        return output.read_bytes()
    raise ModelError(f"The conversion with {interpreter} said that it is done, but left no file.")


def _renamed(port: Port, tensor: str, model_format: str) -> Port:
    dtype = "int32" if port.dtype == "int64" and model_format == "coreml" else port.dtype
    return Port(port.role, tensor, dtype, port.shape)
