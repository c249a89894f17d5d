"""From a case's outcomes to its measurement: status, figures, flags, blobs."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.artifacts import ModelFile, Port
from harness.records import Accuracy, Artifact, Source
from harness.runner.cases import PlannedCase, PlannedTrial, case_of
from harness.runner.measurements import Assembled, assemble
from harness.runner.plan import Intent
from harness.runner.qualities import Quality
from harness.runner.rounds import Finished, wants_more
from harness.runner.sampling import sampled
from harness.runner.target_figures import target_figure
from harness.runner.trial_process import Outcome
from harness.suites import Group
from harness.worker.job import Job
from harness.workloads.definition import Workload

SOURCE = Source("measured", "weighbridge", "0.1.0")
ARTIFACT = Artifact("onnx", "fp32", "a" * 64, 10, "m.onnx", source_sha256="b" * 64)
MODEL = ModelFile(ARTIFACT, None, (Port("image", "x", "float32", (0, 3, 4, 4)),), ())  # type: ignore[arg-type]


def planned(scenario: str = "single_stream", trials: int = 2, precision: str = "fp32", threads: int = 2) -> PlannedCase:
    group = Group(scenario, ("w",), {"onnxruntime": ("cpu",)}, trials=trials)
    workload = Workload("w", "Title", "family", "image_classification", "w")
    intent = Intent(workload, "onnxruntime", "cpu", scenario, precision, "fp32", 1, threads, None, 0, group)
    jobs = [Job(trial_id=f"t{n}", kind="timing", backend="onnxruntime", out_dir="", timeout_s=1) for n in range(trials)]
    case = case_of(intent, MODEL, "data@1")
    return PlannedCase(
        intent,
        case,
        "00000000-0000-0000-0000-000000000009",
        ARTIFACT,
        tuple(PlannedTrial(f"k{n}", job) for n, job in enumerate(jobs)),
        energy_reason="Not measured: no meter.",
    )


def good(milliseconds: list[float], throughput: float = 100.0, what: str = "latency_ns", **report: Any) -> Outcome:
    told = {"target": "cpu", "precision": "fp32", "threads": 2, "runtime": "onnxruntime", "runtime_version": "1.32.0"}
    data = np.array([round(value * 1e6) for value in milliseconds], dtype="<i8").tobytes()
    document = {
        "window_start_ns": 1,
        "window_end_ns": 1 + int(sum(milliseconds) * 1e6),
        "discarded_warmup": 3,
        "throughput_per_s": throughput,
        "cold_start_ms": {"process": 80.0},
        "report": {**told, **report},
        "peak_rss_bytes": 100_000_000,
        "python": "3.11.7",
    }
    return Outcome("ok", None, document, {what: data})


def joined(
    case: PlannedCase, *outcomes: Outcome, accuracy: Accuracy | None = None, interrupted: bool = False
) -> Assembled:
    return assemble(case, list(zip(case.trials, outcomes, strict=False)), Quality(accuracy), 2, SOURCE, interrupted)


def test_figures_of_all_trials_and_raw_samples_beside() -> None:
    made = joined(planned(), good([1, 2, 3], 100.0), good([2, 3, 4], 300.0))
    measurement = made.measurement
    assert measurement.status == "ok", measurement.reason
    assert measurement.latency_ms is not None
    assert (measurement.latency_ms.count, measurement.latency_ms.mean) == (6, 2.5)
    assert measurement.throughput_per_s == 200.0  # the median of the trials
    assert measurement.memory_mb is not None
    assert measurement.memory_mb.peak_rss == 100.0
    assert measurement.cold_start_ms is not None
    assert (measurement.cold_start_ms.process, measurement.cold_start_ms.load) == (80.0, None)
    assert measurement.energy is not None
    assert (measurement.energy.per_inference_j, measurement.energy.reason) == (None, "Not measured: no meter.")
    assert measurement.case.input_size == "1x3x4x4"
    (blob,) = measurement.trials[0].samples
    assert (blob.what, blob.count, blob.bytes) == ("latency_ns", 3, len(made.blobs[blob.sha256]))
    raw = zlib.decompress(made.blobs[blob.sha256])
    assert np.frombuffer(raw, "<i8").tolist() == [1_000_000, 2_000_000, 3_000_000]
    assert {flag.code for flag in measurement.flags} == {"trials_disagree"}  # 2 and 3 lie 40 % apart


def test_offline_has_throughput_and_no_latency() -> None:
    measurement = joined(planned("offline", 1), good([5, 6], 42.0, what="query_ns")).measurement
    assert measurement.status == "ok", measurement.reason
    assert (measurement.latency_ms, measurement.throughput_per_s, measurement.stages_ms) == (None, 42.0, None)


@pytest.mark.parametrize(
    ("case", "report", "reason"),
    [
        (planned(), {"precision": "bf16"}, "Not valid: fp32 was asked for, but bf16 is what ran."),
        (planned(), {"target": "other"}, "Not valid: "),
        (planned(precision="bf16"), {}, "Not valid: bf16 was asked for, but fp32 is what ran."),
    ],
)
def test_what_ran_otherwise_than_asked_is_invalid(case: PlannedCase, report: dict[str, str], reason: str) -> None:
    measurement = joined(case, good([1, 2], **report), good([1, 2], **report)).measurement
    assert measurement.status == "invalid"
    assert (measurement.reason or "").startswith(reason)


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ({"target": "gpu"}, "target cpu and gpu"),
        ({"precision": "bf16"}, "precision fp32 and bf16"),
        ({"precision": None}, "precision fp32 and unknown"),
        ({"devices": ["NVIDIA T4"]}, "devices unknown and NVIDIA T4"),
    ],
)
def test_trials_that_ran_otherwise_than_each_other_make_no_number(report: dict[str, Any], words: str) -> None:
    measurement = joined(planned(), good([1, 2]), good([1, 2], **report)).measurement
    assert measurement.status == "invalid"
    assert words in (measurement.reason or "")
    assert (measurement.latency_ms, measurement.throughput_per_s) == (None, None)


def test_the_vendor_s_own_choice_may_be_any_precision() -> None:
    measurement = joined(
        planned(precision="default"), good([1], precision="bf16"), good([1], precision="bf16")
    ).measurement
    assert measurement.status == "ok"
    assert measurement.effective is not None
    assert (measurement.effective.precision, measurement.case.requested_precision) == ("bf16", "default")


def test_one_failed_trial_takes_the_figures_with_it() -> None:
    crash = Outcome("failed", "The worker was killed by SIGKILL (out of memory?).", last_words="oops")
    measurement = joined(planned(), good([1, 2]), crash).measurement
    assert measurement.status == "failed"
    assert measurement.reason == "1 of 2 timing trials failed: The worker was killed by SIGKILL (out of memory?)."
    assert measurement.latency_ms is None
    assert measurement.throughput_per_s is None
    assert [trial.status for trial in measurement.trials] == ["ok", "failed"]
    assert measurement.trials[1].last_words == "oops"


def test_unsupported_known_only_by_the_worker_stays_unsupported() -> None:
    outcome = Outcome("unsupported", "There is no such option.")
    assert joined(planned(trials=1), outcome).measurement.status == "unsupported"


def test_an_interrupted_case_keeps_what_it_has_and_says_so() -> None:
    measurement = joined(planned(trials=3), good([1, 1]), interrupted=True).measurement
    assert measurement.status == "ok"
    assert [flag.message for flag in measurement.flags if flag.code == "fewer_trials"] == [
        "1 of 3 timing trials ended before the run was interrupted."
    ]
    assert joined(planned(trials=3)).measurement.status == "skipped"


def test_flags_tell_what_a_reader_must_know() -> None:
    placement = {"CPUExecutionProvider": 0.4, "XnnpackExecutionProvider": 0.6}
    outcome = replace(good([1] * 6, threads=4, precision=None, placement_nodes=placement), notes=("It ended badly.",))
    measurement = joined(replace(planned(trials=1), input_note="Inputs are random."), outcome).measurement
    messages = {flag.code: flag.message for flag in measurement.flags}
    assert set(messages) == {
        "precision_unknown", "threads_oversubscribed", "threads_differ", "mixed_placement", "random_inputs",
        "worker_ended_badly",
    }  # fmt: skip
    assert messages["threads_oversubscribed"] == "4 threads ran on 2 available processors."
    assert messages["threads_differ"] == "2 threads were asked for, 4 ran."
    assert "XnnpackExecutionProvider 60 %" in messages["mixed_placement"]


def test_a_case_that_cannot_run_has_its_reason_and_nothing_else() -> None:
    case = replace(planned(trials=0), status="unsupported", reason="No GPU here.")
    measurement = joined(case).measurement
    assert (measurement.status, measurement.reason) == ("unsupported", "No GPU here.")
    assert measurement.effective is None
    assert measurement.trials == ()


def settling(seed: int, slow: int, count: int = 1000) -> list[float]:
    """Milliseconds: `slow` queries of about 5, then about 1, each a little off."""
    noise = np.random.default_rng(seed).normal(1, 0.01, count)
    return list(np.where(np.arange(count) < slow, 5.0, 1.0) * noise)


def test_what_had_not_settled_is_left_out_of_every_figure_and_kept_as_samples() -> None:
    case = planned(trials=2)
    measurement = joined(case, good(settling(1, 200)), good(settling(2, 200))).measurement
    assert measurement.status == "ok", measurement.reason
    out = [trial.discarded_unsteady or 0 for trial in measurement.trials]
    assert all(200 <= count <= 300 for count in out)  # all slow ones, and hardly more
    assert [trial.samples[0].count for trial in measurement.trials] == [1000, 1000]
    assert measurement.latency_ms is not None
    assert measurement.latency_ms.count == 2000 - sum(out)
    assert measurement.latency_ms.max is not None and measurement.latency_ms.max < 2  # none of the slow ones is in it
    assert measurement.latency_ms.p99.value is not None and measurement.latency_ms.p99.value < 1.1
    assert measurement.throughput_per_s is not None
    # The slow ones took 1.0 s and the others 0.8 s, so 100 per second in the whole window are 180 in the steady part.
    assert measurement.throughput_per_s == pytest.approx(180, rel=0.01)
    (flag,) = [flag for flag in measurement.flags if flag.code == "slow_start"]
    assert "2 of 2 trials started slowly: about 2" in flag.message  # 20 to 29 %


def test_a_trial_that_never_settles_says_so_and_nothing_is_left_out() -> None:
    rising = list(np.linspace(1, 3, 1000) * np.random.default_rng(3).normal(1, 0.01, 1000))
    measurement = joined(planned(trials=1), good(rising)).measurement
    (trial,) = measurement.trials
    assert trial.discarded_unsteady is None
    assert "no steady state" in (trial.unsteady_reason or "")
    assert measurement.latency_ms is not None and measurement.latency_ms.count == 1000
    assert "not_steady" in {flag.code for flag in measurement.flags}


def test_too_few_samples_to_judge_are_no_flag_but_said_beside_the_trial() -> None:
    measurement = joined(planned(trials=1), good([1.0] * 20)).measurement
    assert "too few to tell" in (measurement.trials[0].unsteady_reason or "")
    assert not {"not_steady", "slow_start"} & {flag.code for flag in measurement.flags}


def adaptive(least: int, most: int) -> PlannedCase:
    """A case whose trials were planned up to `most`; what came of them is up to the caller."""
    case = planned(trials=most)
    group = replace(case.intent.group, trials=least, max_trials=most)
    return replace(case, intent=replace(case.intent, group=group))


def test_sampling_says_how_often_why_and_how_sure() -> None:
    outcomes = [good([10 + 0.01 * number] * 8) for number in range(8)]
    measurement = joined(adaptive(8, 24), *outcomes).measurement
    sampling, latency = measurement.sampling, measurement.latency_ms
    assert sampling is not None and latency is not None
    assert (sampling.trials, sampling.figure, sampling.stopped) == (8, "p50", "narrow_enough")
    assert (sampling.looks, sampling.asked_half_width) == ((8, 12, 16, 24), 0.05)
    # By hand: the middle of 10.00 to 10.07 is 10.035, and at a quarter of the error the interval of eight is all of them.
    assert (latency.p50.value, latency.p50.low, latency.p50.high) == (10.035, 10.0, 10.07)
    assert sampling.reached_half_width == pytest.approx(0.035 / 10.035)
    assert "1 unit measured" in sampling.sentence.lower()
    assert "98.75 % at this look" in (latency.p50.method or "")
    assert "not_narrow" not in {flag.code for flag in measurement.flags}


# By hand, of 1, 2, 3, 9: LoadGen's median is the one at index floor(4 / 2), 3; centred, it is the one at one-based place
# 0.5 (4 + 1/3) + 1/3 = 2.5, so 2.5. So bounds over such trials lie below their value, and not around it.
SHORT = [1.0, 2.0, 3.0, 9.0]


def test_what_is_decided_is_the_interval_that_the_record_shows() -> None:
    measurement = joined(adaptive(8, 24), *(good([part * 10 for part in SHORT]) for _ in range(24))).measurement
    sampling, latency = measurement.sampling, measurement.latency_ms
    assert sampling is not None and latency is not None
    assert (latency.p50.value, latency.p50.low, latency.p50.high) == (30, 25, 30)
    assert sampling.reached_half_width == pytest.approx(5 / 30)
    assert sampling.stopped == "budget_spent"  # all trials alike, yet no truth is known within 5 % of 30
    assert wants_more(adaptive(8, 24).intent.group, [done([part * 10 for part in SHORT])] * 8)
    assert not wants_more(adaptive(8, 24).intent.group, [done([10.0] * 4)] * 8)


def done(milliseconds: list[float]) -> Finished:
    return Finished(True, target_figure("single_stream", good(milliseconds)), 1.0)


@pytest.mark.parametrize("scenario", ["single_stream", "multi_stream", "sustained", "duty_cycle", "offline"])
@pytest.mark.parametrize("trials", [3, 6, 9])
def test_the_width_told_is_the_width_shown(scenario: str, trials: int) -> None:
    random = np.random.default_rng(trials)
    paces = random.lognormal(0.0, 0.1, trials)
    outcomes = [slow_or_fast(list(random.lognormal(0.0, 0.8, 9) * pace), 100 / pace) for pace in paces]
    measurement = joined(planned(scenario, trials), *outcomes).measurement
    sampling, latency = measurement.sampling, measurement.latency_ms
    shown = measurement.throughput if scenario == "offline" else latency.p50 if latency is not None else None
    assert sampling is not None and shown is not None and shown.value is not None
    if trials < 6:
        assert sampling.reached_half_width is None
        return
    assert shown.low is not None and shown.high is not None
    farther = max(shown.value - shown.low, shown.high - shown.value)
    assert sampling.reached_half_width == pytest.approx(farther / shown.value, rel=1e-12)


def slow_or_fast(milliseconds: list[float], per_s: float) -> Outcome:
    """A trial with all that any scenario's figures ask for."""
    made = good(milliseconds, per_s)
    files = dict.fromkeys(("latency_ns", "query_ns", "back_to_back_ns", "late_ns"), made.files["latency_ns"])
    starts = np.cumsum([round(value * 1e6) for value in milliseconds]).astype("<i8").tobytes()
    return replace(made, document={**made.document, "scenario": {"every": 1}}, files={**files, "started_ns": starts})


def test_trials_too_short_for_a_median_of_their_own_are_never_narrow_enough() -> None:
    measurement = joined(adaptive(8, 24), *(good([1.0, 1.0]) for _ in range(24))).measurement
    sampling, latency = measurement.sampling, measurement.latency_ms
    assert sampling is not None and latency is not None
    assert (latency.p50.value, latency.p50.low) == (1, None)
    assert (sampling.stopped, sampling.reached_half_width) == ("budget_spent", None)


def test_a_budget_that_ended_it_leaves_a_wide_interval_with_its_reason() -> None:
    outcomes = [good([10.0 * (1 + number % 4)] * 8) for number in range(9)]
    measurement = joined(adaptive(8, 24), *outcomes).measurement
    assert measurement.sampling is not None
    assert measurement.sampling.stopped == "budget_spent"
    (flag,) = [flag for flag in measurement.flags if flag.code == "not_narrow"]
    assert "5.0% was asked for; the budget is spent" in flag.message
    broken_off = joined(adaptive(8, 24), *outcomes, interrupted=True).measurement
    assert broken_off.sampling is not None
    assert broken_off.sampling.stopped == "interrupted"
    assert "the run was interrupted" in broken_off.sampling.sentence


def test_a_fixed_number_asks_for_no_width() -> None:
    measurement = joined(planned(trials=2), good([1] * 8), good([1] * 8)).measurement
    sampling = measurement.sampling
    assert sampling is not None
    assert (sampling.stopped, sampling.asked_half_width, sampling.reached_half_width) == ("fixed", None, None)
    assert "they give a range, no interval" in sampling.sentence
    assert "not_narrow" not in {flag.code for flag in measurement.flags}


def test_throughput_of_offline_has_its_interval_over_trials() -> None:
    case = planned("offline", 9)
    measurement = joined(case, *(good([1], 100.0 + n, what="query_ns") for n in range(9))).measurement
    assert measurement.throughput is not None
    assert (measurement.throughput_per_s, measurement.throughput.low, measurement.throughput.high) == (104, 101, 107)
    assert measurement.sampling is not None and measurement.sampling.figure == "throughput"


def test_the_trials_of_a_curve_are_counted_though_they_have_no_one_figure() -> None:
    group = replace(planned().intent.group, trials=3)
    found = sampled(group, "p99", [None, None, None], interrupted=False)
    assert found is not None
    assert (found.sampling.trials, found.sampling.stopped, found.flags) == (3, "fixed", ())
    assert found.sampling.sentence == "p99: 3 trials, a number that was fixed beforehand. 1 unit measured."
