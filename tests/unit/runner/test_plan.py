"""From a suite and a selection to cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from harness.errors import UsageError
from harness.runner.cases import case_of
from harness.runner.plan import FIDELITY_S, Intent, Selection, expand
from harness.suites import Group, Suite
from harness.workloads.definition import Workload

KNOWN = {"onnxruntime": ("cpu", "cuda"), "openvino": ("cpu", "gpu"), "tflite": ("cpu",)}
TARGETS = {"onnxruntime": ("cpu", "cuda"), "openvino": ("cpu",)}


def workload(name: str, *scenarios: str) -> Workload:
    return Workload(name, name, name, "image_classification", name, scenarios=scenarios or ("single_stream", "offline"))


WORKLOADS: Mapping[str, Workload] = {
    "pictures": workload("pictures"),
    "stream": workload("stream", "single_stream"),
}


def suite(*groups: Group, accuracy: tuple[str, ...] = (), placement: bool = False) -> Suite:
    return Suite("mine", "1", "Mine", "0" * 64, groups, accuracy=accuracy, placement=placement)


def plan(made: Suite, selection: Selection | None = None, processors: int = 4) -> list[Intent]:
    return expand(made, WORKLOADS, selection or Selection(), KNOWN, processors)


SINGLE = Group("single_stream", ("pictures", "stream"), TARGETS)
OFFLINE = Group("offline", ("pictures", "stream"), TARGETS, batches=(1, 8))


def test_every_combination_is_one_case_and_a_repeated_one_is_not_run_twice() -> None:
    intents = plan(suite(SINGLE, SINGLE))
    assert [(i.workload.name, i.backend, i.target) for i in intents] == [
        (name, *place)
        for name in ("pictures", "stream")
        for place in (("onnxruntime", "cpu"), ("onnxruntime", "cuda"), ("openvino", "cpu"))
    ]


def test_a_stream_has_no_offline_scenario_and_says_why() -> None:
    stream = [i for i in plan(suite(OFFLINE)) if i.workload.name == "stream"]
    assert {i.status for i in stream} == {"unsupported"}
    assert all("stream allows single_stream only" in (i.reason or "") for i in stream)


def test_threads_are_counted_against_processors_on_cpu_targets_only() -> None:
    group = Group("single_stream", ("pictures",), TARGETS, threads=(1, "available", 8, "default"))
    found = [(i.target, i.threads, i.status) for i in plan(suite(group)) if i.backend == "onnxruntime"]
    assert found == [
        ("cpu", 1, None),
        ("cpu", 4, None),
        ("cpu", 8, "skipped"),
        ("cpu", None, None),
        ("cuda", None, None),
    ]


def test_threads_asked_for_by_name_are_run_even_if_too_many() -> None:
    found = plan(suite(SINGLE), Selection(threads=8, targets=("cpu",)))
    assert {(i.threads, i.status) for i in found} == {(8, None)}


def test_accuracy_is_measured_once_per_runtime_target_and_precision() -> None:
    group = Group("offline", ("pictures",), TARGETS, batches=(1, 8), precisions=("fp32", "default"))
    intents = plan(suite(SINGLE, group, accuracy=("pictures",)), Selection(backends=("openvino",)))
    measured = [(i.scenario, i.precision, i.batch) for i in intents if i.accuracy]
    assert measured == [("single_stream", "fp32", 1), ("offline", "default", 1)]


def test_the_vendor_s_default_is_no_case_of_its_own_where_it_is_certain_to_be_fp32() -> None:
    group = Group("single_stream", ("pictures",), TARGETS, precisions=("fp32", "default"))
    found = [(i.backend, i.target, i.precision) for i in plan(suite(group))]
    assert found == [
        ("onnxruntime", "cpu", "fp32"),  # its kernels compute in the file's types
        ("onnxruntime", "cuda", "fp32"),
        ("onnxruntime", "cuda", "default"),  # TF32, where the board has it
        ("openvino", "cpu", "fp32"),
        ("openvino", "cpu", "default"),  # bf16, where the processor has it
    ]
    alone = Group("single_stream", ("pictures",), {"onnxruntime": ("cpu",)}, precisions=("default",))
    assert [i.precision for i in plan(suite(alone))] == ["default"]


def test_the_server_s_limit_is_the_workload_s_unless_the_suite_says_one() -> None:
    limited = {"pictures": replace(WORKLOADS["pictures"], scenarios=("server",), latency_limit_ms=15.0)}
    group = Group("server", ("pictures",), {"openvino": ("cpu",)}, parameters=({"percentile": 99},))
    own = replace(group, parameters=({"limit_ms": 20.0, "percentile": 99},))
    (first,) = expand(suite(group), limited, Selection(), KNOWN, 4)
    (second,) = expand(suite(own), limited, Selection(), KNOWN, 4)
    assert (dict(first.parameters), dict(second.parameters)) == (
        {"limit_ms": 15.0, "percentile": 99},
        {"limit_ms": 20.0, "percentile": 99},
    )


def test_slots_parameters_and_file_precisions_are_swept() -> None:
    group = Group(
        "single_stream",
        ("pictures",),
        {"openvino": ("cpu",)},
        artifact_precisions=("fp32", "int8"),
        slots=(None, 2),
        parameters=({"a": 1}, {"a": 2}),
    )
    found = [(i.artifact_precision, i.slots, i.parameters["a"]) for i in plan(suite(group))]
    assert found == [(p, s, a) for p in ("fp32", "int8") for s in (None, 2) for a in (1, 2)]


def test_a_number_of_trials_asked_for_by_name_is_that_number() -> None:
    group = Group("single_stream", ("pictures",), {"openvino": ("cpu",)}, trials=8, max_trials=24)
    (intent,) = plan(suite(group), Selection(trials=3))
    assert (intent.group.trials, intent.group.most_trials, intent.group.fixed) == (3, 3, True)
    (longer,) = plan(suite(group))
    assert longer.longest_s - FIDELITY_S == pytest.approx(3 * (longer.expected_s - FIDELITY_S))


def test_a_case_without_parameters_keeps_the_key_it_always_had() -> None:
    (intent,) = plan(suite(Group("single_stream", ("pictures",), {"openvino": ("cpu",)})))
    assert case_of(intent, None, None).scenario_parameters == {}


def test_placement_is_looked_at_in_single_stream_only() -> None:
    intents = plan(suite(SINGLE, OFFLINE, placement=True))
    assert {i.scenario for i in intents if i.placement} == {"single_stream"}


def test_a_target_asked_for_by_name_need_not_be_the_suite_s() -> None:
    found = plan(suite(SINGLE), Selection(targets=("gpu",)))
    assert {(i.backend, i.target) for i in found} == {("openvino", "gpu")}


def test_a_backend_that_the_suite_does_not_mention_runs_on_its_first_target() -> None:
    found = plan(suite(SINGLE), Selection(backends=("tflite",)))
    assert {(i.backend, i.target) for i in found} == {("tflite", "cpu")}


def test_any_execution_provider_can_be_asked_for_by_its_own_name() -> None:
    found = plan(suite(SINGLE), Selection(backends=("onnxruntime",), targets=("XnnpackExecutionProvider",)))
    assert {i.target for i in found} == {"XnnpackExecutionProvider"}


@pytest.mark.parametrize(
    ("backend", "asked", "own"),
    [
        ("onnxruntime", "CPUExecutionProvider", "cpu"),
        ("onnxruntime", "CUDAExecutionProvider", "cuda"),
        ("tflite", "cpu_builtin", "cpu_builtin"),
        ("tflite", "delegate:libedgetpu.so.1", "delegate:libedgetpu.so.1"),
    ],
)
def test_a_target_has_one_name_whatever_it_is_asked_for_by(backend: str, asked: str, own: str) -> None:
    found = plan(suite(SINGLE), Selection(backends=(backend,), targets=(asked,)))
    assert {i.target for i in found} == {own}


@pytest.mark.parametrize("name", ["delegate:", "cpu_fast"])
def test_a_target_that_tflite_does_not_have_is_wrong_usage(name: str) -> None:
    with pytest.raises(UsageError, match="No chosen backend has a target"):
        plan(suite(SINGLE), Selection(backends=("tflite",), targets=(name,)))


def test_own_durations_and_trials_take_the_suite_s_place() -> None:
    (intent, *_) = plan(suite(SINGLE), Selection(duration_s=30, warmup_s=0, trials=7, batch=2, workloads=("pictures",)))
    group = intent.group
    assert (group.duration_s, group.warmup_s, group.trials, intent.batch) == (30, 0, 7, 2)
    assert group.limit_s >= 30


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(workloads=("picture",)), "has no workload 'picture'. Its workloads are pictures, stream."),
        (
            Selection(backends=("pytorch",)),
            "There is no backend 'pytorch'. Backends are onnxruntime, openvino, tflite.",
        ),
        (Selection(targets=("tpu",)), "No chosen backend has a target 'tpu'. Targets are onnxruntime: cpu, cuda; "),
        (Selection(backends=("tflite",), targets=("cuda",)), "No chosen backend has a target 'cuda'."),
    ],
)
def test_what_does_not_exist_is_wrong_usage_that_lists_what_does(selection: Selection, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(suite(SINGLE), selection)
    assert message in str(caught.value)


def test_the_expected_time_counts_every_trial_and_nothing_that_cannot_run() -> None:
    group = Group("single_stream", ("pictures",), {"openvino": ("cpu",)}, duration_s=10, warmup_s=2, trials=3)
    (intent,) = plan(suite(group))
    assert 36 <= intent.expected_s <= 45  # three trials of twelve seconds and their starts
    skipped = plan(suite(Group("single_stream", ("pictures",), {"openvino": ("cpu",)}, threads=(64,))))
    assert [i.expected_s for i in skipped] == [0.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"duration_s": float("inf")}, "--duration cannot be inf. It is from 0.01 to 86400."),
        ({"warmup_s": float("nan")}, "--warmup cannot be nan."),
        ({"threads": 1_000_000}, "--threads cannot be 1000000."),
        ({"batch": 10**9}, "--batch cannot be 1000000000."),
        ({"trials": 10**6}, "--trials cannot be 1000000."),
    ],
)
def test_the_command_line_has_the_limits_of_a_suite_file(change: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(suite(SINGLE), Selection(**change))  # type: ignore[arg-type]
    assert words in str(caught.value)
