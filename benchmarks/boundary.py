"""What our wider boundary costs: the same queries counted as the peer counts them, in one process, query by query in turns.

A peer's tool runs in a process of its own, a second or more apart from ours; on a busy machine that alone is several
percent. Here one query of ours is followed by one as the peer makes it, on the same loaded model where the runtime allows.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import backends
from backends.base import LoadOptions, Session
from benchmarks.rounds import Figures, interleave
from harness.artifacts import ModelFile

QUERIES = 400
WARMUP = 30

Pairs = list[tuple[Figures, Figures]]


def openvino(model: ModelFile, queries: int = QUERIES) -> Pairs:
    """Pairs of `host` (ours: host to host; peer: the request's own latency) and `inside` (the request's latency of both)."""
    session = _session("openvino", model, LoadOptions(threads=1, streams=1))
    request: Any = session._requests[0]  # type: ignore[attr-defined]  # the very request that ours uses
    query = _host_to_host(session)

    def ours() -> Figures:
        return {"host": query(), "inside": request.latency * 1e3}

    def peer() -> Figures:  # as benchmark_app's sync_inference
        request.infer()
        return {"host": request.latency * 1e3, "inside": request.latency * 1e3}

    return _pairs(queries, ours, peer, session)


def tflite(model: ModelFile, queries: int = QUERIES) -> Pairs:
    """Pairs of `host`: ours host to host, the peer's run of a CompiledModel."""
    session = _session("tflite", model, LoadOptions(threads=1))
    query = _host_to_host(session)
    run = _compiled_model(model)

    return _pairs(queries, lambda: {"host": query()}, lambda: {"host": _microseconds(run)}, session)


def _compiled_model(model: ModelFile) -> Callable[[], Any]:
    """The call that litert-benchmark times, with its settings: one thread on the CPU, buffers filled before."""
    part = {name: importlib.import_module(f"ai_edge_litert.{name}") for name in ("compiled_model", "options")}
    accelerator = importlib.import_module("ai_edge_litert.hardware_accelerator").HardwareAccelerator.CPU
    options = part["options"].Options(
        hardware_accelerators=accelerator, cpu_options=part["options"].CpuOptions(num_threads=1)
    )
    compiled = part["compiled_model"].CompiledModel.from_file(str(model.path), options=options)
    signature = next(iter(compiled.get_signature_list()))
    taken, given = compiled.get_input_tensor_details(signature), compiled.get_output_tensor_details(signature)
    inputs = {name: compiled.create_input_buffer_by_name(signature, name) for name in taken}
    outputs = {name: compiled.create_output_buffer_by_name(signature, name) for name in given}
    for name, buffer in inputs.items():
        buffer.write(np.random.RandomState(1).random_sample(taken[name]["shape"]).astype(np.float32))
    return lambda: compiled.run_by_name(signature, inputs, outputs)


def _session(backend: str, model: ModelFile, options: LoadOptions) -> Session:
    session = backends.create(backend).load(model.path, model.artifact.format, "cpu", options)
    session.prepare(1)
    return session


def _host_to_host(session: Session) -> Callable[[], float]:
    drawn = np.random.RandomState(1)
    inputs = tuple(drawn.random_sample(info.shape).astype(info.dtype) for info in session.inputs)
    return lambda: _microseconds(lambda: session.infer(0, inputs))


def _microseconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1e3


def _pairs(queries: int, ours: Callable[[], Figures], peer: Callable[[], Figures], session: Session) -> Pairs:
    try:
        interleave(WARMUP, ours, peer)
        return interleave(queries, ours, peer)
    finally:
        session.close()
