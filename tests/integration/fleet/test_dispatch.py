"""Runs over SSH: real OpenSSH servers on loopback, real `weigh` processes on both sides."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import func, select

from db.schema import Dispatch, Run
from db.store import open_store


@pytest.fixture
def store(tmp_path: Path, monkeypatch, migrated: Path) -> str:
    url = f"sqlite:///{shutil.copyfile(migrated, tmp_path / 'control.sqlite')}"
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


def test_a_run_over_ssh_comes_home(enrolled, here, store) -> None:
    device = enrolled("pi5")
    done = here("fleet", "run", "quick", "--on", "pi5", "--poll", "0.1", "--no-sync", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["device"], row["state"]) == ("pi5", "INGESTED")
    assert runs(store) == [row["run_id"]]
    assert not any((device.folder / "runs").iterdir())  # removed, after it was stored
    assert "Traceback" not in done.stderr


def test_a_dispatcher_killed_after_launch_loses_nothing(enrolled, here, store) -> None:
    device = enrolled("pi5")
    device.hold()
    command = [sys.executable, "-m", "weigh", "fleet", "run", "quick", "--on", "pi5", "--poll", "0.1", "--no-sync"]
    dispatcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: Path(store.removeprefix("sqlite:///")).exists() and "RUNNING" in states(store))
    dispatcher.send_signal(signal.SIGKILL)
    assert dispatcher.wait(10) == -signal.SIGKILL
    assert len(device.agents()) == 1

    early = here("fleet", "fetch", "--json")
    assert (early.returncode, json.loads(early.stdout)[0]["state"]) == (0, "RUNNING")
    assert runs(store) == []

    device.release()
    until(lambda: not device.agents())
    first = here("fleet", "fetch", "--json")
    assert first.returncode == 0, first.stderr
    (row,) = json.loads(first.stdout)
    assert row["state"] == "INGESTED"
    assert runs(store) == [row["run_id"]]

    again = here("fleet", "fetch")
    assert (again.returncode, again.stdout.strip()) == (0, "Nothing to fetch.")
    with open_store(store).engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(Run)) == 1


def start_run(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "weigh", "fleet", "run", "quick", "--poll", "0.1", "--no-sync", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def started(store: str, state: str = "RUNNING") -> bool:
    return Path(store.removeprefix("sqlite:///")).exists() and state in states(store)


@pytest.mark.slow
def test_ctrl_c_leaves_the_run_going_and_says_how_to_fetch_it(enrolled, here, store) -> None:
    device = enrolled("pi5")
    device.hold()
    dispatcher = start_run("--on", "pi5")
    until(lambda: started(store))
    dispatcher.send_signal(signal.SIGINT)
    _, said = dispatcher.communicate(timeout=30)
    assert dispatcher.returncode == 130
    assert "weigh fleet fetch" in said and "Traceback" not in said
    (row,) = json.loads(here("fleet", "status", "--json").stdout)
    assert (row["state"], row["progress"]) == ("RUNNING", "2/4")
    device.release()
    until(lambda: not device.agents())
    assert json.loads(here("fleet", "fetch", "--json").stdout)[0]["state"] == "INGESTED"
    assert len(runs(store)) == 1


def test_a_dead_device_costs_the_others_nothing(enrolled, here, store) -> None:
    enrolled("pi5")
    enrolled("mac").stop()
    done = here("fleet", "run", "quick", "--all", "--poll", "0.1", "--no-sync", "--json")
    rows = {row["device"]: row for row in json.loads(done.stdout)}
    assert (rows["pi5"]["state"], rows["mac"]["state"]) == ("INGESTED", "failed")
    assert "cannot be reached" in rows["mac"]["detail"]
    assert (done.returncode, len(runs(store))) == (1, 1)
    assert "1 of 2 devices failed" in done.stderr
    assert sorted(states(store)) == ["FAILED", "INGESTED"]


@pytest.mark.slow
def test_a_lost_connection_changes_nothing_about_the_run(enrolled, store) -> None:
    device = enrolled("pi5")
    device.hold()
    dispatcher = start_run("--on", "pi5")
    until(lambda: started(store))
    device.stop()
    time.sleep(0.5)
    device.start()
    device.release()
    _, said = dispatcher.communicate(timeout=60)
    assert dispatcher.returncode == 0, said
    assert "unreachable, the run goes on" in said
    assert (states(store), len(runs(store))) == (["INGESTED"], 1)


def test_one_store_gives_a_device_one_lease(enrolled, here, store) -> None:
    device = enrolled("pi5")
    device.hold()
    assert here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--detach").returncode == 0
    second = here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--detach")
    assert (second.returncode, "is held by run" in second.stderr) == (1, True)
    assert len(device.agents()) == 1
    refused = here("fleet", "unlock", "pi5")
    assert (refused.returncode, "is alive" in refused.stderr) == (1, True)


@pytest.mark.slow
def test_the_devices_own_lock_refuses_another_control_host(enrolled, here, store, tmp_path: Path) -> None:
    device = enrolled("pi5")
    device.hold()
    assert here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--detach").returncode == 0
    other = f"sqlite:///{tmp_path / 'other.sqlite'}"
    second = here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--poll", "0.1", "--store", other)
    assert second.returncode == 1
    assert "This device is busy with run" in second.stderr
    assert states(other) == ["FAILED"]
    device.release()
    until(lambda: not device.agents())
    assert json.loads(here("fleet", "fetch", "--json").stdout)[0]["state"] == "INGESTED"


@pytest.mark.slow
def test_an_agent_that_fails_says_why_and_frees_the_device(enrolled, here, store) -> None:
    device = enrolled("pi5")
    (device.root / "fail").touch()
    failed = here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--poll", "0.1")
    assert (failed.returncode, "The stand-in was told to fail" in failed.stderr) == (1, True)
    assert "Traceback" not in failed.stderr
    (device.root / "fail").unlink()
    assert here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--poll", "0.1").returncode == 0
    assert states(store) == ["FAILED", "INGESTED"]


@pytest.mark.slow
def test_an_agent_that_was_killed_is_lost_and_not_forgotten(enrolled, here, store) -> None:
    device = enrolled("pi5")
    device.hold()
    assert here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--detach").returncode == 0
    (agent,) = device.agents()
    agent.kill()
    until(lambda: not device.agents())
    (row,) = json.loads(here("fleet", "status", "--json").stdout)
    assert (row["state"], "without a result" in row["detail"]) == ("LOST", True)
    device.release()
    assert here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--poll", "0.1").returncode == 0


@pytest.mark.slow
def test_a_damaged_result_is_not_stored_and_stays_on_the_device(enrolled, here, store) -> None:
    device = enrolled("pi5")
    assert here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--detach").returncode == 0
    until(lambda: not device.agents())
    (folder,) = (device.folder / "runs").iterdir()
    whole = (folder / "result.bundle").read_bytes()
    (folder / "result.bundle").write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
    damaged = here("fleet", "fetch")
    assert (damaged.returncode, "arrived damaged" in damaged.stderr) == (1, True)
    assert runs(store) == []
    refused = here("fleet", "unlock", "pi5")  # not by mistake: there is a result to be had
    assert (refused.returncode, "has a result" in refused.stderr) == (1, True)
    (folder / "result.bundle").write_bytes(whole)
    assert here("fleet", "fetch").returncode == 0
    assert len(runs(store)) == 1
    assert not folder.exists()


@pytest.mark.slow
def test_a_fetch_that_dies_before_storing_is_finished_without_the_device(enrolled, here, store) -> None:
    device = enrolled("pi5")
    assert here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--detach").returncode == 0
    until(lambda: not device.agents())
    code = (
        "import os, signal, sys; from agents.fleet import dispatch; import weigh\n"
        "dispatch.ingest = lambda engine, bundle: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.argv = ['weigh', 'fleet', 'fetch']; weigh.main()"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert (states(store), runs(store)) == (["FETCHED"], [])
    device.stop()
    assert json.loads(here("fleet", "fetch", "--json").stdout)[0]["state"] == "INGESTED"
    assert len(runs(store)) == 1
    device.start()
    here("fleet", "fetch")
    assert not any((device.folder / "runs").iterdir())


@pytest.mark.slow
def test_a_device_that_gives_another_runs_result_is_not_believed(enrolled, here, store, make_bundle) -> None:
    from agents.device.bundle_file import pack
    from harness.canonical import sha256_hex

    device = enrolled("pi5")
    assert here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--detach").returncode == 0
    until(lambda: not device.agents())
    (folder,) = (device.folder / "runs").iterdir()
    forged = pack(make_bundle("pi5"))
    (folder / "result.bundle").write_bytes(forged)
    (folder / "DONE").write_text(json.dumps({"sha256": sha256_hex(forged), "bytes": len(forged)}))
    refused = here("fleet", "fetch")
    assert (refused.returncode, "the result of another run" in refused.stderr) == (1, True)
    assert runs(store) == []
    assert here("fleet", "unlock", "pi5", "--force").returncode == 0
    assert states(store) == ["CANCELLED"]


@pytest.mark.slow
def test_what_another_control_host_fetched_and_lost_is_fetched_again(enrolled, here, store, monkeypatch) -> None:
    device = enrolled("pi5")
    assert here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--detach").returncode == 0
    until(lambda: not device.agents())
    code = (
        "import os, signal, sys; from agents.fleet import dispatch; import weigh\n"
        "dispatch.ingest = lambda engine, bundle: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.argv = ['weigh', 'fleet', 'fetch']; weigh.main()"
    )
    elsewhere = {**os.environ, "WEIGHBRIDGE_STATE": str(device.root / "other_control_host")}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=elsewhere).returncode == -signal.SIGKILL
    assert (states(store), runs(store)) == (["FETCHED"], [])
    assert json.loads(here("fleet", "fetch", "--json").stdout)[0]["state"] == "INGESTED"
    assert len(runs(store)) == 1
    assert not any((device.folder / "runs").iterdir())


@pytest.mark.slow
def test_a_device_that_cannot_be_asked_is_freed_by_force_only(enrolled, here, store) -> None:
    device = enrolled("pi5")
    device.hold()
    assert here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--detach").returncode == 0
    device.stop()
    asked = here("fleet", "unlock", "pi5")
    assert (asked.returncode, "--force" in asked.stderr) == (1, True)
    assert states(store) == ["RUNNING"]
    assert here("fleet", "unlock", "pi5", "--force").returncode == 0
    assert states(store) == ["CANCELLED"]


def test_wrong_usage_is_said_before_any_device_is_touched(enrolled, here, store) -> None:
    enrolled("pi5")
    for arguments, words in (
        (["quick"], "--on"),
        (["quick", "--on", "mac"], "pi5"),
        (["no-such-suite", "--on", "pi5"], "no-such-suite"),
        (["quick", "--on", "pi5", "--store", "https://bench.example.org"], "ingest API"),
    ):
        done = here("fleet", "run", *arguments)
        assert done.returncode in (1, 2)
        assert words in done.stderr and "Traceback" not in done.stderr


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


OWN_SUITE = (
    SUITE.replace('["basic-pitch"]', '["mine"]')
    + """
[[workload]]
name = "mine"
title = "A model of our own"
task = "random_inputs"
model = { path = "models/double.onnx", format = "onnx" }
latency_samples = "random"
scenarios = ["single_stream"]
"""
)


@pytest.mark.slow
def test_a_suites_own_model_travels_along(enrolled, weigh, store, tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    enrolled("pi5", stand_in=False)
    folder = tmp_path / "suite"
    (folder / "models").mkdir(parents=True)
    shape = [1, 4]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "double",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "models" / "double.onnx")
    (folder / "own.toml").write_text(OWN_SUITE)
    done = weigh("fleet", "run", str(folder / "own.toml"), "--on", "pi5", "--poll", "0.2", "--offline")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(weigh("results", "--json").stdout)
    assert (row["status"], row["case"]["workload"], row["artifact"]["name"]) == ("ok", "mine", "double.onnx"), row


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
    assert row["latency_ms"]["mean"] > 0  # of too few samples for a percentile
    sent = [path for path in (device.root / "cache" / "sha256").rglob("*") if path.is_file()]
    assert sent
    assert not list((device.root / "state" / "runs").glob("*"))  # nothing of the run is left there


@pytest.mark.slow
def test_a_dispatcher_that_died_before_the_launch_is_unlocked_and_cannot_launch_later(enrolled, here, store) -> None:
    """The dispatcher stops between STAGED and the launch; an operator frees the device; then the dispatcher wakes up."""
    from agents.fleet import dispatch, ledger, remote
    from agents.fleet.fleet_run import open_desk
    from agents.fleet.inventory import fleet_file, read_fleet
    from agents.fleet.order import order_for

    device = enrolled("pi5")
    desk = open_desk(store, fleet_file())
    pi5 = read_fleet(fleet_file()).named("pi5")
    asleep: list[ledger.Entry] = []

    def operator_acts(connection, python: str, folder: str, say) -> None:
        (held,) = ledger.entries(desk.engine, ["pi5"], ["STAGED"])
        asleep.append(held)
        refused = here("fleet", "run", "quick", "--on", "pi5", "--no-sync", "--detach")
        assert "is held by run" in refused.stderr
        assert here("fleet", "unlock", "pi5").returncode == 0

    with pytest.raises(ledger.Moved):
        dispatch.start(desk, pi5, order_for("quick", [], [], []), threading.Event(), operator_acts)
    with desk.connect(pi5) as connection:  # even past that check, the device itself refuses
        folder = asleep[0].remote_folder
        assert folder is not None
        look = remote.launch(connection, sys.executable, folder)
    assert (look.alive, look.done) == (False, None)
    assert "started already" in look.log
    assert device.agents() == []


def test_nothing_that_goes_wrong_before_the_launch_keeps_the_device(enrolled, here, store, monkeypatch) -> None:
    from agents.fleet import fleet_run

    enrolled("pi5")

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(fleet_run.remote, "needs", broken)
    with pytest.raises(RuntimeError):
        here("fleet", "run", "quick", "--on", "pi5")
    assert states(store) == ["FAILED"]
