"""Comparisons: which systems there are, what each has beside the baseline, what differs, and how gaps are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dashboard.grids import section_grid
from db.queries import ResultRow
from harness.errors import UsageError
from harness.judgement.comparison import Entry, compare
from harness.judgement.systems import System, default_baseline, matching, one_matching, systems_of

MakeRow = Callable[..., ResultRow]


@pytest.fixture
def imported(make_row: MakeRow) -> MakeRow:
    """A row of a published result of an A100, with the digits of MLPerf Inference v3.0."""

    def make(**changes: Any) -> ResultRow:
        given: dict[str, Any] = {
            "source_kind": "imported", "source_name": "MLPerf Inference v3.0, closed, NVIDIA", "device": "A100x1",
            "device_uuid": "u-a100", "hardware_model": "NVIDIA A100", "workload": "mlperf-resnet50",
            "workload_title": "ResNet-50 v1.5 (MLPerf)", "backend": "tensorrt", "target": "unknown", "artifact_format": None,
            "artifact_precision": "unknown", "requested_precision": "unknown", "effective_precision": None,
            "effective_threads": None, "effective_target": None, "runtime": "TensorRT", "runtime_version": "8.6.0",
            "p50_ms": 0.469708, "p90_ms": 0.476417, "p99_ms": 0.505558, "throughput_per_s": None, "boundary": "loadgen",
            "official_metric": "early_stopping_p90_latency", "official_value": 0.476438, "official_unit": "ms",
            "accuracy_metric": "top1", "accuracy_value": 0.76124, "dataset": "imagenet-val", "measurement_id": "m-a100",
        }  # fmt: skip
        return make_row(**{**given, **changes})

    return make


def system_named(rows: list[ResultRow], text: str) -> System:
    return one_matching(systems_of(rows), text)


def entry_of(rows: list[ResultRow], baseline: str, system: str, scenario: str) -> Entry:
    comparison = compare(rows, system_named(rows, baseline).id)
    section = next(section for section in comparison.sections if section.scenario == scenario)
    (entry,) = section.of(system_named(rows, system))
    return entry


def test_the_same_statistic_is_divided(make_row: MakeRow, imported: MakeRow) -> None:
    entry = entry_of([make_row(p50_ms=61.2, p90_ms=70.0), imported()], "onnxruntime", "A100", "single_stream")
    p50, p90 = entry.figure("p50"), entry.figure("p90")
    assert p50 is not None and p90 is not None
    assert p50.ratio == pytest.approx(0.469708 / 61.2)
    assert p90.ratio == pytest.approx(0.476417 / 70.0)
    assert (p50.unit, p50.better) == ("ms", "lower")


def test_a_declared_early_stopping_estimate_is_never_divided_by_a_plain_percentile(
    make_row: MakeRow, imported: MakeRow
) -> None:
    entry = entry_of([make_row(), imported()], "onnxruntime", "A100", "single_stream")
    declared = entry.figure("official")
    assert declared is not None
    assert (declared.value, declared.statistic) == (0.476438, "early-stopping p90")
    assert declared.ratio is None
    assert declared.ratio_reason == "the baseline has no early-stopping p90"
    assert any(item.field == "statistic" for item in entry.differences)


def test_two_declared_values_of_one_statistic_are_divided(imported: MakeRow) -> None:
    t4 = imported(hardware_model="NVIDIA T4", device="T4x1", device_uuid="u-t4", official_value=0.818169)
    declared = entry_of([imported(), t4], "A100", "T4", "single_stream").figure("official")
    assert declared is not None
    assert declared.ratio == pytest.approx(0.818169 / 0.476438)


def test_what_differs_is_listed_and_what_is_not_known_is_called_so(make_row: MakeRow, imported: MakeRow) -> None:
    entry = entry_of([make_row(), imported()], "onnxruntime", "A100", "single_stream")
    found = {item.field: (item.here, item.baseline) for item in entry.differences}
    assert found == {
        "weights": ("ResNet-50 v1.5 (MLPerf)", "ResNet-50, seeded weights"),
        "model format": ("not known", "onnx"),
        "precision": ("not known", "fp32"),
        "threads": ("not known", "2"),
        "runtime": ("TensorRT 8.6.0", "onnxruntime 1.32.0"),
        "timed boundary": ("loadgen", "host to host"),
        "source": ("MLPerf Inference v3.0, closed, NVIDIA", "measured here"),
        "statistic": ("declares the early-stopping p90", "plain percentiles"),
    }
    assert {item.field for item in entry.differences if not item.known} == {"model format", "precision", "threads"}


def test_the_same_system_differs_in_nothing_and_its_ratio_is_one(make_row: MakeRow) -> None:
    entry = entry_of([make_row()], "onnxruntime", "onnxruntime", "single_stream")
    assert entry.differences == ()
    assert entry.headline is not None and entry.headline.ratio == 1


def test_gaps_are_named(make_row: MakeRow, imported: MakeRow) -> None:
    rows = [
        make_row(),
        make_row(scenario="offline", p50_ms=None, p90_ms=None, p99_ms=None),
        make_row(backend="openvino"),
        make_row(backend="tflite", status="failed", reason="The worker was killed by signal 9.", p50_ms=None),
        make_row(backend="coreml", status="unsupported", reason="Core ML needs macOS.", p50_ms=None),
        imported(),
    ]

    def gap(system: str, scenario: str) -> str | None:
        return entry_of(rows, "onnxruntime", system, scenario).gap

    assert gap("openvino", "offline") == "not measured"
    assert gap("A100", "offline") == "no offline result"
    assert gap("tflite", "single_stream") == "failed: The worker was killed by signal 9."
    assert gap("coreml", "single_stream") == "unsupported: Core ML needs macOS."
    assert gap("A100", "single_stream") is None


def test_without_a_baseline_result_there_are_values_but_no_ratios(make_row: MakeRow, imported: MakeRow) -> None:
    server = imported(scenario="server", official_metric="scheduled_samples_per_second", official_value=16347.51,
                      official_unit="samples/s")  # fmt: skip
    entry = entry_of([make_row(), server], "onnxruntime", "A100", "server")
    assert entry.headline is not None
    assert (entry.headline.value, entry.headline.unit) == (16347.51, "samples/s")
    assert entry.headline.ratio is None
    assert entry.headline.ratio_reason == "the baseline has no result here"


def test_offline_is_about_throughput(make_row: MakeRow) -> None:
    rows = [
        make_row(scenario="offline", p50_ms=None, p90_ms=None, p99_ms=None, throughput_per_s=20.0),
        make_row(backend="openvino", scenario="offline", p50_ms=None, throughput_per_s=30.0),
    ]
    entry = entry_of(rows, "onnxruntime", "openvino", "offline")
    assert entry.headline is not None
    assert (entry.headline.metric, entry.headline.ratio, entry.headline.better) == ("throughput", 1.5, "higher")
    p50 = entry.figure("p50")
    assert p50 is not None
    assert (p50.value, p50.reason) == (None, "offline queue times are no latency")


def test_a_missing_percentile_says_why(make_row: MakeRow, imported: MakeRow) -> None:
    few = {"p99": {"value": None, "reason": "too few samples: 30 of at least 100"}}
    rows = [
        make_row(),
        make_row(backend="openvino", p99_ms=None, quantiles=few),
        imported(p99_ms=None, quantiles={"p99": {"value": None, "reason": None}}),
    ]
    comparison = compare(rows, system_named(rows, "onnxruntime").id)
    grid = section_grid(comparison.sections[0], comparison.baseline)
    by_system = dict(zip(grid.column("System"), grid.column("p99 (ms)"), strict=True))
    assert by_system == {
        "Acme CPU 9000, onnxruntime cpu (baseline)": "80.0",
        "Acme CPU 9000, openvino cpu": "too few samples",
        "NVIDIA A100, tensorrt": "not given",
    }


def test_energy_is_divided_only_at_one_scope_and_with_trained_weights(make_row: MakeRow) -> None:
    def ratio_of(here: dict[str, Any], baseline: dict[str, Any]) -> tuple[float | None, str | None]:
        rows = [make_row(**baseline), make_row(backend="openvino", **here)]
        energy = entry_of(rows, "onnxruntime", "openvino", "single_stream").figure("energy")
        assert energy is not None
        return energy.ratio, energy.ratio_reason

    trained = {"workload": "resnet50-zoo", "energy_scope": "wall"}
    assert ratio_of({**trained, "energy_j": 0.3}, {**trained, "energy_j": 0.6}) == (0.5, None)
    board = {**trained, "energy_scope": "gpu_board", "energy_j": 0.3}
    assert ratio_of(board, {**trained, "energy_j": 0.6}) == (None, "measured at gpu_board, the baseline at wall")
    seeded = {"energy_j": 0.3, "energy_scope": "wall"}
    assert ratio_of(seeded, seeded) == (None, "seeded weights change power")
    unknown = {"workload": "resnet50-zoo", "energy_j": 0.3}
    assert ratio_of(unknown, unknown)[0] is None


def test_energy_and_accuracy_that_were_not_measured_say_why_and_are_never_zero(make_row: MakeRow) -> None:
    rows = [make_row(energy_reason="no counter", accuracy_reason="seeded weights")]
    entry = entry_of(rows, "onnxruntime", "onnxruntime", "single_stream")
    energy, accuracy = entry.figure("energy"), entry.figure("accuracy")
    assert energy is not None and accuracy is not None
    assert (energy.value, energy.reason) == (None, "no counter")
    assert (accuracy.value, accuracy.reason) == (None, "seeded weights")


def test_accuracy_is_divided_only_for_one_metric_on_one_dataset(make_row: MakeRow, imported: MakeRow) -> None:
    here = make_row(accuracy_metric="top1", accuracy_value=0.8, dataset="stamps@1")
    other = entry_of([here, imported()], "onnxruntime", "A100", "single_stream").figure("accuracy")
    assert other is not None
    assert (other.value, other.ratio) == (pytest.approx(76.124), None)
    same = make_row(backend="openvino", accuracy_metric="top1", accuracy_value=0.4, dataset="stamps@1")
    half = entry_of([here, same], "onnxruntime", "openvino", "single_stream").figure("accuracy")
    assert half is not None and half.ratio == pytest.approx(0.5)


def test_the_newest_run_that_holds_is_shown_and_a_newer_failure_is_noted(make_row: MakeRow) -> None:
    rows = [
        make_row(ingest_sequence=1, p50_ms=50.0),
        make_row(ingest_sequence=2, p50_ms=51.0),
        make_row(ingest_sequence=3, status="failed", reason="Out of memory.", p50_ms=None, artifact_format=None),
    ]
    entry = entry_of(rows, "onnxruntime", "onnxruntime", "single_stream")
    assert entry.headline is not None and entry.headline.value == 51.0
    assert entry.note == "a newer run is failed: Out of memory."


def test_trials_that_disagree_are_said_beside_the_number(make_row: MakeRow) -> None:
    words = "The medians of 2 trials lie 80% apart."
    rows = [make_row(flags=(("trials_disagree", words), ("batch_unknown", "Not of interest here.")))]
    assert entry_of(rows, "onnxruntime", "onnxruntime", "single_stream").note == words


def test_each_batch_size_has_its_entry_beside_the_baseline_of_the_same_batch(make_row: MakeRow) -> None:
    def offline(backend: str, batch: int, rate: float) -> ResultRow:
        return make_row(backend=backend, scenario="offline", batch=batch, throughput_per_s=rate, p50_ms=None)

    rows = [offline("onnxruntime", 1, 10.0), offline("onnxruntime", 8, 40.0), offline("openvino", 8, 60.0)]
    comparison = compare(rows, system_named(rows, "onnxruntime").id)
    (section,) = comparison.sections
    assert len(section.of(comparison.baseline)) == 2
    (entry,) = section.of(system_named(rows, "openvino"))
    assert entry.headline is not None and entry.headline.ratio == 1.5
    assert not any(item.field == "batch" for item in entry.differences)


def test_another_batch_than_the_baselines_is_a_difference(make_row: MakeRow) -> None:
    rows = [
        make_row(scenario="offline", batch=1, p50_ms=None),
        make_row(backend="openvino", scenario="offline", batch=8, p50_ms=None),
        make_row(backend="tflite", scenario="offline", batch=0, p50_ms=None),  # 0: the source does not tell
    ]
    batches = {
        name: [(item.here, item.baseline) for item in entry_of(rows, "onnxruntime", name, "offline").differences
               if item.field == "batch"]
        for name in ("openvino", "tflite")
    }  # fmt: skip
    assert batches == {"openvino": [("8", "1")], "tflite": [("not known", "1")]}


def test_the_baseline_comes_first_and_the_others_in_order_of_their_figure(make_row: MakeRow, imported: MakeRow) -> None:
    rows = [
        make_row(backend="tflite", p50_ms=90.0),
        make_row(p50_ms=61.0),
        make_row(backend="openvino", p50_ms=55.0),
        imported(),
    ]
    comparison = compare(rows, system_named(rows, "tflite").id)
    (section,) = comparison.sections
    assert [entry.system.backend for entry in section.entries] == ["tflite", "tensorrt", "openvino", "onnxruntime"]


def test_a_case_that_could_not_run_belongs_to_the_only_unit_its_target_has(make_row: MakeRow) -> None:
    failed = make_row(
        scenario="offline", status="failed", reason="x", hardware_model=None, compute_unit=None, unit_count=None
    )
    assert len(systems_of([make_row(), failed])) == 1


def test_two_devices_of_one_name_stay_two_systems_with_different_ids(make_row: MakeRow) -> None:
    twins = systems_of([make_row(device_uuid="u-1"), make_row(device_uuid="u-2")])
    assert len({system.id for system in twins}) == 2
    assert len({system.label for system in twins}) == 2


def test_an_id_does_not_depend_on_what_else_is_compared(make_row: MakeRow, imported: MakeRow) -> None:
    alone = systems_of([make_row()])[0].id
    assert alone in {
        system.id for system in systems_of([imported(), make_row(device="b", device_uuid="u-9"), make_row()])
    }


def test_labels_name_weights_only_where_they_tell_systems_apart(make_row: MakeRow) -> None:
    assert systems_of([make_row()])[0].label == "Acme CPU 9000, onnxruntime cpu"
    zoo = make_row(workload="resnet50-zoo", workload_title="ResNet-50, zoo weights")
    assert {system.label for system in systems_of([make_row(), zoo])} == {
        "Acme CPU 9000, onnxruntime cpu, ResNet-50, seeded weights",
        "Acme CPU 9000, onnxruntime cpu, ResNet-50, zoo weights",
    }


def test_several_units_are_counted_in_the_name(imported: MakeRow) -> None:
    assert systems_of([imported(unit_count=2)])[0].hardware == "2 x NVIDIA A100"


def test_the_default_baseline_is_measured_here_with_the_most_results(make_row: MakeRow, imported: MakeRow) -> None:
    rows = [imported(), imported(scenario="offline"), make_row(), make_row(backend="openvino"),
            make_row(backend="openvino", scenario="offline")]  # fmt: skip
    chosen = default_baseline(rows)
    assert chosen is not None and chosen.backend == "openvino"
    assert default_baseline([]) is None


def test_words_name_systems(make_row: MakeRow, imported: MakeRow) -> None:
    systems = systems_of([make_row(), make_row(backend="openvino"), imported()])
    assert [system.backend for system in matching(systems, "acme OPENVINO")] == ["openvino"]
    assert {system.backend for system in matching(systems, "bench-1")} == {"onnxruntime", "openvino"}
    assert matching(systems, "") == ()
    assert one_matching(systems, systems[0].id) == systems[0]


def test_words_that_name_several_or_none_are_refused_with_the_choices(make_row: MakeRow) -> None:
    systems = systems_of([make_row(), make_row(backend="openvino")])
    with pytest.raises(UsageError, match=r"names 2 systems.*onnxruntime cpu; .*openvino cpu"):
        one_matching(systems, "bench-1")
    with pytest.raises(UsageError, match=r"No system.*'tpu'.*onnxruntime cpu"):
        one_matching(systems, "tpu")
    with pytest.raises(UsageError, match="No system 'gone'"):
        compare([make_row()], "gone")


def test_chosen_systems_limit_what_stands_beside_the_baseline(make_row: MakeRow, imported: MakeRow) -> None:
    rows = [make_row(), make_row(backend="openvino"), imported()]
    comparison = compare(rows, system_named(rows, "onnxruntime").id, [system_named(rows, "A100").id])
    assert [system.backend for system in comparison.systems] == ["onnxruntime", "tensorrt"]


def test_nothing_is_judged(make_row: MakeRow, imported: MakeRow) -> None:
    comparison = compare([make_row(), imported()], system_named([make_row(), imported()], "onnxruntime").id)
    assert not {"winner", "better than", "best", "faster"} & set(str(comparison).casefold().split())
