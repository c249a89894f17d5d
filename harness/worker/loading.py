"""From a job to a loaded session and a pool of real inputs, each step timed."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import backends
from backends.base import Array, Session
from harness.scenarios.window import Carry, Inputs
from harness.tasks import create
from harness.tasks.base import Task
from harness.worker.job import Job
from harness.worker.tensors import TensorMap

POOL_BYTES = 256 * 1024 * 1024  # of preprocessed inputs kept in memory


@dataclass(frozen=True)
class Loaded:
    """A session with the maps of its tensors, and the milliseconds of import, load and compile."""

    session: Session
    inputs: TensorMap
    outputs: TensorMap
    import_ms: float
    load_ms: float | None
    compile_ms: float | None


def look_ahead(job: Job) -> None:
    """Let the adapter look at the model file for itself, where it does, before anything is timed.

    onnxruntime's adapter reads the graph for its own ends, off the clock; after the file's pages were dropped that would
    bring them back, and the runtime's own reading would find them there.
    """
    assert job.model is not None
    read_graph = getattr(sys.modules[type(backends.create(job.backend)).__module__], "read_graph", None)
    if read_graph is not None:
        read_graph(Path(job.model.path))


def cold_parts(process_ms: float | None, loaded: Loaded, first_ms: float) -> dict[str, float | None]:
    """Return the parts of the first answer in milliseconds, by their names in the record."""
    return {
        "process": process_ms,
        "import": loaded.import_ms,
        "load": loaded.load_ms,
        "compile": loaded.compile_ms,
        "first_inference": first_ms,
    }


def load(job: Job) -> Loaded:
    """Import the runtime and load the job's model strictly on its target. Raises BackendError."""
    assert job.model is not None
    start = time.perf_counter_ns()
    backend = backends.create(job.backend)
    # Each adapter's module imports its runtime in a function of this name; here it is timed apart from loading.
    import_runtime = getattr(sys.modules[type(backend).__module__], "import_runtime", None)
    if import_runtime is not None:
        import_runtime()
    import_ms = (time.perf_counter_ns() - start) / 1e6
    session = backend.load(Path(job.model.path), job.model.format, job.target, job.load_options())
    return Loaded(
        session=session,
        inputs=TensorMap(job.model.inputs, session.inputs),
        outputs=TensorMap(job.model.outputs, session.outputs),
        import_ms=import_ms,
        load_ms=session.load_ms,
        compile_ms=session.compile_ms,
    )


@dataclass(frozen=True)
class Prepared:
    """Inputs that rotate, and how long each sample took to become one."""

    task: Task
    pool: list[Inputs]
    carry: Carry
    decode_ns: npt.NDArray[np.int64]
    preprocess_ns: npt.NDArray[np.int64]


def prepare_pool(job: Job, loaded: Loaded) -> Prepared:
    """Decode and preprocess the job's samples, timed apart, and stack them to batches in the file's own layout."""
    task = create(job.task, job.task_parameters)
    canonical: list[Mapping[str, Array]] = []
    decode_ns: list[int] = []
    preprocess_ns: list[int] = []
    held = 0
    for sample in job.samples:
        start = time.perf_counter_ns()
        decoded = task.decode(sample)
        between = time.perf_counter_ns()
        arrays = task.preprocess(decoded)
        end = time.perf_counter_ns()
        decode_ns.append(between - start)
        preprocess_ns.append(end - between)
        canonical.append(arrays)
        held += sum(array.nbytes for array in arrays.values())
        if held > POOL_BYTES:
            break
    if not canonical:
        raise ValueError("the job has no samples")
    batches = -(-len(canonical) // job.batch)
    pool = [
        loaded.inputs.to_file([canonical[(number * job.batch + k) % len(canonical)] for k in range(job.batch)])
        for number in range(batches)
    ]
    carry = [(loaded.inputs.index_of(taking), loaded.outputs.index_of(giving)) for taking, giving in task.carry.items()]
    if carry:
        # Every entry of the pool shares the one buffer of each state.
        taken = {taking: pool[0][taking] for taking, _ in carry}
        pool = [tuple(taken.get(position, array) for position, array in enumerate(inputs)) for inputs in pool]
    return Prepared(task, pool, carry, np.array(decode_ns, np.int64), np.array(preprocess_ns, np.int64))
