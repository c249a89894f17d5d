"""One suite with every scenario, as a user writes it: each becomes a measurement with the figures it stands for, stored."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.documents import read_run

Weigh = Callable[..., "subprocess.CompletedProcess[str]"]

HEAD = 'name = "all"\nversion = "1"\ntargets = { onnxruntime = ["cpu"] }\n'
GROUPS = {
    "single_stream": "trials = 6",
    "offline": "slots = [1, 2]",
    "multi_stream": "samples_per_query = [2, 8]",
    "server": "limit_ms = [1000]\nduration_s = 2",
    "duty_cycle": "period_s = 0.02",
    "sustained": "duration_s = 2",
    "cold_start": 'file_cache = ["warm", "cold"]\ntrials = 2',
}
OWN = '[[workload]]\nname = "tiny"\ntask = "random_inputs"\nmodel = { path = "tiny.onnx", format = "onnx" }\n'


def suite() -> str:
    tables = []
    for scenario, own in GROUPS.items():
        duration = "" if "duration_s" in own else "duration_s = 0.4\n"
        common = f'workloads = ["tiny"]\nthreads = [1]\nwarmup_s = 0.02\nmin_queries = 10\n{duration}'
        tables.append(f'[[measure]]\nscenario = "{scenario}"\n{common}{own}\n')
    return HEAD + "".join(tables) + OWN


@pytest.mark.slow
def test_every_scenario_becomes_a_measurement_that_is_stored(weigh: Weigh, tiny_onnx: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.onnx").write_bytes(tiny_onnx.read_bytes())
    (tmp_path / "all.toml").write_text(suite())
    result = weigh("run", str(tmp_path / "all.toml"), "--json", str(tmp_path / "run.json"), "--quiet")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""  # --quiet
    run = read_run((tmp_path / "run.json").read_bytes())
    found = {(m.case.scenario, m.case.streams, json.dumps(m.case.scenario_parameters)): m for m in run.measurements}
    assert len(found) == len(run.measurements) == 10
    assert {m.status for m in run.measurements} == {"ok"}, [m.reason for m in run.measurements]
    assert {m.case.scenario for m in run.measurements} == set(GROUPS)
    for measurement in run.measurements:
        scenario, latency = measurement.case.scenario, measurement.latency_ms
        kinds = {trial.kind for trial in measurement.trials} - {"fidelity"}  # once for all cases of a file
        assert kinds == {"cold" if scenario == "cold_start" else "timing"}
        assert measurement.sampling is not None and measurement.sampling.stopped == "fixed"
        assert measurement.cold_start_ms is not None and measurement.cold_start_ms.first_inference is not None
        assert all(trial.conditions for trial in measurement.trials)
        assert (latency is not None) == (scenario not in ("offline", "cold_start"))
        if scenario in ("single_stream", "offline", "multi_stream", "sustained"):
            assert measurement.throughput_per_s is not None and measurement.throughput_per_s > 0
        assert (measurement.rate_curve is not None) == (scenario == "server")
        assert (measurement.over_time is not None) == (scenario == "sustained")
    (single,) = [m for m in run.measurements if m.case.scenario == "single_stream"]
    assert single.latency_ms is not None and single.latency_ms.p50.low is not None
    assert "95 % interval of the median over 6 trials, 1 unit measured" in (single.latency_ms.p50.method or "")
    (curve,) = [m.rate_curve for m in run.measurements if m.rate_curve is not None]
    assert curve.limit_ms == 1000 and curve.points
    listed = json.loads(weigh("results", "--json").stdout)
    assert len(listed) == 10
