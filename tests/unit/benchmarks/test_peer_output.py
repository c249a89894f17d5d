"""What the peers' tools wrote, recorded from real runs, read as the benchmarks read it. No timing is judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.loadgen import figures
from benchmarks.openvino_peer import read_report
from benchmarks.tflite_peer import read_result
from db.importers.mlperf.summary import read_summary
from harness.errors import NotDone

PEERS = Path(__file__).parents[2] / "fixtures" / "peers"


def test_benchmark_app_says_milliseconds_and_we_take_microseconds() -> None:
    found = read_report((PEERS / "benchmark_app.json").read_text(encoding="utf-8"))
    assert found == pytest.approx({"p50": 5880, "mean": 5980, "min": 5210, "per_s": 165.37})


def test_litert_benchmark_says_milliseconds_and_we_take_microseconds() -> None:
    found = read_result((PEERS / "litert_benchmark.json").read_text(encoding="utf-8"))
    assert found == pytest.approx({"p50": 7150, "mean": 7430, "min": 6910})


def test_loadgen_says_nanoseconds_and_queries_per_second() -> None:
    summary = read_summary((PEERS / "loadgen_summary.txt").read_text(encoding="utf-8"))
    assert summary.valid
    assert summary.queries == 100_000
    found = figures(summary)
    assert found["p50"] == pytest.approx(0.875)
    assert found["p99"] == pytest.approx(1.443)
    assert found["wall"] == pytest.approx(1e6 / 344149.01)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"execution_results": {"latency (ms)": "fast"}}', '{"latency": null}']
)
def test_another_format_is_said_and_not_guessed(text: str) -> None:
    with pytest.raises(NotDone, match="not as known"):
        read_report(text)
    with pytest.raises(NotDone, match="not as known"):
        read_result(text)


def test_a_model_that_litert_ran_in_part_elsewhere_is_no_peer() -> None:
    document = json.loads((PEERS / "litert_benchmark.json").read_text(encoding="utf-8"))
    document["fully_accelerated"] = False
    with pytest.raises(NotDone, match="whole model"):
        read_result(json.dumps(document))
