"""The suite behind `weigh run model.onnx`: one file, random inputs of its shapes, every backend that reads its format."""

from __future__ import annotations

from pathlib import Path

import backends
from harness.canonical import digest_of
from harness.errors import UsageError
from harness.models.file_precision import file_precision
from harness.models.user_model import SUFFIXES, UserModel
from harness.suites.definition import RUNTIME_DEFAULT, Group, Suite
from harness.workloads.definition import Workload

VERSION = "1"


def is_model_file(name: str) -> bool:
    """Whether `name` looks like a model file by its ending."""
    return Path(name).suffix.lower() in SUFFIXES


def suite_for_model(path: Path) -> Suite:
    """Return a suite of one workload. Raises UsageError where there is no such file."""
    if not path.is_file() and not path.is_dir():  # a folder is a CoreML package
        raise UsageError(f"There is no model file {path}.", "Correct the path.")
    model_format = SUFFIXES[path.suffix.lower()]
    precision = file_precision(path, model_format) or "fp32"
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in path.stem) or "model"
    workload = Workload(
        name=f"file.{name}",
        title=f"{path.name} with random inputs",
        family=f"file.{name}",
        task="random_inputs",
        model=UserModel(path=path.absolute(), format=model_format, precision=precision),
        latency_samples="random",
        energy=False,
        note="A bare model file with random inputs: no accuracy.",
    )
    targets = {
        backend: backends.create(backend).targets()[-1:] if backend == "coreml" else ("cpu",)
        for backend in backends.BACKENDS
        if model_format in backends.create(backend).formats
    }
    groups = tuple(
        Group(
            scenario=scenario,
            workloads=(workload.name,),
            targets=targets,
            # A quantised or fp16 file is not to be run in fp32: what the runtime makes of it is stored as such.
            precisions=("fp32" if precision == "fp32" else RUNTIME_DEFAULT,),
            artifact_precisions=(precision,),
            duration_s=5.0,
            warmup_s=1.0,
            min_queries=queries,
            limit_s=20.0,
        )
        for scenario, queries in (("single_stream", 100), ("offline", 4))
    )
    return Suite(
        name="model-file",
        version=VERSION,
        title=f"The model file {path.name}",
        digest=digest_of(["model-file", VERSION]),
        groups=groups,
        workloads={workload.name: workload},
    )
