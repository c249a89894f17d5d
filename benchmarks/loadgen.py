"""MLPerf LoadGen's SingleStream through its Python binding, with its summary as the result."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backends.base import RuntimeMissing
from db.importers.mlperf.summary import Summary, read_summary

Call = Callable[[int], object]  # answers the sample of this index
Issue = Callable[..., None]
POOL = 16


def import_loadgen() -> Any:
    """Import LoadGen's binding. Raises RuntimeMissing with how to install it."""
    try:
        return importlib.import_module("mlperf_loadgen")
    except ImportError as error:
        raise RuntimeMissing(
            f"MLPerf LoadGen's Python binding is not installed ({error}).",
            "Install it: .venv/bin/uv pip install --python .venv/bin/python mlcommons-loadgen.",
        ) from error


def single_stream(call: Call, queries: int, expected_ns: int) -> Summary:
    """Let LoadGen ask `queries` queries, one at a time; `call` does the work.

    LoadGen makes its queries before it begins; `expected_ns` per query tells it how many.
    """
    lg = import_loadgen()
    complete, response = lg.QuerySamplesComplete, lg.QuerySampleResponse

    def issue(samples: Any) -> None:  # in this scenario always one
        sample = samples[0]
        call(sample.index)
        complete([response(sample.id, 0, 0)])

    return _run(lg, issue, queries, expected_ns, fast=False)


def null_single_stream(queries: int, fast: bool) -> Summary:
    """Let LoadGen ask a system that answers at once.

    `fast` takes its ConstructFastSUT, which hands lists of numbers to Python in place of objects.
    """
    lg = import_loadgen()
    complete, response = lg.QuerySamplesComplete, lg.QuerySampleResponse

    def issue(samples: Any) -> None:
        complete([response(samples[0].id, 0, 0)])

    def issue_fast(ids: list[int], indices: list[int]) -> None:
        complete([response(ids[0], 0, 0)])

    return _run(lg, issue_fast if fast else issue, queries, 1_000, fast)


def _run(lg: Any, issue: Issue, queries: int, expected_ns: int, fast: bool) -> Summary:
    settings = lg.TestSettings()
    settings.scenario = lg.TestScenario.SingleStream
    settings.mode = lg.TestMode.PerformanceOnly
    settings.min_duration_ms = 0
    settings.min_query_count = settings.max_query_count = queries
    settings.single_stream_expected_latency_ns = expected_ns
    log = lg.LogSettings()
    log.enable_trace = False  # its writer would share the machine with what is measured
    log.log_output.copy_summary_to_stdout = False
    make, destroy = (lg.ConstructFastSUT, lg.DestroyFastSUT) if fast else (lg.ConstructSUT, lg.DestroySUT)
    with tempfile.TemporaryDirectory(prefix="weighbridge-loadgen-") as folder:
        log.log_output.outdir = folder
        library = lg.ConstructQSL(POOL, POOL, _nothing, _nothing)
        system = make(issue, lambda: None)
        try:
            lg.StartTestWithLogSettings(system, library, settings, log)
        finally:
            destroy(system)
            lg.DestroyQSL(library)
        return read_summary((Path(folder) / "mlperf_log_summary.txt").read_text(encoding="utf-8"))


def _nothing(samples: Any) -> None:
    """Samples are in memory from the start."""


def figures(summary: Summary) -> dict[str, float]:
    """Recorded percentiles in microseconds, and wall microseconds per query with LoadGen's own work between queries."""
    found = {name: value / 1e3 for name, value in summary.percentiles_ns.items()}
    if summary.qps_with_overhead:
        found["wall"] = 1e6 / summary.qps_with_overhead
    return found
