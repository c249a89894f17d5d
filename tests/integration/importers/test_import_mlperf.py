"""Public results in a store, right to the digit. Every expected number was read by eye from the published file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from db import queries
from db.answers import Filter, ResultRow
from db.importers.mlperf.reading import Tree, read_tree
from db.importers.reference import published_digests, reference_runs
from db.importers.storing import store_runs
from harness.documents import write_run
from harness.errors import UsageError

TREE = Path(__file__).parents[2] / "fixtures" / "mlperf"
KRAI = "closed/Krai/results/orin-tflite-v2.11.0-ruy/resnet50"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the published files that a test may spoil."""
    copy = tmp_path / "results"
    shutil.copytree(TREE, copy)
    return copy


def _read(tree: Path) -> Tree:
    return read_tree(tree, known=published_digests())


@pytest.fixture(scope="module")
def imported(shared_store: Any) -> Any:
    """A store that holds the published files, and nothing else."""
    store_runs(shared_store.engine, _read(TREE).runs)
    return shared_store


def _row(store: Any, **wanted: Any) -> ResultRow:
    (row,) = queries.results(store.engine, Filter(newest_only=True, **wanted))
    return row


def test_single_stream_on_an_a100(imported: Any) -> None:
    row = _row(imported, hardware=("NVIDIA A100 PCIe 80 GB",), scenarios=("single_stream",))
    assert (row.workload, row.family, row.status) == ("mlperf-resnet50", "resnet50", "ok")
    assert (row.p50_ms, row.p90_ms, row.p95_ms, row.p99_ms, row.p99_9_ms) == (
        0.469708,
        0.476417,
        0.479557,
        0.505558,
        0.570398,
    )
    assert (row.latency_min_ms, row.latency_mean_ms, row.latency_max_ms) == (0.429818, 0.471335, 40.713063)
    assert row.latency_count == 1210778
    assert row.throughput_per_s == 2017.96
    assert (row.official_metric, row.official_value, row.official_unit) == (
        "early_stopping_p90_latency",
        0.476438,
        "ms",
    )
    assert (row.accuracy_metric, row.accuracy_value, row.accuracy_samples) == ("top1", 0.76124, 50000)
    assert (row.unit_kind, row.unit_count, row.device_model) == ("gpu", 1, "Gigabyte G482-Z54")
    assert (row.backend, row.target, row.runtime) == ("tensorrt", "unknown", "TensorRT 8.6.0, CUDA 12.0")
    assert (row.artifact_precision, row.effective_precision, row.artifact_sha256) == ("unknown", None, None)
    assert (row.threads, row.streams, row.batch) == (None, None, 1)
    assert (row.source_kind, row.source_name) == ("imported", "MLPerf Inference v3.0, closed, NVIDIA")
    assert row.attribution is not None
    assert "MLCommons" in row.attribution
    assert row.url == "https://github.com/mlcommons/inference_results_v3.0"
    assert row.source_location is not None
    assert row.source_location.endswith("resnet50/SingleStream/performance/run_1/mlperf_log_summary.txt")
    assert (row.energy_j, row.energy_reason) == (None, "The submission holds no power log for this result.")


def test_offline_has_a_throughput_and_no_latency(imported: Any) -> None:
    row = _row(imported, hardware=("NVIDIA A100 PCIe 80 GB",), scenarios=("offline",))
    assert row.throughput_per_s == 39152.4
    assert (row.official_metric, row.official_value) == ("samples_per_second", 39152.4)
    assert row.p50_ms is None
    assert row.latency_mean_ms is None
    assert row.batch is None
    assert {"batch_unknown", "loadgen_warnings"} <= {code for code, _ in row.flags}
    xeon = _row(imported, hardware=("Intel Xeon Platinum 8480+",))
    assert (xeon.throughput_per_s, xeon.unit_count, xeon.unit_kind) == (20578.9, 2, "cpu")
    assert (xeon.accuracy_value, xeon.artifact_precision, xeon.backend) == (0.7573, "int8", "pytorch")
    assert "precision_from_name" in {code for code, _ in xeon.flags}


def test_server_and_multi_stream_on_a_t4(imported: Any) -> None:
    server = _row(imported, hardware=("NVIDIA T4",), scenarios=("server",))
    assert (server.official_value, server.throughput_per_s) == (4652.01, 4651.98)
    assert (server.p50_ms, server.p99_ms) == (4.810185, 7.391395)
    assert server.scenario_parameters == {"min_duration_s": 600.0, "target_qps": 4650, "target_latency_ms": 15.0}
    assert "includes_queueing" in {code for code, _ in server.flags}
    multi = _row(imported, hardware=("NVIDIA T4",), scenarios=("multi_stream",))
    assert (multi.official_metric, multi.official_value, multi.p99_ms) == (
        "early_stopping_p99_latency",
        2.194723,
        2.194229,
    )
    assert multi.scenario_parameters["samples_per_query"] == 8
    assert multi.throughput_per_s is None
    bert = _row(imported, families=("bert",))
    assert (bert.workload, bert.p90_ms, bert.official_value) == ("mlperf-bert-99", 6.083613, 6.093055)
    assert (bert.accuracy_metric, bert.accuracy_value) == ("f1", 0.902363047316654)


def test_boards_and_an_open_submission(imported: Any) -> None:
    pi = _row(imported, search="raspberry")
    assert (pi.p50_ms, pi.p99_ms, pi.throughput_per_s) == (552.717249, 615.909413, 1.8)
    assert pi.official_value == 572.834162
    assert pi.device_model == "Raspberry Pi 4 Model B Rev 1.4"
    assert pi.hardware_model is not None
    assert "BCM2835 Arm Cortex-A72" in pi.hardware_model
    mac = _row(imported, families=("mobilenet-v2",))
    assert (mac.p90_ms, mac.official_value, mac.accuracy_value) == (29.777042, 30.141333, 0.70612)
    assert (mac.artifact_precision, mac.source_name) == ("uint8", "MLPerf Inference v3.0, open, cTuning")


def test_the_orin_row_is_its_cpu_and_its_energy_is_an_estimate(imported: Any) -> None:
    rows = queries.results(imported.engine, Filter(search="orin"))
    assert {row.unit_kind for row in rows} == {"cpu"}
    assert {row.hardware_model for row in rows} == {"NVIDIA Jetson AGX Orin (Arm Cortex-A78AE v8.2 CPU)"}
    (metered,) = [row for row in rows if row.energy_j is not None]
    assert (metered.energy_scope, metered.energy_quality) == ("wall", "estimated")
    assert "power_window_estimated" in {code for code, _ in metered.flags}
    assert metered.energy_j is not None
    assert metered.power_w is not None
    # 14196 queries in the 600 s that LoadGen ran at least.
    assert metered.energy_j == pytest.approx(metered.power_w * 600 / 14196)


def test_a_copy_in_another_scenarios_folder_is_marked_and_never_the_newest(imported: Any) -> None:
    rows = queries.results(imported.engine, Filter(search="orin"))
    assert [row.scenario for row in rows] == ["single_stream", "single_stream"]
    copies = [row for row in rows if "scenario_inferred_by_submitter" in {code for code, _ in row.flags}]
    assert len(copies) == 1
    assert copies[0].source_location is not None
    assert "/offline/" in copies[0].source_location
    newest = _row(imported, search="orin")
    assert newest.measurement_id != copies[0].measurement_id


def test_twice_changes_nothing_and_a_part_first_changes_nothing_either(store: Any) -> None:
    part = read_tree(TREE / "closed" / "NVIDIA", known=published_digests())
    assert store_runs(store.engine, part.runs).new == 2
    whole = _read(TREE)
    first = store_runs(store.engine, whole.runs)
    assert (first.new, first.known) == (8, 2)
    version = queries.data_version(store.engine)
    again = store_runs(store.engine, whole.runs)
    assert (again.new, again.known) == (0, 10)
    assert queries.data_version(store.engine) == version
    assert queries.count(store.engine) == 10


def test_an_invalid_result_is_kept_as_invalid(store: Any, tree: Path) -> None:
    path = tree / "closed/NVIDIA/results/A100-PCIe-80GBx1_TRT/resnet50/Offline/performance/run_1/mlperf_log_summary.txt"
    text = path.read_text()
    path.write_text(
        text.replace("Result is : VALID", "Result is : INVALID").replace(
            "Min duration satisfied : Yes", "Min duration satisfied : NO\nRecommendations:\n * Increase expected QPS."
        )
    )
    store_runs(store.engine, _read(tree).runs)
    (row,) = queries.results(store.engine, Filter(statuses=("invalid",)))
    assert row.scenario == "offline"
    assert row.reason is not None
    assert "not min duration satisfied" in row.reason
    assert "Increase expected QPS." in row.reason


def test_one_spoilt_file_is_named_and_the_others_come_in(store: Any, tree: Path) -> None:
    (tree / KRAI / "singlestream/accuracy/accuracy.txt").write_text("accuracy=99.000%, good=1, total=50000\n")
    (tree / KRAI / "offline/performance/run_1/mlperf_log_summary.txt").write_bytes(b"\xff\xfe\x00")
    (tree / "closed/Dell/systems/XE2420_T4x1_TRT.json").unlink()
    (tree / "closed/Intel/systems/1-node-2S-SPR-PyTorch-INT8.json").write_text("{not json")
    (tree / "stray").mkdir()
    shutil.copy(tree / "NOTICE.md", tree / "stray" / "mlperf_log_summary.txt")
    found = _read(tree)
    assert len(found.runs) == 4
    told = "\n".join(found.problems)
    for name, why in (
        ("singlestream/accuracy/accuracy.txt", "contradicts itself"),
        ("offline/performance/run_1/mlperf_log_summary.txt", "not UTF-8"),
        ("closed/Dell/systems/XE2420_T4x1_TRT.json", "not there"),
        ("closed/Intel/systems/1-node-2S-SPR-PyTorch-INT8.json", "not valid JSON"),
        ("stray/mlperf_log_summary.txt", "does not stand in"),
    ):
        assert any(name in line and why in line for line in found.problems), (name, told)
    # Ten results in all: four are in, three of Dell's and one each of the others are named.
    assert len(found.problems) == 7
    assert store_runs(store.engine, found.runs).new == 4


def test_a_link_out_of_the_tree_is_not_followed(tree: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    system = tree / "closed/NVIDIA/systems/A100-PCIe-80GBx1_TRT.json"
    system.unlink()
    system.symlink_to(secret)
    assert any("symbolic link" in line for line in _read(tree).problems)


def test_a_pipe_in_the_tree_does_not_stop_the_import(tree: Path) -> None:
    summary = tree / KRAI / "offline/performance/run_1/mlperf_log_summary.txt"
    summary.unlink()
    os.mkfifo(summary)
    found = _read(tree)
    assert any("not a regular file" in line for line in found.problems)
    assert len(found.runs) == 9


def test_systems_without_results_are_named() -> None:
    # Intel described a second system in the open division; this tree holds no result of it.
    tree = _read(TREE)
    assert tree.problems == ()
    assert tree.idle_systems == ("open/Intel/systems/1-node-2S-SPR-OpenVINO-INT8.json",)


def test_the_release_must_be_known(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="which MLPerf Inference release"):
        read_tree(tree)
    assert read_tree(tree, "v3.1").release.published == "2023-09-11"
    with pytest.raises(UsageError, match="not known here"):
        read_tree(tree, "v9.9")
    assert read_tree(tree, "v9.9", "2031-04-05").release.published == "2031-04-05"
    with pytest.raises(UsageError, match="not a day"):
        read_tree(tree, "v9.9", "soon")
    named = tmp_path / "inference_results_v3.0"
    tree.rename(named)
    assert read_tree(named).release.version == "v3.0"
    with pytest.raises(UsageError, match="holds no"):
        read_tree(tmp_path / "inference_results_v3.0" / "open" / "Intel")
    with pytest.raises(UsageError, match="not a folder"):
        read_tree(tmp_path / "nowhere")


def test_the_reference_set_is_what_the_importer_reads_from_the_published_files() -> None:
    shipped = {run.source.location: write_run(run) for run in reference_runs()}
    read = {
        run.source.location: write_run(run)
        for run in _read(TREE).runs
        if all(flag.code != "scenario_inferred_by_submitter" for flag in run.measurements[0].flags)
    }
    assert len(read) == 9
    for location, record in read.items():
        assert shipped[location] == record


def test_the_reference_set_stands_beside_the_tree_without_doubles(store: Any) -> None:
    assert store_runs(store.engine, reference_runs()).new == 32
    assert store_runs(store.engine, reference_runs()).new == 0
    tree = store_runs(store.engine, _read(TREE).runs)
    assert (tree.new, tree.known) == (1, 9), "only the copy in another scenario's folder is new"
    bought = queries.facets(store.engine).hardware
    for name in ("NVIDIA A100 PCIe 80 GB", "NVIDIA A30", "NVIDIA L4", "NVIDIA T4", "Intel Xeon Platinum 8480+"):
        assert name in bought
