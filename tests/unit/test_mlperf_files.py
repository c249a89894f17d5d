"""Reading the files of MLPerf results. Every expected number was read by eye from the published file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from db.importers.mlperf.accuracy import read_accuracy
from db.importers.mlperf.benchmarks import benchmark_of, precision_in_name
from db.importers.mlperf.power import PowerLog, busiest_window, read_power_log
from db.importers.mlperf.summary import Summary, read_summary
from db.importers.mlperf.system import read_system
from harness.errors import RecordError

TREE = Path(__file__).parents[1] / "fixtures" / "mlperf"
A100 = TREE / "closed/NVIDIA/results/A100-PCIe-80GBx1_TRT/resnet50"
T4 = TREE / "closed/Dell/results/XE2420_T4x1_TRT"
ORIN = TREE / "closed/Krai/results/orin-tflite-v2.11.0-ruy/resnet50"


def summary_text(folder: Path) -> str:
    return (folder / "performance/run_1/mlperf_log_summary.txt").read_text()


def test_single_stream_summary() -> None:
    found = read_summary(summary_text(A100 / "SingleStream"))
    assert found.scenario == "single_stream"
    assert found.valid
    assert found.queries == 1210778
    assert (found.min_ns, found.mean_ns, found.max_ns) == (429818, 471335, 40713063)
    assert found.percentiles_ns == {
        "p50": 469708,
        "p90": 476417,
        "p95": 479557,
        "p97": 491047,
        "p99": 505558,
        "p99_9": 570398,
    }
    assert found.early_stopping_ns == {"90": 476438, "99": 505787}
    assert (found.qps_with_overhead, found.qps_without_overhead) == (2017.96, 2121.63)
    assert found.parameters["min_duration (ms)"] == 600000
    assert found.parameters["qsl_rng_seed"] == 10003631887983097364
    assert (found.warnings, found.errors) == (0, 0)


def test_multi_stream_summary_has_eight_samples_per_query_and_no_rate() -> None:
    found = read_summary(summary_text(T4 / "resnet50/MultiStream"))
    assert found.scenario == "multi_stream"
    assert found.early_stopping_ns == {"99": 2194723}
    assert found.percentiles_ns["p99"] == 2194229
    assert found.parameters["samples_per_query"] == 8
    assert found.queries == 273223
    assert found.qps_with_overhead is None


def test_server_summary_has_two_rates() -> None:
    found = read_summary(summary_text(T4 / "resnet50/Server"))
    assert (found.scheduled_per_second, found.completed_per_second) == (4652.01, 4651.98)
    assert found.percentiles_ns["p99"] == 7391395
    assert found.early_stopping_ns == {}


def test_offline_summary_counts_its_warnings() -> None:
    found = read_summary(summary_text(A100 / "Offline"))
    assert found.samples_per_second == 39152.4
    assert (found.warnings, found.errors) == (1, 0)


def test_the_scenario_line_is_the_truth_not_the_folder() -> None:
    assert read_summary(summary_text(ORIN / "offline")).scenario == "single_stream"


def test_an_invalid_result_says_what_was_not_satisfied() -> None:
    text = summary_text(A100 / "Offline")
    text = text.replace("Result is : VALID", "Result is : INVALID").replace(
        "Min duration satisfied : Yes", "Min duration satisfied : NO"
    )
    text = text.replace("\n\n====", "\nRecommendations:\n * Increase expected QPS.\n\n====", 1)
    found = read_summary(text)
    assert not found.valid
    assert found.unsatisfied == ("Min duration satisfied",)
    assert found.recommendations == ("Increase expected QPS.",)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("MLPerf Results Summary", "Something else", "not a LoadGen summary"),
        ("Scenario : SingleStream", "Scenario : Sideways", "Sideways"),
        ("Mode     : PerformanceOnly", "Mode     : AccuracyOnly", "AccuracyOnly"),
        ("Result is : VALID", "Result is : MAYBE", "MAYBE"),
        ("90.00 percentile latency (ns)   : 476417", "90.00 percentile latency (ns)   : 476418", "differ"),
        ("Mean latency (ns)               : 471335", "Mean latency (ns)               : 4.7e5", "whole number"),
        ("QPS w/ loadgen overhead         : 2017.96", "QPS w/ loadgen overhead         : nan", "not a number"),
        ("SUT name : LWIS_Server", "SUT name : LWIS_Server\nScenario : Offline", "twice and differently"),
    ],
)
def test_summaries_that_contradict_themselves_are_refused(old: str, new: str, said: str) -> None:
    text = summary_text(A100 / "SingleStream")
    assert old in text
    with pytest.raises(RecordError, match=said):
        read_summary(text.replace(old, new))


_GOOD = summary_text(A100 / "SingleStream")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(_GOOD)), st.integers(0, 40), st.text(max_size=20))
@example(0, 0, "")
def test_a_damaged_summary_is_read_or_refused_but_never_crashes(at: int, cut: int, put: str) -> None:
    text = _GOOD[:at] + put + _GOOD[at + cut :]
    try:
        found = read_summary(text)
    except RecordError:
        return
    assert isinstance(found, Summary)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 10**12), min_size=6, max_size=6).map(sorted),
    st.integers(64, 10**9),
    st.decimals("0.01", "99999", places=2, allow_nan=False),
)
def test_what_is_printed_is_what_is_read(quantiles: list[int], queries: int, qps: object) -> None:
    names = ("50.00", "90.00", "95.00", "97.00", "99.00", "99.90")
    lines = [
        "=====",
        "MLPerf Results Summary",
        "Scenario : SingleStream",
        "Mode     : PerformanceOnly",
        f"90th percentile latency (ns) : {quantiles[1]}",
        "Result is : VALID",
        f" * Processed at least 64 queries ({queries}).",
        f" * Early stopping 90th percentile estimate: {quantiles[2]}",
        f"QPS w/ loadgen overhead         : {qps}",
        *(f"{name} percentile latency (ns)   : {value}" for name, value in zip(names, quantiles, strict=True)),
    ]
    found = read_summary("\n".join(lines))
    assert list(found.percentiles_ns.values()) == quantiles
    assert found.queries == queries
    assert found.early_stopping_ns == {"90": quantiles[2]}
    assert found.qps_with_overhead == float(str(qps))


def test_top1_accuracy_is_the_printed_percentage() -> None:
    found = read_accuracy((A100 / "SingleStream/accuracy/accuracy.txt").read_text())
    assert found is not None
    assert (found.metric, found.value, found.samples) == ("top1", 0.76124, 50000)


def test_bert_accuracy_is_found_between_other_text() -> None:
    text = (T4 / "bert-99/SingleStream/accuracy/accuracy.txt").read_text()
    for order in (text, "\n".join(reversed(text.splitlines()))):
        found = read_accuracy(order)
        assert found is not None
        assert (found.metric, found.value) == ("f1", 0.902363047316654)
        assert found.details == {"exact_match": 0.8292336802270577}


def test_accuracies_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(RecordError, match="contradicts itself"):
        read_accuracy("accuracy=86.124%, good=38062, total=50000\n")
    with pytest.raises(RecordError, match="two accuracies"):
        read_accuracy("accuracy=50.000%, good=1, total=2\naccuracy=25.000%, good=1, total=4\n")
    assert read_accuracy("Reading examples...\nhash=00\n") is None


def test_power_log_and_its_busiest_window() -> None:
    log = read_power_log((ORIN / "singlestream/performance/run_1/spl.txt").read_text())
    assert len(log.watts) == 628
    assert log.watts[0] == 14.24
    window = busiest_window(log, 600.0)
    # The published log has idle ends: the whole mean is some percent below the busiest 600 s, and no reading exceeds 40 W.
    assert log.mean_w < window.mean_w < 40
    assert 0.02 < 1 - log.mean_w / window.mean_w < 0.05


def test_the_busiest_window_of_a_log_made_by_hand() -> None:
    # 10 W for 10 s, 100 W for 20 s, 10 W for 10 s, with one-second readings and steps of one second between the levels.
    watts = (10.0,) * 10 + (100.0,) * 21 + (10.0,) * 10
    log = PowerLog(tuple(float(second) for second in range(len(watts))), watts)
    window = busiest_window(log, 20.0)
    assert (window.start_s, window.mean_w) == (10.0, 100.0)
    # Two seconds more than the plateau: one sloped second at each end, of mean 55 W.
    assert busiest_window(log, 22.0).mean_w == pytest.approx((20 * 100 + 2 * 55) / 22)
    with pytest.raises(RecordError, match="shorter than the test"):
        busiest_window(log, 60.0)


def test_a_power_log_with_a_hole_gives_no_energy() -> None:
    log = PowerLog((0.0, 1.0, 2.0, 12.0, 13.0, 20.0), (5.0, 5.0, 5.0, 5.0, 5.0, 5.0))
    with pytest.raises(RecordError, match="gap of 10 s"):
        busiest_window(log, 20.0)
    with pytest.raises(RecordError, match="line 2"):
        read_power_log("Time,03-02-2023 13:38:13.142,Watts,14.2,Volts,252.8,Mark,x\nnonsense\n")


def test_systems_in_their_own_words() -> None:
    a100 = read_system((TREE / "closed/NVIDIA/systems/A100-PCIe-80GBx1_TRT.json").read_text())
    assert (a100.unit, a100.units[0].kind, a100.units[0].hardware_model) == ("gpu0", "gpu", "NVIDIA A100 PCIe 80 GB")
    assert (a100.units[0].count, a100.units[0].memory_bytes) == (1, 80_000_000_000)
    assert a100.units[1].hardware_model == "AMD EPYC 7742 64-Core Processor"
    assert (a100.backend, a100.framework, a100.target) == ("tensorrt", "TensorRT 8.6.0, CUDA 12.0", None)
    t4 = read_system((TREE / "closed/Dell/systems/XE2420_T4x1_TRT.json").read_text())
    assert t4.units[0].hardware_model == "NVIDIA T4"
    xeon = read_system((TREE / "closed/Intel/systems/1-node-2S-SPR-PyTorch-INT8.json").read_text())
    assert (xeon.units[0].hardware_model, xeon.units[0].count) == ("Intel Xeon Platinum 8480+", 2)
    assert (xeon.unit, xeon.target, xeon.backend) == ("cpu", "cpu", "pytorch")


def test_a_boards_row_names_the_processor_that_did_the_work() -> None:
    orin = read_system((TREE / "closed/Krai/systems/orin-tflite-v2.11.0-ruy.json").read_text())
    assert [unit.kind for unit in orin.units] == ["cpu"]
    assert orin.units[0].hardware_model == "NVIDIA Jetson AGX Orin (Arm Cortex-A78AE v8.2 CPU)"
    pi = read_system((TREE / "closed/Krai/systems/rpi4-tflite-v2.11.0-ruy.json").read_text())
    assert pi.machine_model == "Raspberry Pi 4 Model B Rev 1.4"
    assert pi.units[0].memory_bytes == 8 * 2**30
    assert pi.backend == "tflite"


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '{"system_name": 3}', '{"a": ' * 2000])
def test_broken_system_descriptions_are_refused(text: str) -> None:
    with pytest.raises(RecordError):
        read_system(text)


def test_benchmark_folders() -> None:
    assert benchmark_of("resnet50").workload == "mlperf-resnet50"
    assert (benchmark_of("bert-99").workload, benchmark_of("bert-99").family) == ("mlperf-bert-99", "bert")
    mobile = benchmark_of("mobilenet-v2-precision_uint8-1.0-224")
    assert (mobile.workload, mobile.family, mobile.precision) == ("mlperf-mobilenet-v2", "mobilenet-v2", "uint8")
    assert precision_in_name("1-node-2S-SPR-PyTorch-INT8") == "int8"
    assert precision_in_name("A100-PCIe-80GBx1_TRT") is None
