"""The .mlpackage around a program, with everything random or dated taken out.

coremltools puts a conversion date into the specification, gives the manifest's items random identifiers, and serialises
protobuf maps in no fixed order. Here the date is left out, identifiers are derived from the content (RFC 9562, version
5), and the specification is serialised deterministically.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import uuid
from pathlib import Path
from typing import Any

from harness.artifacts import Port
from harness.errors import ModelError
from harness.models.archives import pack_folder
from harness.models.coreml_writer.toolbox import coremltools, quiet

_DATA = "Data/com.apple.CoreML"
_DATED = "com.github.apple.coremltools.conversion_date"


def pack_program(program: Any, precision: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> bytes:
    """The zip of the package folder (its content at the top) for a MIL program; its ends are checked against the ports."""
    tools = coremltools()
    with quiet():
        try:
            model = tools.convert(
                program,
                source="milinternal",
                convert_to="mlprogram",
                minimum_deployment_target=tools.target.iOS16,
                compute_precision=tools.precision.FLOAT16 if precision == "fp16" else tools.precision.FLOAT32,
                skip_model_load=True,  # loading means compiling, which only macOS can
            )
        except Exception as error:  # coremltools raises nearly anything
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ModelError(
                f"coremltools {tools.__version__} could not finish the package: {reason}.",
                "Try another version of coremltools, or use the ONNX file with another backend.",
            ) from error
    return pack_model(model, inputs, outputs)


def pack_model(model: Any, inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> bytes:
    """The zip of the package folder of coremltools' MLModel; its ends are checked against the ports."""
    with tempfile.TemporaryDirectory() as temporary:
        saved = Path(temporary) / "saved.mlpackage"
        with quiet():
            model.save(str(saved))
        clean = Path(temporary) / "clean.mlpackage"
        (clean / _DATA).mkdir(parents=True)
        _write_specification(saved / _DATA / "model.mlmodel", clean / _DATA / "model.mlmodel", inputs, outputs)
        weights = saved / _DATA / "weights" / "weight.bin"
        if weights.exists():
            (clean / _DATA / "weights").mkdir()
            weights.rename(clean / _DATA / "weights" / "weight.bin")
        _write_manifest(clean)
        return pack_folder(clean)


def _write_specification(source: Path, target: Path, inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> None:
    from coremltools.proto import Model_pb2

    spec = Model_pb2.Model()
    spec.ParseFromString(source.read_bytes())
    spec.description.metadata.userDefined.pop(_DATED, None)
    spec.description.metadata.userDefined["com.github.apple.coremltools.source"] = "weighbridge"
    for what, features, ports in (
        ("inputs", spec.description.input, inputs),
        ("outputs", spec.description.output, outputs),
    ):
        found, wanted = {f.name for f in features}, {port.tensor for port in ports}
        if found != wanted:
            raise ModelError(
                f"The Core ML package has the {what} {sorted(found)}, where {sorted(wanted)} were written."
            )
    target.write_bytes(spec.SerializeToString(deterministic=True))


def _write_manifest(package: Path) -> None:
    """Apple's list of the package's items, with identifiers that follow from their content."""
    items = [("model.mlmodel", "CoreML Model Specification")]
    if (package / _DATA / "weights").is_dir():
        items.append(("weights", "CoreML Model Weights"))
    entries, root = {}, ""
    for name, description in items:
        path = package / _DATA / name
        content = path if path.is_file() else path / "weight.bin"
        digest = hashlib.sha256(content.read_bytes()).hexdigest()
        identifier = str(uuid.uuid5(uuid.NAMESPACE_OID, f"weighbridge:{name}:{digest}"))
        root = root or identifier
        entries[identifier] = {
            "author": "com.apple.CoreML",
            "description": description,
            "name": name,
            "path": f"com.apple.CoreML/{name}",
        }
    manifest = {"fileFormatVersion": "1.0.0", "itemInfoEntries": entries, "rootModelIdentifier": root}
    (package / "Manifest.json").write_text(json.dumps(manifest, indent=4, sort_keys=True) + "\n", encoding="utf-8")
