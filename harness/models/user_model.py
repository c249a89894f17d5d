"""A user's own model file: used as it is in its own format, and written as TFLite or CoreML when it is ONNX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from harness.artifacts import ModelFile, Port
from harness.canonical import digest_of, sha256_hex
from harness.errors import ModelError
from harness.models.archives import pack_folder
from harness.models.build import Built, built_from, convert_digest, fixed_shapes, write_from_onnx
from harness.models.cache import sha256_of
from harness.models.inspection import read_ports
from harness.models.manifest import Lineage
from harness.models.onnx_header import external_files
from harness.records import Artifact

SUFFIXES = {".onnx": "onnx", ".tflite": "tflite", ".mlpackage": "coreml", ".mlmodel": "coreml", ".xml": "openvino"}
CONVERTED = {"tflite": "tflite_writer", "coreml": "coreml_writer"}


@dataclass(frozen=True)
class UserModel:
    """A model file of the user's. Without ports they are read from the file, each role being the tensor's own name."""

    path: Path
    format: str
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    precision: str = "fp32"
    licence: str | None = None

    @property
    def name(self) -> str:
        """The file's name, for people."""
        return self.path.name


def own_file(model: UserModel) -> ModelFile:
    """Return the user's file as it is, with its digest and ports. Raises ModelError when it cannot be read."""
    inputs, outputs = model.inputs, model.outputs
    if not inputs or not outputs:
        found = read_ports(model.path, model.format)
        inputs, outputs = inputs or found[0], outputs or found[1]
    try:
        sha256, size = _identity(model.path)
    except OSError as error:
        raise ModelError(f"{error.filename or model.path} cannot be read: {error.strerror}.") from error
    record = Artifact(
        format=model.format,
        precision=model.precision,
        sha256=sha256,
        bytes=size,
        name=model.name,
        source=f"file:{model.name}",
        source_sha256=sha256,
        licence=model.licence,
    )
    leading = {port.shape[0] for port in inputs if port.shape}
    batch = leading.pop() if len(leading) == 1 else 0
    return ModelFile(record, model.path, inputs, outputs, batch or None)


def conversions(model: UserModel) -> tuple[tuple[str, str], ...]:
    """Return the formats and precisions that a user's model can be asked for besides its own."""
    return (
        (("tflite", "fp32"), ("coreml", "fp32"), ("coreml", "fp16"))
        if (model.format, model.precision) == ("onnx", "fp32")
        else ()
    )


def conversion_of(model: UserModel, own: ModelFile, model_format: str, precision: str, batch: int) -> Lineage:
    """Return the lineage of the user's model in another format. Raises ModelError where there is no such way."""
    if model.format != "onnx" or model_format not in CONVERTED:
        raise ModelError(
            f"{model.name} is {model.format} {model.precision}, and cannot be made {model_format} from that.",
            f"Only ONNX files are converted, to {' and '.join(CONVERTED)}.",
        )
    if (model_format, precision) not in conversions(model):
        raise ModelError(
            f"{model.name} ({model.precision}) cannot be written as {model_format} {precision}.",
            "TFLite files are written in fp32, CoreML files in fp32 and fp16, both from an fp32 ONNX file.",
        )
    for port in own.inputs:
        if 0 in port.shape[1:]:
            raise ModelError(
                f"{model.name} leaves sizes of its input {port.tensor!r} free, and {model_format} needs them fixed.",
                "Give the input's shape in the workload (0 stands for the batch only).",
            )
    recipe = CONVERTED[model_format]
    return Lineage(
        model=model.name,
        format=model_format,
        precision=precision,
        batch=batch,
        recipe=recipe,
        recipe_sha256=digest_of([convert_digest(recipe, precision), [list(port.shape) for port in own.inputs]]),
        source=f"file:{model.name}",
        source_sha256=own.artifact.sha256,
    )


class NotConvertedError(ModelError):
    """The built-in writers cannot write this model; an environment with torch may."""


def converter(own: ModelFile, model_format: str, precision: str, batch: int) -> Callable[[], Built]:
    """Return what writes the user's ONNX file in another format. It raises NotConvertedError that names the operator."""

    def convert() -> Built:
        try:
            return write_from_onnx(model_format, precision, own, batch)
        except ModelError as error:
            raise NotConvertedError(
                f"{own.artifact.name} cannot be written as {model_format}: {error.what}", error.fix
            ) from error

    return convert


def with_torch(lineage: Lineage) -> Lineage:
    """Return the lineage of the same file when it is converted in the environment with torch."""
    return replace(lineage, recipe="torch_route", recipe_sha256=digest_of(["torch_route", lineage.recipe_sha256]))


def torch_converter(
    own: ModelFile, model_format: str, precision: str, batch: int, interpreter: Path
) -> Callable[[], Built]:
    """Return what converts the user's ONNX file in an environment with torch. It raises ModelError."""

    def convert() -> Built:
        from harness.models.torch_route import convert_with_torch

        shapes = fixed_shapes(own, batch)
        converted = convert_with_torch(interpreter, own.path.read_bytes(), model_format, batch, shapes, precision)
        return built_from(converted, model_format, own)

    return convert


def _identity(path: Path) -> tuple[str, int]:
    """Return digest and size: of the file; of a folder as it is packed; of an OpenVINO IR, or of an ONNX file that keeps its
    weights in other files, with those."""
    if path.is_dir():
        packed = pack_folder(path)
        return sha256_hex(packed), len(packed)
    weights: list[Path] = []
    if path.suffix.lower() == ".onnx":
        weights = [path.parent / name for name in external_files(path)]
    elif path.suffix.lower() == ".xml" and path.with_suffix(".bin").exists():
        weights = [path.with_suffix(".bin")]
    if not weights:
        return sha256_of(path), path.stat().st_size
    together = [path, *weights]
    return digest_of([sha256_of(file) for file in together]), sum(file.stat().st_size for file in together)
