"""`weigh compare` as a user types it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Weigh = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def compare(weigh: Weigh, many_run_store: Any) -> Weigh:
    """Run `weigh compare` on the store with many runs."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return weigh("compare", *arguments, WEIGHBRIDGE_STORE=many_run_store.url)

    return run


def test_a_table_names_gaps_and_differences(compare: Weigh) -> None:
    done = compare("--family", "resnet50", "--baseline", "bench-1 onnxruntime cpu", "A100", "Raspberry", "cuda")
    assert done.returncode == 0, done.stderr
    assert "resnet50: Single stream" in done.stdout and "resnet50: Offline" in done.stdout
    assert "Raspberry Pi 4 Model B, tflite cpu: no offline result" in done.stdout
    assert "libcudart.so.13 is not installed" in done.stdout
    assert "weights: ResNet-50 (MLPerf) (baseline: ResNet-50, seeded weights)" in done.stdout
    assert "39,200" in done.stdout and "0.470" in done.stdout
    assert "T4" not in done.stdout


def test_the_first_system_named_is_the_baseline(compare: Weigh) -> None:
    done = compare("--family", "resnet50", "T4", "A100", "--json", "-")
    document = json.loads(done.stdout)
    assert document["baseline"].startswith("xe2420-t4x1-trt")
    ratios = {
        (entry["scenario"], entry["hardware"]): figure["ratio"]
        for entry in document["entries"]
        for figure in entry["figures"]
        if figure["metric"] in {"p50", "throughput"} and figure["ratio"] is not None
    }
    assert ratios["single_stream", "NVIDIA A100-PCIe-80GB"] == pytest.approx(0.469708 / 0.811896)
    assert ratios["offline", "NVIDIA A100-PCIe-80GB"] == pytest.approx(39152.4 / 6121.33)


def test_csv_and_markdown_are_written_to_files(compare: Weigh, tmp_path: Path) -> None:
    done = compare("--family", "resnet50", "--csv", str(tmp_path / "a.csv"), "--markdown", str(tmp_path / "a.md"))
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    (found,) = [
        row for row in rows
        if row["hardware"] == "NVIDIA T4" and row["scenario"] == "single_stream" and row["metric"] == "official"
    ]  # fmt: skip
    assert (found["value"], found["unit"], found["statistic"]) == ("0.818169", "ms", "early-stopping p90")
    assert found["source"] == "MLPerf Inference v3.0, closed, Dell"
    gaps = {row["system"]: row["gap"] for row in rows if row["gap"] and row["scenario"] == "offline"}
    assert gaps["Raspberry Pi 4 Model B, tflite cpu"] == "no offline result"
    text = (tmp_path / "a.md").read_text()
    assert "## Single stream" in text and "| NVIDIA T4, tensorrt gpu |" in text
    assert "<script>" not in text


def test_a_workload_can_be_compared_alone(compare: Weigh) -> None:
    done = compare("--workload", "efficientnet-lite0")
    assert done.returncode == 0, done.stderr
    assert "86.7 (top1)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Choose with --family one of: efficientnet-lite0, resnet50."),
        (("--family", "nope"), "The store has no family 'nope'. It has: efficientnet-lite0, resnet50."),
        (("--family", "resnet50", "--baseline", "tpu"), "No system of this family is named by 'tpu'."),
        (("--family", "resnet50", "--baseline", "bench-1"), "'bench-1' names 4 systems."),
    ],
)
def test_wrong_usage_is_a_sentence_with_the_choices(compare: Weigh, arguments: tuple[str, ...], said: str) -> None:
    done = compare(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_and_a_missing_store_say_what_to_do(weigh: Weigh, empty_store: Any, tmp_path: Path) -> None:
    done = weigh("compare", "--store", empty_store.url)
    assert (done.returncode, "weigh run quick" in done.stderr) == (1, True)
    done = weigh("compare", "--store", f"sqlite:///{tmp_path / 'none.sqlite'}")
    assert (done.returncode, "There is no database at" in done.stderr) == (1, True)
    assert not (tmp_path / "none.sqlite").exists()


def test_it_needs_no_streamlit_and_no_pandas(many_run_store: Any) -> None:
    program = (
        "import sys; from dashboard.compare_command import run;"
        f"run((), 'resnet50', None, 'T4', {many_run_store.url!r}, {{}});"
        "print(sorted({'streamlit', 'pandas', 'altair'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "[]"
