"""A timing trial: cold start part by part, the host's stages, then the scenario's window."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.scenarios import run, slots_for
from harness.scenarios.window import Limits
from harness.worker.job import Job
from harness.worker.loading import Loaded, Prepared, cold_parts, load, prepare_pool
from harness.worker.memory import peak_rss_bytes
from harness.worker.samples import save, save_lines

STAGE_SAMPLES = 20  # of postprocessing, where the pool is smaller
LEAST_STAGE_SAMPLES = 4
STAGE_BUDGET_NS = 300_000_000  # with the inferences that it takes; many trials add up, and each must stay short


def run_timing(job: Job, process_ms: float | None) -> dict[str, Any]:
    """Run one case once. Returns the trial document; raw samples go into files of `out_dir`."""
    loaded = load(job)
    session = loaded.session
    prepared = prepare_pool(job, loaded)
    limits = Limits.from_json(job.scenario_parameters)
    parameters = {**job.scenario_parameters, "batch": job.batch, "seed": seed_of(job.trial_id)}
    slots = slots_for(job.scenario, session, parameters)
    start = time.perf_counter_ns()
    session.prepare(slots)
    session.infer(0, prepared.pool[0])
    first_ms = (time.perf_counter_ns() - start) / 1e6
    waited = wait_loaded(float(job.scenario_parameters.get("loaded_idle_s", 0)))
    played = run(job.scenario, session, prepared.pool, limits, parameters, prepared.carry, slots)
    window = played.window
    out = Path(job.out_dir)
    files = [save(out, what, values) for what, values in played.samples.items()]
    files += [save_lines(out, what, lines) for what, lines in played.lines.items()]
    if job.scenario == "single_stream" and job.batch == 1:
        files.append(save(out, "decode_ns", prepared.decode_ns))
        files.append(save(out, "preprocess_ns", prepared.preprocess_ns))
        files.append(save(out, "postprocess_ns", _postprocess(loaded, prepared)))
    document = {
        "window_start_ns": window.start_ns,
        "window_end_ns": window.end_ns,
        "discarded_warmup": window.warmup_queries,
        "throughput_per_s": None if played.requests_per_s is None else played.requests_per_s * job.batch,
        "queries": played.requests,
        "slots": slots,
        "pool": len(prepared.pool),
        "scenario": played.facts,
        "loaded_idle_ns": waited,
        "cold_start_ms": cold_parts(process_ms, loaded, first_ms),
        "report": asdict(session.report()),
        "files": files,
        "peak_rss_bytes": peak_rss_bytes(),
    }
    session.close()  # before it is dropped: a runtime's own thread may still hold a request
    return document


def wait_loaded(seconds: float) -> list[int] | None:
    """Wait with the model loaded, after its first answer; return the stretch's ends for a meter. None: none was asked."""
    if seconds <= 0:
        return None
    start = time.monotonic_ns()
    time.sleep(seconds)
    return [start, time.monotonic_ns()]


def seed_of(trial_id: str) -> int:
    """Return the seed of a trial's own arrivals: every trial draws its own, and the same when it is played again."""
    return int.from_bytes(hashlib.sha256(trial_id.encode()).digest()[:8], "big")


def _postprocess(loaded: Loaded, prepared: Prepared) -> npt.NDArray[np.int64]:
    """Time the host's work on real outputs, sample by sample, after the window so that it disturbs nothing."""
    times: list[int] = []
    begin = time.perf_counter_ns()
    for number in range(max(len(prepared.pool), STAGE_SAMPLES)):
        outputs = loaded.outputs.to_canonical(loaded.session.infer(0, prepared.pool[number % len(prepared.pool)]))
        start = time.perf_counter_ns()
        prepared.task.postprocess(outputs)
        end = time.perf_counter_ns()
        times.append(end - start)
        if end - begin > STAGE_BUDGET_NS and len(times) >= LEAST_STAGE_SAMPLES:
            break
    return np.array(times, np.int64)
