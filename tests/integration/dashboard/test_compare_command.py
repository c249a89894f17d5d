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


@pytest.fixture
def beside(weigh: Weigh, rich_store: Any) -> Weigh:
    """Run `weigh compare` on the store in which everything occurs."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return weigh("compare", *arguments, WEIGHBRIDGE_STORE=rich_store.url)

    return run


def test_two_systems_are_judged_beside_each_other(beside: Weigh) -> None:
    done = beside("lab-b onnxruntime fp32", "lab-a onnxruntime fp32")
    assert done.returncode == 0, done.stderr
    # 10 ms over 7.69 ms, each with 2 % on both sides: 1.3 from 9.8 / 7.85 to 10.2 / 7.54
    assert (
        "A is 1.3 times as fast as B at p50 (95 % interval 1.25 to 1.35, 1 unit of each measured): like for like."
        in done.stdout
    )
    assert "A takes 0.769 times the energy of B for one inference" in done.stdout
    assert "kernel's release: 6.12.2 here, 6.12.1 there" in done.stdout
    assert "power setting governor: powersave here, performance there" in done.stdout


def test_the_same_two_as_a_document(beside: Weigh) -> None:
    done = beside("lab-b openvino bf16", "lab-a onnxruntime fp32", "--json", "-")
    document = json.loads(done.stdout)
    single = next(pair for pair in document["pairs"] if pair["scenario"] == "single_stream")
    p50 = next(metric for metric in single["metrics"] if metric["metric"] == "p50")
    assert (p50["verdict"], p50["difference"], p50["confidence"]) == ("tuned", "shown", 0.95)
    assert p50["ratio"] == pytest.approx(7 / 1.3 / 10)
    assert single["a"]["trust"]["grade"] == "A"
    assert {field["name"] for part in document["environment_differences"] for field in part["fields"]} >= {
        "kernel's release"
    }


def test_two_runs_are_named_by_the_beginning_of_their_ids(beside: Weigh, rich_store: Any) -> None:
    a, b = (rich_store.runs[name] for name in ("lab-a", "lab-b"))
    done = beside(a[:8], b)
    assert done.returncode == 0, done.stderr
    for words in (
        "server, limit ms 20.0, percentile 99",
        "cold start, file cache cold",
        "offline, batch 32",
        "sustained",
    ):
        assert words in done.stdout, words
    assert "Without a partner" not in done.stdout
    assert "A and B are not comparable in any metric:\n    A failed the accuracy gate" in done.stdout


def test_two_measurements_that_differ_in_their_contract_exit_with_one(beside: Weigh, rich_store: Any) -> None:
    named = rich_store.measurements
    done = beside(
        named["lab-a efficientnet-lite0 onnxruntime cpu sustained"],
        named["lab-b efficientnet-lite0 onnxruntime cpu server"],
    )
    assert done.returncode == 1
    assert "Differs in scenario: sustained (A), server (B)." in done.stdout
    assert "may be compared; the reasons are above" in done.stderr


def test_a_pair_that_nothing_names_or_that_has_nothing_in_common(beside: Weigh) -> None:
    assert (done := beside("lab-a", "abacus")).returncode == 2 and "No system" in done.stderr
    assert (done := beside("lab-a", "ffffffff")).returncode == 2 and "No system" in done.stderr


def test_it_needs_no_streamlit_and_no_pandas(many_run_store: Any) -> None:
    program = (
        "import sys; from dashboard.compare_command import run;"
        f"run((), 'resnet50', None, 'T4', {many_run_store.url!r}, {{}});"
        "print(sorted({'streamlit', 'pandas', 'altair'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "[]"
