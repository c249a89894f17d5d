"""int8 files of a user's own ONNX model, calibrated on a folder of the user's own pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.artifacts import ModelFile
from harness.canonical import digest_of
from harness.datasets.definition import Dataset, samples_digest
from harness.datasets.labelled_folder import ENDINGS, MAX_FILES, remembered_hashes
from harness.errors import ModelError, UsageError
from harness.models.catalog import PRECISIONS, ArtifactEntry
from harness.models.manifest import Lineage
from harness.models.quantisation import Settings, method, method_digest, recipes_for
from harness.models.user_model import UserModel, own_file
from harness.tasks.base import Sample

if TYPE_CHECKING:
    from harness.models.store import ModelStore
    from harness.workloads.definition import Workload

PICTURE_TASKS = ("image_classification", "face_detection")
WANTED_SAMPLES = 500  # with fewer, rare large activations are missed and cut off
SAMPLES = 512


def quantise_own(
    store: ModelStore, model: UserModel, precision: str, folder: Path | None, workload_name: str | None
) -> ModelFile:
    """Return the user's fp32 ONNX model in a lower precision, built in the cache where it is not there yet.

    `folder` holds pictures for calibration, prepared as the catalogue's workload of that name prepares its own. Raises
    UsageError or ModelError that says what is missing, or why this is not possible.
    """
    if (model.format, model.precision) != ("onnx", "fp32"):
        raise ModelError(
            f"{model.name} is {model.format} {model.precision}, and only fp32 ONNX files are built in a lower precision.",
            "Give the fp32 ONNX file, or quantise the model with its own tools and run what they write.",
        )
    found = recipes_for("onnx", precision)
    if precision == "bf16":
        raise UsageError(
            "No ONNX file is built in bf16: onnxruntime's CPU kernels do not compute in it.",
            "OpenVINO computes an fp32 file in bf16 where the CPU can: ask for the execution precision bf16.",
        )
    if not found:
        possible = ", ".join(p for p in PRECISIONS if recipes_for("onnx", p))
        raise UsageError(f"No ONNX file is built in {precision}.", f"Possible are {possible}.")
    recipe = found[0]
    chosen = method(recipe)
    own = own_file(model)
    settings = Settings(precision, {})
    calibration = None
    if chosen.calibrated:
        from harness.models.calibration import calibration_set
        from harness.tasks import create
        from harness.workloads.preparation import fit_ports

        if folder is None:
            raise UsageError(
                f"{precision} needs pictures that set the scales.",
                "Name a folder of them: --calibration FOLDER --workload NAME.",
            )
        workload = _workload(workload_name, model)
        fitted = fit_ports(workload, own)
        roles = tuple((port.role, port.tensor) for port in fitted.inputs)
        own = replace(own, inputs=fitted.inputs)
        dataset = open_pictures(folder, store.cache.root)
        if len(dataset.samples) < WANTED_SAMPLES:
            store.progress.note(
                f"{folder} holds {len(dataset.samples)} pictures; with fewer than {WANTED_SAMPLES}, accuracy may suffer."
            )
        calibration = calibration_set(dataset, SAMPLES, create(workload.task, workload.parameters))
        data = [calibration.identity, workload.task, dict(workload.parameters), roles]
    lineage = Lineage(
        model=model.name,
        format="onnx",
        precision=precision,
        batch=None,
        recipe=f"{recipe}/{chosen.version}",
        recipe_sha256=method_digest(recipe, settings, None if calibration is None else {"own": digest_of(data)}),
        source=f"file:{model.name}",
        source_sha256=own.artifact.sha256,
    )
    artifact = ArtifactEntry("onnx", precision, recipe=recipe)
    name = f"{model.path.stem}-{precision}.onnx"
    return store.quantised(lineage, artifact, own, calibration, name, model.licence)


def open_pictures(folder: Path, cache: Path) -> Dataset:
    """Return the pictures of a folder and its sub-folders as calibration data. Raises ModelError where there are none."""
    if not folder.is_dir():
        raise ModelError(f"There is no folder {folder}.", "Name a folder of pictures: --calibration FOLDER.")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())[:MAX_FILES]
    if not paths:
        raise ModelError(f"The folder {folder} holds no pictures.", f"They must end in {', '.join(ENDINGS)}.")
    samples = tuple(Sample(id=path.relative_to(folder).as_posix(), files=(str(path.absolute()),)) for path in paths)
    hashes = remembered_hashes([sample.files[0] for sample in samples], cache, folder)
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in folder.resolve().name)
    return Dataset(
        name=name or "pictures",
        title=f"{folder} (own folder)",
        digest=samples_digest(samples, hashes),
        samples=samples,
        source=f"file:{folder}",
        files=hashes,
    )


def _workload(name: str | None, model: UserModel) -> Workload:
    """Return the catalogue's workload of that name, for this model."""
    from harness.workloads.definition import load_workloads

    known = {name: workload for name, workload in load_workloads().items() if workload.task in PICTURE_TASKS}
    if name is None:
        raise UsageError(
            f"How {model.name} wants its pictures prepared is not known.",
            f"Say which workload prepares them alike: --workload {' or '.join(known)}.",
        )
    if name not in known:
        what = f"Calibration with {name!r} is not possible yet: a folder can hold pictures only, and"
        raise UsageError(f"{what} these workloads take pictures: {', '.join(known)}.")
    return replace(known[name], model=model)
