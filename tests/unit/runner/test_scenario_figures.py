"""What the figures of a scenario say about themselves."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np

from harness.runner.scenario_figures import figures
from harness.runner.trial_process import Outcome


def server_trial(*rates: float, queries: int = 2000) -> Outcome:
    """Each rate answered in 1 ms plus an even spread of 1 ms, without a queue."""
    told = [
        {
            "offered_per_s": rate,
            "planned": queries,
            "answered": queries,
            "span_ns": int(queries / rate * 1e9),
            "ramp": 0,
        }
        for rate in rates
    ]
    latency = np.random.default_rng(1).integers(1_000_000, 2_000_000, queries * len(rates)).astype("<i8")
    files = {
        "stretches": "\n".join(map(json.dumps, told)).encode(),
        "server_latency_ns": latency.tobytes(),
        "server_wait_ns": np.zeros_like(latency).tobytes(),
    }
    return Outcome("ok", None, {"scenario": {"capacity_per_s": 500.0}, "throughput_per_s": 480.0}, files)


def test_the_latency_of_a_server_names_the_rate_it_belongs_to() -> None:
    made = figures("server", {"limit_ms": 5.0, "percentile": 99}, [server_trial(40.0, 63.0), server_trial(40.0, 63.0)])
    assert (made.throughput_per_s, made.latency_ms is not None) == (63.0, True)
    assert made.latency_ms is not None
    told = [quantile.method for quantile in (made.latency_ms.p50, made.latency_ms.p90, made.latency_ms.p99)]
    assert all((method or "").startswith("at 63 per s offered, floor(n p)") for method in told)
    # Without a limit it is that of the lowest rate, and what has no value has no method.
    lowest = figures("server", {"limit_ms": None}, [server_trial(40.0, 63.0, queries=100)]).latency_ms
    assert lowest is not None
    assert (lowest.p50.method or "").startswith("at 40 per s offered, ")
    assert asdict(lowest.p99) == {**asdict(lowest.p99), "value": None, "method": None}
