"""Runs over SSH: real OpenSSH servers on loopback, real `weigh` processes on both sides."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import func, select

from db.schema import Dispatch, Run
from db.store import open_store


@pytest.fixture
def store(tmp_path: Path, monkeypatch) -> str:
    url = f"sqlite:///{tmp_path / 'control.sqlite'}"
    monkeypatch.setenv("WEIGHBRIDGE_STORE", url)
    return url


def runs(store: str) -> list[str]:
    with open_store(store).engine.connect() as connection:
        return list(connection.scalars(select(Run.run_id)))


def states(store: str) -> list[str]:
    with open_store(store).engine.connect() as connection:
        return list(connection.scalars(select(Dispatch.state).order_by(Dispatch.id)))


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)


def test_a_run_over_ssh_comes_home(enrolled, weigh, store) -> None:
    device = enrolled("pi5")
    done = weigh("fleet", "run", "quick", "--on", "pi5", "--poll", "0.1", "--no-sync", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["device"], row["state"]) == ("pi5", "INGESTED")
    assert runs(store) == [row["run_id"]]
    assert not any((device.folder / "runs").iterdir())  # removed, after it was stored
    assert "Traceback" not in done.stderr


def test_a_dispatcher_killed_after_launch_loses_nothing(enrolled, weigh, store) -> None:
    device = enrolled("pi5")
    device.hold()
    command = [sys.executable, "-m", "weigh", "fleet", "run", "quick", "--on", "pi5", "--poll", "0.1", "--no-sync"]
    dispatcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: Path(store.removeprefix("sqlite:///")).exists() and "RUNNING" in states(store))
    dispatcher.send_signal(signal.SIGKILL)
    assert dispatcher.wait(10) == -signal.SIGKILL
    assert len(device.agents()) == 1

    early = weigh("fleet", "fetch", "--json")
    assert (early.returncode, json.loads(early.stdout)[0]["state"]) == (0, "RUNNING")
    assert runs(store) == []

    device.release()
    until(lambda: not device.agents())
    first = weigh("fleet", "fetch", "--json")
    assert first.returncode == 0, first.stderr
    (row,) = json.loads(first.stdout)
    assert row["state"] == "INGESTED"
    assert runs(store) == [row["run_id"]]

    again = weigh("fleet", "fetch")
    assert (again.returncode, again.stdout.strip()) == (0, "Nothing to fetch.")
    with open_store(store).engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(Run)) == 1


SUITE = """
name = "one"
version = "1"
title = "One small network, for the test of dispatching"
seed = 1
trials = 1
timeout_s = 60

[targets]
onnxruntime = ["cpu"]

[[measure]]
scenario = "single_stream"
workloads = ["basic-pitch"]
duration_s = 0.2
warmup_s = 0.05
min_queries = 2
max_queries = 100
limit_s = 2
"""


@pytest.mark.slow
def test_models_and_data_travel_and_a_real_suite_is_measured(enrolled, weigh, store, tmp_path: Path) -> None:
    """Nothing stands in here: the device's cache is empty and it fetches nothing itself."""
    device = enrolled("pi5", stand_in=False)
    suite = tmp_path / "one.toml"
    suite.write_text(SUITE)
    done = weigh("fleet", "run", str(suite), "--on", "pi5", "--poll", "0.2", "--offline", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(weigh("results", "--json").stdout)
    (row,) = found
    assert (row["status"], row["case"]["workload"], row["device"]["name"]) == ("ok", "basic-pitch", "pi5"), row
    assert row["latency_ms"]["p50"]["value"] > 0
    sent = [path for path in (device.root / "cache" / "sha256").rglob("*") if path.is_file()]
    assert sent
    assert not list((device.root / "state" / "runs").glob("*"))  # nothing of the run is left there
