"""Our TensorFlow Lite latency beside litert-benchmark, which ships with ai-edge-litert, at equal settings on one file.

litert-benchmark times CompiledModel.run_by_name on inputs that were written before, and never reads the outputs. Ours
writes, invokes and reads an Interpreter, host to host. Both run XNNPACK with one thread.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks import boundary
from benchmarks.openvino_peer import finish
from benchmarks.rounds import Goal, compare, header, interleave, line, load
from benchmarks.trials import model_file, trial
from harness.errors import NotDone

MODEL = "efficientnet-lite0"
ROUNDS = 15
QUERIES = 150
GOAL = Goal(within=0.02, or_difference=10.0)  # microseconds


def main(rounds: int = ROUNDS) -> None:
    """Print the ratio of the latencies in single stream with one thread."""
    model = model_file(MODEL, "tflite")
    limits = {"duration_s": 0, "warmup_s": 0.2, "min_queries": QUERIES, "max_queries": QUERIES, "limit_s": 120}
    found = interleave(
        rounds,
        lambda: trial("tflite", model, "single_stream", {"threads": 1, "precision": "fp32"}, limits),
        lambda: litert_benchmark(model.path, QUERIES),
    )
    print(f"tflite_peer: {MODEL} fp32 on the CPU, one thread, {QUERIES} queries a round, {rounds} rounds; {load()}")
    print("  ours: write, invoke, read of an Interpreter; peer: CompiledModel.run, input prewritten, output not read")
    print(header("litert-benchmark"))
    print(line("latency p50", "us", compare(found, "p50"), GOAL))
    print(line("latency min", "us", compare(found, "min")))
    print(line("latency mean", "us", compare(found, "mean")))
    pairs = boundary.tflite(model)
    print(f"  the same in one process, query by query in turns, {len(pairs)} queries each")
    print(line("host to host / run", "us", compare(pairs, "host"), GOAL))


def command(model: Path, queries: int, threads: int, result: Path) -> list[str]:
    """Return the command line that makes litert-benchmark do what our trial does."""
    return [
        *(sys.executable, "-m", "ai_edge_litert.tools.benchmark_litert_model"),
        *("--model", str(model), "--num_threads", str(threads)),
        *("--num_runs", str(queries), "--warmup_runs", "30", "--result_json", str(result)),
    ]


def litert_benchmark(model: Path, queries: int, threads: int = 1) -> Mapping[str, float]:
    """Run litert-benchmark in a fresh process and read its result. Raises NotDone with its last words."""
    with tempfile.TemporaryDirectory(prefix="weighbridge-litert-") as folder:
        result = Path(folder) / "result.json"
        text, _ = finish(command(model, queries, threads, result), result)
    return read_result(text)


def read_result(text: str) -> dict[str, float]:
    """Read litert-benchmark's JSON: milliseconds with two decimals; returns microseconds, so its precision is 10 us.

    Raises NotDone where it holds something else, or where the processor's accelerator did not take the whole model.
    """
    try:
        document = json.loads(text)
        latency = document["latency"]
        found = {
            "p50": float(latency["median_ms"]) * 1e3,
            "mean": float(latency["avg_ms"]) * 1e3,
            "min": float(latency["min_ms"]) * 1e3,
        }
        whole = document["fully_accelerated"]
    except (ValueError, KeyError, TypeError) as error:
        raise NotDone(
            f"litert-benchmark's result is not as known: {error!r}.", "Its format may have changed."
        ) from error
    if whole is not True:
        raise NotDone("litert-benchmark did not run the whole model in XNNPACK, as ours does.")
    return found
