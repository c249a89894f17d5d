"""Knee and cliff of a sweep, from measurements as a run has them."""

from __future__ import annotations

from typing import Any

from harness.judgement.sweeps import sweeps_of
from harness.records import Case, Latency, Measurement, Quantile

INTERVAL = "95 % interval of the median over 6 trials, 1 unit measured"
RANGE = "median, range of 2 trials, 1 unit measured"


def measurement(
    rate: float | None, *, spread: float | None = 0.01, method: str = INTERVAL, p50: float | None = None, **case: Any
) -> Measurement:
    asked = Case(
        **{
            "workload": "w", "dataset": None, "source_weights": None, "artifact_precision": "fp32",
            "requested_precision": "fp32", "backend": "openvino", "target": "cpu", "compute_unit": "cpu",
            "scenario": "offline", "batch": 1, **case,
        }
    )  # fmt: skip
    found = None if rate is None or spread is None else Quantile(rate, rate * (1 - spread), rate * (1 + spread), method)
    none = Quantile(None)
    latency = None if p50 is None else Latency(1, p50, p50, p50, Quantile(p50), none, none, none, none)
    name = f"{asked.batch}-{asked.streams}-{asked.threads}"
    status = "ok" if rate is not None else "failed"
    return Measurement(name, asked, asked.key, status, throughput_per_s=rate, throughput=found, latency_ms=latency)


def test_the_knee_is_the_smallest_batch_near_the_best() -> None:
    rates = {1: 100.0, 2: 180.0, 4: 192.0, 8: 200.0}
    runs = [measurement(rate, batch=batch, input_size=f"{batch}x3x8x8") for batch, rate in rates.items()]
    (sweep,) = sweeps_of(reversed(runs))
    assert sweep.axis == "batch"
    assert [point.setting for point in sweep.points] == [1, 2, 4, 8]
    assert (sweep.knee, sweep.best, sweep.at_edge, sweep.cliffs) == (4, 8, True, ())
    assert sweep.sentence == "Batch 1, 2, 4, 8: the knee is at 4, 192 per second, 96% of the best, which 8 gives."
    assert sweep.case.batch == 4


def test_a_rise_to_the_end_says_that_the_end_was_not_seen() -> None:
    (sweep,) = sweeps_of([measurement(100.0 * batch, batch=batch) for batch in (1, 2, 4)])
    assert sweep.knee == sweep.best == 4
    assert "it still rises at the end of what was tried" in sweep.sentence


def test_more_threads_than_cores_are_a_cliff() -> None:
    runs = [measurement(rate, threads=threads) for threads, rate in ((1, 50.0), (2, 95.0), (4, 60.0))]
    (sweep,) = sweeps_of(runs)
    (cliff,) = sweep.cliffs
    assert (cliff.before, cliff.after, round(cliff.fall, 2)) == (2, 4, 0.37)
    assert cliff.sentence.startswith("From threads 2 to 4 throughput falls by 37%, from 95 to 60 per second")
    assert cliff.sentence in sweep.sentence


def test_what_the_intervals_allow_is_no_cliff() -> None:
    runs = [measurement(rate, spread=0.1, streams=slots) for slots, rate in ((1, 50.0), (2, 95.0), (4, 85.0))]
    (sweep,) = sweeps_of(runs)
    assert sweep.cliffs == ()


def test_without_an_interval_a_fall_must_be_plain() -> None:
    small = [measurement(rate, spread=0.01, method=RANGE, batch=b) for b, rate in ((1, 50.0), (2, 95.0), (4, 88.0))]
    plain = [measurement(rate, spread=None, batch=b) for b, rate in ((1, 50.0), (2, 95.0), (4, 70.0))]
    assert sweeps_of(small)[0].cliffs == ()
    (cliff,) = sweeps_of(plain)[0].cliffs
    assert "of single trials" in cliff.sentence


def test_only_what_differs_in_nothing_else_is_one_sweep() -> None:
    runs = [measurement(100.0 * batch, batch=batch, backend=b) for batch in (1, 2, 4) for b in ("openvino", "tflite")]
    runs += [measurement(10.0, batch=8, threads=2), measurement(None, batch=16), measurement(20.0, threads=4)]
    found = sweeps_of(runs)
    assert [(sweep.axis, sweep.case.backend, len(sweep.points)) for sweep in found] == [
        ("batch", "openvino", 3),
        ("batch", "tflite", 3),
    ]
    assert sweeps_of([measurement(1.0, batch=1), measurement(2.0, batch=2)]) == ()


def test_the_latency_that_the_knee_spares_is_told() -> None:
    rows = ((1, 100.0, 10.0), (4, 196.0, 20.4), (8, 200.0, 40.0))
    (sweep,) = sweeps_of([measurement(r, batch=b, p50=p, scenario="single_stream") for b, r, p in rows])
    assert sweep.knee == 4
    assert "p50 20.4 instead of 40 ms" in sweep.sentence
