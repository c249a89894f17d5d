"""The same simulations through all that a run does: rounds, steady state, looks, budget, the figures of the record.

Each repetition is a case of its own in one run, so that rounds and the budget work as they do for a suite. No process is
started: outcomes are drawn from a law of latencies, with a factor for each process and a start that is slow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from harness.records import Artifact, Measurement, Source
from harness.runner.cases import PlannedCase, PlannedTrial, case_of
from harness.runner.measurements import assemble
from harness.runner.plan import Intent
from harness.runner.rounds import Rounds
from harness.runner.trial_process import Outcome
from harness.suites import Group
from harness.worker.job import Job
from harness.workloads.definition import Workload

Floats = npt.NDArray[np.float64]
Law = Callable[[np.random.Generator, int], Floats]

SAMPLES = 300
CASES = 200
LEAST_COVERAGE = 0.93


def skewed(rng: np.random.Generator, count: int) -> Floats:
    return rng.lognormal(0.0, 0.8, count)


def bimodal(rng: np.random.Generator, count: int) -> Floats:
    return np.where(rng.random(count) < 0.3, 2.0, 1.0) * rng.lognormal(0.0, 0.1, count)


def autocorrelated(rng: np.random.Generator, count: int) -> Floats:
    noise = rng.normal(0.0, 0.5 * np.sqrt(1 - 0.64), count)
    for index in range(1, count):
        noise[index] += 0.8 * noise[index - 1]
    return np.exp(noise)


LAWS: dict[str, Law] = {"skewed": skewed, "bimodal": bimodal, "autocorrelated": autocorrelated}


def process(law: Law, rng: np.random.Generator, start: int = 0) -> Floats:
    """Milliseconds of one fresh process: slower or faster as a whole, and three times as slow for `start` queries."""
    samples = law(rng, SAMPLES + start) * rng.lognormal(0.0, 0.05)
    samples[:start] *= 3
    return samples


def case(name: str, half_width: float) -> PlannedCase:
    group = Group("single_stream", (name,), {}, trials=8, max_trials=24, half_width=half_width)
    workload = Workload(name, name, name, "image_classification", name)
    intent = Intent(workload, "onnxruntime", "cpu", "single_stream", "fp32", "fp32", 1, 1, None, 0, group)
    jobs = [Job(trial_id="", kind="timing", backend="onnxruntime", out_dir="", timeout_s=1)] * group.most_trials
    trials = tuple(PlannedTrial(f"{name}-{n}", job) for n, job in enumerate(jobs))
    return PlannedCase(intent, case_of(intent, None, None), name, Artifact("onnx", "fp32", "a" * 64, 1, "m"), trials)


def outcome(samples: Floats) -> Outcome:
    document = {
        "throughput_per_s": 1000 / float(samples.mean()),
        "window_start_ns": 0,
        "window_end_ns": int(samples.sum() * 1e6),
        "report": {"target": "cpu", "precision": "fp32", "threads": 1},
        "python": "3",
    }
    return Outcome("ok", None, document, {"latency_ns": (samples * 1e6).astype("<i8").tobytes()}, elapsed_s=1.0)


def run(law: Law, seed: int, half_width: float, budget_s: float, start: int) -> list[Measurement]:
    rng = np.random.default_rng(seed)
    cases = [case(f"w{number}", half_width) for number in range(CASES)]
    finished: dict[str, list[tuple[PlannedTrial, Outcome]]] = {one.measurement_id: [] for one in cases}
    rounds = Rounds(cases, seed, budget_s)
    for one, trial in rounds:
        drawn = outcome(process(law, rng, start))
        rounds.record(one, trial, drawn)
        finished[one.measurement_id].append((trial, drawn))
    source = Source("measured", "weighbridge", "0")
    return [assemble(one, finished[one.measurement_id], None, 1, source).measurement for one in cases]


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, 60])
@pytest.mark.parametrize("name", LAWS)
def test_the_record_s_intervals_cover_with_rounds_looks_and_budget_in_force(name: str, start: int) -> None:
    law = LAWS[name]
    many = np.random.default_rng(99)
    rank = SAMPLES // 2
    each = np.array([np.partition(process(law, many), rank)[rank] for _ in range(4000)])
    truth, scatter = float(np.median(each)), float(each.std() / np.median(each))
    # Wide enough to be reached by some at each look, and a budget that ends the rest between two looks.
    measurements = run(law, 7, 1.1 * scatter, CASES * 14.0, start)
    covered, stops = 0, Counter[tuple[int, str]]()
    for measurement in measurements:
        latency, sampling = measurement.latency_ms, measurement.sampling
        assert latency is not None and sampling is not None
        assert latency.p50.low is not None and latency.p50.high is not None and latency.p50.value is not None
        assert latency.p50.low <= latency.p50.value <= latency.p50.high
        covered += latency.p50.low <= truth <= latency.p50.high
        farther = max(latency.p50.high - latency.p50.value, latency.p50.value - latency.p50.low)
        assert sampling.reached_half_width == pytest.approx(farther / latency.p50.value, rel=1e-9)
        stops[sampling.trials, sampling.stopped] += 1
        assert (sampling.stopped == "narrow_enough") == ("not_narrow" not in {flag.code for flag in measurement.flags})
    print(f"\nas wired: {name}, start {start}: {covered / CASES:.3f} {dict(stops)}")
    assert len(stops) >= 3 and {why for _, why in stops} == {"narrow_enough", "budget_spent"}
    assert covered / CASES >= LEAST_COVERAGE
