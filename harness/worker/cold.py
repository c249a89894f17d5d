"""A cold trial: from nothing to the first answer, part by part, with the state of every cache as it was seen.

The process is fresh, and was timed from its start. Before the runtime is imported, the model file's pages are dropped or
read through, and the compile cache is emptied or filled by another process; all of that is untimed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from backends.base import InferenceFailed, OptionUnsupported, Report
from harness.worker import page_cache
from harness.worker.job import TRIAL_FILE, Job, write_job
from harness.worker.loading import cold_parts, load, look_ahead, prepare_pool
from harness.worker.memory import peak_rss_bytes
from harness.worker.samples import save

COMPILE_FOLDER = "compile-cache"
FILL_FOLDER = "fill"
FILL_KIND = "fill"
# After the first inference: how soon the following ones are as fast as they will be.
FOLLOWING = 20
FOLLOWING_S = 2.0
LIBRARIES = "not controlled: other processes may hold the runtime's libraries in memory"


def run_cold(job: Job, process_ms: float | None) -> dict[str, Any]:
    """Start once. The parts are in `cold_start_ms`, the caches' states in `caches`, the next latencies in a file.

    Raises OptionUnsupported where a cache that was asked for does not exist here.
    """
    assert job.model is not None
    model = Path(job.model.path)
    asked_file = str(job.scenario_parameters.get("file_cache", "warm"))
    asked_compile = str(job.scenario_parameters.get("compile_cache", "off"))
    job = replace(job, samples=job.samples[: job.batch])
    cache = Path(job.out_dir) / COMPILE_FOLDER
    if asked_compile != "off":
        cache.mkdir()
        job = replace(job, options={**job.options, "cache_dir": str(cache)})
    if asked_compile == "warm":
        _fill(job)
    held = _listing(cache)
    look_ahead(job)
    files = (*page_cache.files_of(model), *(cache / name for name in held))
    file_state = page_cache.drop(files) if asked_file == "cold" else page_cache.read_through(files)
    loaded = load(job)
    prepared = prepare_pool(job, loaded)
    session = loaded.session
    start = time.perf_counter_ns()
    session.prepare(1)
    session.infer(0, prepared.pool[0])
    first_ms = (time.perf_counter_ns() - start) / 1e6
    following: list[int] = []
    begin = time.perf_counter_ns()
    while len(following) < FOLLOWING and time.perf_counter_ns() - begin < FOLLOWING_S * 1e9:
        start = time.perf_counter_ns()
        session.infer(0, prepared.pool[0])
        following.append(time.perf_counter_ns() - start)
    report = session.report()
    compile_state = _compile_state(asked_compile, job, held, _listing(cache), report)
    return {
        "cold_start_ms": cold_parts(process_ms, loaded, first_ms),
        "caches": {"file": file_state, "compile": compile_state, "libraries": LIBRARIES},
        "report": asdict(report),
        "slots": 1,
        "files": [save(Path(job.out_dir), "following_ns", np.array(following, np.int64))],
        "peak_rss_bytes": peak_rss_bytes(),
    }


def run_fill(job: Job) -> dict[str, Any]:
    """Load the model once and answer once, so that the compile cache holds what the runtime keeps in it."""
    loaded = load(job)
    prepared = prepare_pool(job, loaded)
    loaded.session.prepare(1)
    loaded.session.infer(0, prepared.pool[0])
    loaded.session.close()
    return {"files": []}


def _fill(job: Job) -> None:
    """Run `run_fill` in a process of its own: what this one had done already would be no start any more."""
    folder = Path(job.out_dir) / FILL_FOLDER
    folder.mkdir()
    job_file = folder / "job.json"
    write_job(replace(job, kind=FILL_KIND, out_dir=str(folder)), job_file)
    command = [sys.executable, "-I", str(Path(sys.argv[0]).absolute()), str(job_file)]
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    try:
        document = json.loads((folder / TRIAL_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InferenceFailed("The load that was to fill the compile cache ended without a word.") from error
    if document["status"] == "unsupported":
        raise OptionUnsupported(document["reason"], document.get("fix", ""))
    if document["status"] != "ok":
        raise InferenceFailed(f"The load that was to fill the compile cache failed: {document['reason']}")


def _compile_state(asked: str, job: Job, before: list[str], after: list[str], report: Report) -> str:
    """Return what the compile cache did. Raises OptionUnsupported where the runtime left nothing in it."""
    if asked == "off":
        return "off"
    if not after:
        raise OptionUnsupported(
            f"{job.backend} keeps no compile cache on {job.target}: it left nothing in the folder it was given.",
            'Ask for compile_cache = "off".',
        )
    if asked == "cold":
        return "cold"
    told = report.details.get("loaded_from_cache")
    if told is False:
        return "not controlled: the runtime says that it did not take the compiled model from its cache"
    if told is None and set(after) - set(before):
        return "not controlled: the runtime wrote into its cache again, so it may not have used what was there"
    return "warm"


def _listing(folder: Path) -> list[str]:
    """Names of the files in a folder, those in folders below too; empty where there is none."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
