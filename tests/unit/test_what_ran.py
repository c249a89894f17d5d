"""Flags of what ran beside what was asked: each with its own cause, and none without one."""

from __future__ import annotations

from typing import Any

import pytest

from harness.judgement.what_ran import chooses, flags_of, shares_in_words
from harness.records import Case, Effective, Placement


def case(target: str = "cpu", unit: str | None = "cpu", asked: str = "fp32", file: str = "fp32", **more: Any) -> Case:
    return Case("w", None, None, file, asked, "some-runtime", target, unit, "single_stream", **more)


def ran(precision: str | None = "fp32", **more: Any) -> Effective:
    return Effective(**{"target": "cpu", "compute_unit": "cpu", "precision": precision, "threads": 2, **more})


def codes(effective: Effective, asked: Case, processors: int | None = 2) -> dict[str, str]:
    return {flag.code: flag.message for flag in flags_of(effective, asked, processors)}


def test_what_ran_as_asked_has_no_flag() -> None:
    whole = Placement({"CPUExecutionProvider": 1.0}, {"CPUExecutionProvider": 1.0})
    assert codes(ran(placement=whole), case(threads=2)) == {}


@pytest.mark.parametrize("precision", ["bf16", "tf32", "fp16", "mixed"])
@pytest.mark.parametrize("asked", ["default", "fp32"])
def test_fewer_bits_than_the_file_has_are_named(asked: str, precision: str) -> None:
    found = codes(ran(precision), case(asked=asked))
    assert set(found) == {"reduced_precision"}
    assert precision in found["reduced_precision"]
    assert asked in found["reduced_precision"]


@pytest.mark.parametrize(
    ("asked", "file", "precision"),
    [
        ("bf16", "fp32", "bf16"),  # by name: that is no surprise
        ("fp32", "fp16", "fp16"),  # the file's own
        ("default", "fp16", "fp32"),  # more bits than the file has
        ("default", "fp16", "mixed"),
        ("fp32", "int8", "int8"),
        ("default", "fp32", "fp32"),
    ],
)
def test_what_the_name_or_the_file_says_is_not_reduced(asked: str, file: str, precision: str) -> None:
    assert codes(ran(precision), case(asked=asked, file=file)) == {}


def test_bf16_around_the_quantised_layers_is_named() -> None:
    told = {"layer_precisions": {"int8": 40, "bf16": 3}}
    found = codes(ran("int8", details=told), case(asked="default", file="int8"))
    assert set(found) == {"reduced_precision"}
    assert "bf16" in found["reduced_precision"]
    kept = {"layer_precisions": {"int8": 40, "fp32": 3}}
    assert codes(ran("int8", details=kept), case(asked="default", file="int8")) == {}


def test_the_time_in_each_precision_stands_in_the_message() -> None:
    told = {"time_by_precision": {"bf16": 0.961, "fp32": 0.039}}
    message = codes(ran("bf16", details=told), case(asked="default"))["reduced_precision"]
    assert "bf16 96.1 %, fp32 3.9 %" in message


def test_an_unknown_precision_is_said() -> None:
    assert set(codes(ran(None), case())) == {"precision_unknown"}


@pytest.mark.parametrize("target", ["auto", "AUTO", "all", "cpu_and_ne", "multi:gpu,cpu"])
def test_a_choosing_target_is_flagged_with_the_device_that_ran(target: str) -> None:
    assert chooses(target)
    found = codes(ran(devices=("Some Processor 9",)), case(target, None))
    assert set(found) == {"auto_target"}
    assert "Some Processor 9" in found["auto_target"]


@pytest.mark.parametrize("target", ["cpu", "cuda", "cpu_only", "delegate:auto.so"])
def test_a_named_target_chooses_nothing(target: str) -> None:
    assert not chooses(target)


def test_nodes_left_to_the_cpu_are_a_fallback_and_a_mixture_with_both_shares() -> None:
    placed = Placement({"CUDAExecutionProvider": 0.9, "CPUExecutionProvider": 0.1},
                       {"CUDAExecutionProvider": 0.25, "CPUExecutionProvider": 0.75})  # fmt: skip
    found = codes(ran(target="cuda", placement=placed), case("cuda", "gpu0"))
    assert set(found) == {"cpu_fallback", "mixed_placement"}
    assert found["cpu_fallback"] == "cuda was asked for; the CPU ran 10 % of the nodes and 75 % of the time."
    assert "by nodes CUDAExecutionProvider 90 %, CPUExecutionProvider 10 %" in found["mixed_placement"]
    assert "by time CPUExecutionProvider 75 %, CUDAExecutionProvider 25 %" in found["mixed_placement"]


def test_kernels_of_one_cpu_are_a_mixture_and_no_fallback() -> None:
    placed = Placement({"xnnpack": 2 / 3, "builtin": 1 / 3})
    found = codes(ran(placement=placed), case())
    assert set(found) == {"mixed_placement"}
    assert "xnnpack 66.7 %, builtin 33.3 %" in found["mixed_placement"]


def test_a_neural_engine_that_was_not_used_is_a_fallback() -> None:
    found = codes(ran(placement=Placement({"cpu": 1.0})), case("cpu_and_ne", "ane"))
    assert set(found) == {"auto_target", "cpu_fallback"}
    assert "100 % of the nodes" in found["cpu_fallback"]


def test_where_any_processor_may_be_chosen_the_cpu_is_no_fallback() -> None:
    assert set(codes(ran(placement=Placement({"cpu": 1.0})), case("all", None))) == {"auto_target"}
    assert set(codes(ran(placement=Placement({"CPU": 1.0})), case("auto", None))) == {"auto_target"}


def test_a_delegate_by_name_that_took_a_part_leaves_the_rest_to_the_cpu() -> None:
    placed = Placement({"delegate:libx.so": 0.3, "xnnpack": 0.5, "builtin": 0.2})
    found = codes(ran(target="delegate:libx.so", placement=placed), case("delegate:libx.so", None))
    assert set(found) == {"cpu_fallback", "mixed_placement"}
    assert "70 % of the nodes" in found["cpu_fallback"]


def test_a_provider_of_the_cpu_s_own_has_nothing_to_fall_back_from() -> None:
    placed = Placement({"XnnpackExecutionProvider": 0.8, "CPUExecutionProvider": 0.2})
    assert set(codes(ran(placement=placed), case("XnnpackExecutionProvider", None))) == {"mixed_placement"}


def test_an_allowed_fallback_that_nobody_can_see_is_said() -> None:
    found = codes(ran(target="qnn", details={"cpu_fallback": True}), case("qnn", "npu0"))
    assert set(found) == {"cpu_fallback"}


def test_threads_beside_processors_and_beside_what_was_asked() -> None:
    found = codes(ran(threads=4), case(threads=2), processors=2)
    assert found == {
        "threads_oversubscribed": "4 threads ran on 2 available processors.",
        "threads_differ": "2 threads were asked for, 4 ran.",
    }
    assert codes(ran(threads=4), case("cuda", "gpu0"), processors=2) == {}  # the host's threads only wait
    assert codes(ran(threads=4), case(), processors=None) == {}


def test_shares_are_printed_largest_first_and_a_small_one_is_not_called_zero() -> None:
    assert shares_in_words({"b": 0.0001, "a": 0.9999, "none": 0.0}) == "a 100 %, b below 0.1 %"
