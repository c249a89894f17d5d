"""Our OpenVINO latency and throughput beside benchmark_app, which ships with OpenVINO, at equal settings on one file.

benchmark_app times a request from inside the runtime, on inputs that were written before (its inference-only mode). Our
latency is host to host: it writes the inputs, calls through Python and reads the outputs, so it may only be longer. Its
throughput counts whole iterations of its own Python loop. Unless told otherwise it converts images from u8 and computes in
bf16 where the processor can, which would make it another measurement.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import boundary
from benchmarks.rounds import Goal, compare, header, interleave, line, load
from benchmarks.trials import model_file, trial
from harness.artifacts import ModelFile
from harness.errors import NotDone

MODEL = "efficientnet-lite0"
SHAPE = "[1,3,224,224]"
ROUNDS = 15
QUERIES = 200
GOAL_LATENCY = Goal(within=0.02, or_difference=10.0)  # microseconds
GOAL_THROUGHPUT = Goal(within=0.02)
# Without this package OpenVINO sends no statistics; so do our own adapters.
START = (
    "import sys; sys.modules['openvino_telemetry'] = None; sys.argv[0] = 'benchmark_app'\n"
    "from openvino.tools.benchmark.main import main; sys.exit(main())"
)


def main(rounds: int = ROUNDS) -> None:
    """Print latency in single stream with one thread, and throughput with two requests in two streams."""
    model = model_file(MODEL, "onnx")
    single = {"threads": 1, "streams": 1, "precision": "fp32"}
    double = {"threads": 2, "streams": 2, "precision": "fp32"}
    ours = trial("openvino", model, "single_stream", single, _limits(1))["report"]
    found = interleave(
        rounds,
        lambda: trial("openvino", model, "single_stream", single, _limits(QUERIES)),
        lambda: benchmark_app(model, threads=1, streams=1, requests=1, queries=QUERIES, ours=ours),
    )
    print(f"openvino_peer: {MODEL} fp32 on the CPU, f32, {QUERIES} queries a round, {rounds} rounds; {load()}")
    print(
        "  single stream, one thread; ours: write, run, read from Python; benchmark_app: inside the request, input prebound"
    )
    print(header("benchmark_app"))
    print(line("latency p50", "us", compare(found, "p50"), GOAL_LATENCY))
    print(line("latency min", "us", compare(found, "min")))
    print(line("throughput", "1/s", compare(found, "per_s"), GOAL_THROUGHPUT))
    pairs = boundary.openvino(model)
    print(f"  the same in one process on one request, query by query in turns, {len(pairs)} queries each")
    print(line("host to host / inside", "us", compare(pairs, "host")))
    print(line("inside the request", "us", compare(pairs, "inside"), GOAL_LATENCY))
    ours = trial("openvino", model, "offline", double, {**_limits(2), "slots": 2})["report"]
    found = interleave(
        rounds,
        lambda: trial("openvino", model, "offline", double, {**_limits(2 * QUERIES), "slots": 2}),
        lambda: benchmark_app(model, threads=2, streams=2, requests=2, queries=2 * QUERIES, ours=ours),
    )
    print("  offline, two threads, two streams, two requests in flight")
    print(line("throughput", "1/s", compare(found, "per_s"), GOAL_THROUGHPUT))


def _limits(queries: int) -> dict[str, Any]:
    return {"duration_s": 0, "warmup_s": 0.2, "min_queries": queries, "max_queries": queries, "limit_s": 120}


def command(
    model: Path, threads: int, streams: int, requests: int, queries: int, folder: Path, shape: str = SHAPE
) -> list[str]:
    """Return the command line that makes benchmark_app do what our trial does, with its report in `folder`."""
    told = {
        "-m": str(model),
        "-d": "CPU",
        "-hint": "none",  # else it refuses threads and streams
        "-nthreads": str(threads),
        "-nstreams": str(streams),
        "-nireq": str(requests),
        "-api": "sync" if requests == 1 else "async",
        "-niter": str(queries),
        "-ip": "f32",
        "-infer_precision": "f32",
        "-shape": shape,
        "-report_type": "no_counters",
        "-report_folder": str(folder),
    }
    return [sys.executable, "-c", START, *(part for pair in told.items() for part in pair), "-json_stats"]


def benchmark_app(
    model: ModelFile, threads: int, streams: int, requests: int, queries: int, ours: Mapping[str, Any]
) -> Mapping[str, float]:
    """Run benchmark_app in a fresh process and read its report.

    `ours` is what our own trial reported. Raises NotDone with the peer's last words, or where it ran with other settings.
    """
    with tempfile.TemporaryDirectory(prefix="weighbridge-benchmark-app-") as folder:
        asked = command(model.path, threads, streams, requests, queries, Path(folder))
        text, words = finish(asked, Path(folder) / "benchmark_report.json")
    other = differences(ours, settings(words))
    if other:
        raise NotDone(f"benchmark_app did not run with our settings: {'; '.join(other)}.")
    return read_report(text)


def settings(words: str) -> dict[str, str]:
    """Return the compiled model's properties, as benchmark_app prints them (its step 8), by their names."""
    return dict(re.findall(r"^\[ INFO \]   ([A-Z_]+): (.*)$", words, flags=re.MULTILINE))


def differences(report: Mapping[str, Any], told: Mapping[str, str]) -> list[str]:
    """Say where the peer's compiled model differs from ours, in what decides over speed; empty where it does not."""
    details = report["details"]
    ours = {
        "INFERENCE_NUM_THREADS": str(report["threads"]),
        "NUM_STREAMS": str(report["streams"]),
        "INFERENCE_PRECISION_HINT": {"fp32": "<Type: 'float32'>"}.get(details["inference_precision_hint"], "another"),
        "EXECUTION_DEVICES": str(list(report["devices"])),
        "ENABLE_CPU_PINNING": str(details["cpu_pinning"]),
        "PERFORMANCE_HINT": str(details["performance_hint"]),
        "EXECUTION_MODE_HINT": f"ExecutionMode.{details['execution_mode']}",
    }
    return [f"{name} is {told.get(name)}, ours {value}" for name, value in ours.items() if told.get(name) != value]


def finish(command: list[str], report: Path) -> tuple[str, str]:
    """Run a peer to its end; return the file that it leaves and what it printed. Raises NotDone with its last words."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode or not report.is_file():
        words = " ".join((done.stderr or done.stdout).split())[-300:]
        raise NotDone(f"The peer ended with status {done.returncode} and wrote no {report.name}: {words}")
    return report.read_text(encoding="utf-8"), done.stdout


def read_report(text: str) -> dict[str, float]:
    """Read benchmark_app's JSON: milliseconds as text with two decimals; returns microseconds, and samples per second.

    Its precision is 10 us. Raises NotDone where it holds something else.
    """
    try:
        results = json.loads(text)["execution_results"]
        return {
            "p50": float(results["latency (ms)"]) * 1e3,
            "mean": float(results["avg latency"]) * 1e3,
            "min": float(results["min latency"]) * 1e3,
            "per_s": float(results["throughput"]),
        }
    except (ValueError, KeyError, TypeError) as error:
        raise NotDone(f"benchmark_app's report is not as known: {error!r}.", "Its format may have changed.") from error
