"""`weigh run` as a user types it: exit status, sentences, what is stored, what survives."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from harness.documents import read_run

from .conftest import BrokenPython

Weigh = Callable[..., "subprocess.CompletedProcess[str]"]
FAST = ("--duration", "0.1", "--warmup", "0.02")


def runs_in(home: Path) -> list[tuple[Any, ...]]:
    database = home / "data" / "weighbridge.sqlite"
    if not database.exists():
        return []
    with sqlite3.connect(database) as connection:
        return connection.execute("select run_id, status from runs order by ingest_sequence").fetchall()


def statuses(home: Path) -> list[str]:
    with sqlite3.connect(home / "data" / "weighbridge.sqlite") as connection:
        return [row[0] for row in connection.execute("select status from measurements")]


def record_of(path: Path) -> Any:
    return read_run(path.read_bytes())


def no_traceback(result: subprocess.CompletedProcess[str]) -> bool:
    return "Traceback" not in result.stderr and "Traceback" not in result.stdout


def test_a_bare_model_file_runs_on_every_backend_that_reads_it(
    weigh: Weigh, tiny_onnx: Path, tmp_path: Path, own_folders: Path
) -> None:
    result = weigh("run", str(tiny_onnx), *FAST, "--json", str(tmp_path / "run.json"))
    assert result.returncode == 0, result.stderr
    assert "file.tiny" in result.stdout
    run = record_of(tmp_path / "run.json")
    assert run.status == "complete"
    found = {(m.case.backend, m.case.scenario): m for m in run.measurements}
    assert set(found) == {(b, s) for b in ("onnxruntime", "openvino") for s in ("single_stream", "offline")}
    for (_, scenario), measurement in found.items():
        assert measurement.status == "ok", measurement.reason
        assert measurement.throughput_per_s > 0
        assert (measurement.latency_ms is None) == (scenario == "offline")
        assert measurement.energy.per_inference_j is None
        assert measurement.energy.reason.startswith("Not measured")
        assert measurement.artifact.name == "tiny.onnx"
    assert found["onnxruntime", "single_stream"].latency_ms.p50.value > 0
    assert runs_in(own_folders) == [(run.run_id, "complete")]
    assert os.listdir(own_folders / "state" / "runs") == []
    assert not list((own_folders / "state").glob("spool/*-*"))


def test_a_plan_measures_nothing(weigh: Weigh, tiny_onnx: Path, own_folders: Path) -> None:
    result = weigh("run", str(tiny_onnx), "--plan")
    assert result.returncode == 0, result.stderr
    assert "4 of 4 cases can run here" in result.stdout
    assert runs_in(own_folders) == []
    assert not (own_folders / "state" / "runs").exists()


@pytest.mark.slow
def test_cuda_asked_for_by_name_is_unsupported_and_nothing_claims_it(weigh: Weigh, own_folders: Path) -> None:
    result = weigh("run", "quick", "--backend", "onnxruntime", "--target", "cuda")
    assert result.returncode == 1
    assert "unsupported" in result.stdout
    assert "CUDAExecutionProvider" in result.stderr
    assert no_traceback(result)
    assert set(statuses(own_folders)) == {"unsupported"}
    with sqlite3.connect(own_folders / "data" / "weighbridge.sqlite") as connection:
        text = "\n".join(connection.iterdump())
    assert not re.search(r'"target":\s*"cuda"[^}]*"runtime"', text)  # no effective target


@pytest.mark.slow
def test_wrong_usage_is_one_sentence_and_exit_status_two(weigh: Weigh, tmp_path: Path, tiny_onnx: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\nversion = "1"\ntrails = 2\n')
    for arguments, words in (
        (("quikc",), "'quikc' is neither a suite nor a file. Suites: precisions, quick, standard, thorough."),
        ((str(tmp_path / "absent.onnx"),), "There is no model file"),
        ((str(tmp_path / "mine.toml"),), "mine.toml, line 3: 'trails' is not known. Allowed: name, version"),
        (("quick", "--backend", "pytorch"), "There is no backend 'pytorch'."),
        ((str(tiny_onnx), "--backend", "tflite"), "There is no backend 'tflite'. Backends are onnxruntime, openvino."),
        (("--resume", "3c53b7b0-3fb1-43a4-8fa8-a599b9ce2bf9"), "There is no unfinished run"),
        (("--resume", "../../etc"), "There is no unfinished run"),
        (("quick", "--store", "mysql://root:secret@db/x", "--target", "npu"), "is not the address of a store"),
    ):
        result = weigh("run", *arguments)
        words_found = " ".join(result.stderr.split())
        assert words in words_found, (arguments, result.stderr)
        assert result.returncode == 2, arguments
        assert no_traceback(result)
        assert "secret" not in result.stderr


@pytest.mark.slow
def test_a_runtime_that_is_killed_fails_alone_and_the_suite_goes_on(
    weigh: Weigh, tiny_onnx: Path, tmp_path: Path, own_folders: Path, broken_python: BrokenPython
) -> None:
    python = broken_python("later(0.6, os.kill, os.getpid(), 9)")
    (own_folders / "config").mkdir()
    (own_folders / "config" / "config.toml").write_text(f'[runtimes]\nonnxruntime = "{python}"\n')
    result = weigh("run", str(tiny_onnx), "--duration", "2", "--warmup", "0.02", "--json", str(tmp_path / "run.json"))
    assert result.returncode == 1
    assert no_traceback(result)
    run = record_of(tmp_path / "run.json")
    assert run.status == "complete"
    for measurement in run.measurements:
        if measurement.case.backend == "onnxruntime":
            assert measurement.status == "failed"
            assert measurement.reason == "The worker was killed by SIGKILL (out of memory?)."
            assert measurement.latency_ms is None
            assert measurement.throughput_per_s is None
        else:
            assert measurement.status == "ok"
    assert runs_in(own_folders) == [(run.run_id, "complete")]


@pytest.mark.slow
def test_one_flipped_byte_in_a_model_file_is_one_sentence(
    weigh: Weigh, tiny_onnx: Path, tmp_path: Path, own_folders: Path
) -> None:
    data = bytearray(tiny_onnx.read_bytes())
    data[len(data) // 2] ^= 0xFF  # in the weights: the file still loads, its identity is another
    (tmp_path / "weights.onnx").write_bytes(data)
    data = bytearray(tiny_onnx.read_bytes())
    data[1] ^= 0xFF
    (tmp_path / "header.onnx").write_bytes(data)
    first = weigh("run", str(tmp_path / "header.onnx"), *FAST)
    assert first.returncode == 1
    assert no_traceback(first)
    assert "header.onnx" in first.stdout + first.stderr
    second = weigh("run", str(tmp_path / "weights.onnx"), *FAST, "--no-store", "--json", str(tmp_path / "run.json"))
    assert second.returncode == 0
    original = weigh("run", str(tiny_onnx), *FAST, "--no-store", "--json", str(tmp_path / "original.json"))
    assert original.returncode == 0
    keys = [
        {m.artifact.sha256 for m in record_of(tmp_path / name).measurements} for name in ("run.json", "original.json")
    ]
    assert keys[0].isdisjoint(keys[1])


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "weigh", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for_trials(home: Path, count: int) -> str:
    """Wait until a run on its way holds `count` finished trials; return its identifier."""

    def ended() -> list[Path]:
        return list((home / "state" / "runs").glob("*/trials/[!.]*/outcome.json"))  # a dot: on its way

    wait_until(lambda: len(ended()) >= count)
    return ended()[0].parts[-4]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not come within a minute"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_is_finished_and_resume_goes_on(
    number: signal.Signals, tiny_onnx: Path, tmp_path: Path, own_folders: Path, weigh: Weigh
) -> None:
    process = start(
        "run",
        str(tiny_onnx),
        "--duration",
        "1",
        "--warmup",
        "0.02",
        "--trials",
        "2",
        "--json",
        str(tmp_path / "a.json"),
    )
    wait_for_trials(own_folders, 1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    first = record_of(tmp_path / "a.json")
    assert first.status == "interrupted"
    assert f"weigh run --resume {first.run_id}" in " ".join(errors.split())
    assert "Traceback" not in errors
    assert runs_in(own_folders) == [(first.run_id, "interrupted")]
    kept = [t for m in first.measurements for t in m.trials]
    assert kept
    for measurement in first.measurements:
        if not measurement.trials:
            assert measurement.status == "skipped"
        elif measurement.status == "ok" and len(measurement.trials) < 2:
            assert "fewer_trials" in {flag.code for flag in measurement.flags}

    again = weigh("run", "--resume", first.run_id, "--json", str(tmp_path / "b.json"))
    assert again.returncode == 0, again.stderr
    second = record_of(tmp_path / "b.json")
    assert second.status == "complete"
    assert second.run_id != first.run_id  # a stored record never changes
    assert second.environment.conditions["resumed_from"] == first.run_id
    assert {m.status for m in second.measurements} == {"ok"}
    windows = {t.window_start_ns for m in second.measurements for t in m.trials}
    assert {t.window_start_ns for t in kept} <= windows  # finished trials were not run again
    assert len([t for m in second.measurements for t in m.trials if t.kind == "timing"]) == 8
    assert [status for _, status in runs_in(own_folders)] == ["interrupted", "complete"]
    assert os.listdir(own_folders / "state" / "runs") == []


@pytest.mark.slow
def test_resume_takes_no_trial_of_a_model_file_that_has_changed_and_survives_its_loss(
    tiny_onnx: Path, tmp_path: Path, own_folders: Path, weigh: Weigh
) -> None:
    model, away = tmp_path / "mine.onnx", tmp_path / "away.onnx"
    model.write_bytes(tiny_onnx.read_bytes())
    process = start("run", str(model), "--duration", "1", "--warmup", "0.02", "--backend", "onnxruntime")
    run_id = wait_for_trials(own_folders, 1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    model.rename(away)
    lost = weigh("run", "--resume", run_id)
    assert lost.returncode == 2
    assert "There is no model file" in lost.stderr
    assert os.listdir(own_folders / "state" / "runs") == [run_id]  # the name that the person knows

    # The same network with another producer's name (onnx.proto: ModelProto.producer_name = 2).
    model.write_bytes(away.read_bytes() + b"\x12\x05other")
    again = weigh("run", "--resume", run_id, "--json", str(tmp_path / "run.json"))
    assert again.returncode == 0, again.stderr
    run = record_of(tmp_path / "run.json")
    assert {m.artifact.sha256 for m in run.measurements} == {sha256(model.read_bytes()).hexdigest()}
    with sqlite3.connect(own_folders / "data" / "weighbridge.sqlite") as connection:
        rows = connection.execute("select trial_id, window_start_ns from trials where kind = 'timing'").fetchall()
    assert len({start_ns for _, start_ns in rows}) == len(rows) == 3  # the first trial was not taken over


@pytest.mark.slow
def test_killed_without_mercy_it_goes_on_under_its_own_identifier(
    tiny_onnx: Path, tmp_path: Path, own_folders: Path, weigh: Weigh
) -> None:
    process = start("run", str(tiny_onnx), "--duration", "1", "--warmup", "0.02")
    run_id = wait_for_trials(own_folders, 1)
    process.kill()
    process.communicate(timeout=30)
    assert runs_in(own_folders) == []
    again = weigh("run", "--resume", run_id, "--json", str(tmp_path / "run.json"))
    assert again.returncode == 0, again.stderr
    assert record_of(tmp_path / "run.json").run_id == run_id
    assert runs_in(own_folders) == [(run_id, "complete")]


ADAPTIVE = """name = "adaptive"
version = "1"
trials = 6
max_trials = 8
looks = [6, 8]
half_width = 1.0
budget_s = 600
targets = { onnxruntime = ["cpu"] }
[[measure]]
scenario = "single_stream"
workloads = ["tiny"]
threads = [1]
duration_s = 0.3
warmup_s = 0.02
[[measure]]
scenario = "cold_start"
workloads = ["tiny"]
threads = [1]
trials = 2
[[workload]]
name = "tiny"
task = "random_inputs"
model = { path = "tiny.onnx", format = "onnx" }
"""


@pytest.mark.slow
def test_a_killed_run_keeps_its_trials_and_decides_as_if_nothing_had_been(
    tiny_onnx: Path, tmp_path: Path, own_folders: Path, weigh: Weigh
) -> None:
    (tmp_path / "tiny.onnx").write_bytes(tiny_onnx.read_bytes())
    (tmp_path / "adaptive.toml").write_text(ADAPTIVE)
    process = start("run", str(tmp_path / "adaptive.toml"))
    run_id = wait_for_trials(own_folders, 3)
    process.kill()
    process.communicate(timeout=30)
    ended = (own_folders / "state" / "runs").glob("*/trials/*/outcome.json")
    documents = [json.loads(path.read_text())["document"] for path in ended]
    kept = {document["window_start_ns"] for document in documents if document["kind"] == "timing"}
    again = weigh("run", "--resume", run_id, "--json", str(tmp_path / "run.json"))
    assert again.returncode == 0, again.stderr
    run = record_of(tmp_path / "run.json")
    found = {measurement.case.scenario: measurement for measurement in run.measurements}
    single, cold = found["single_stream"], found["cold_start"]
    # At a share of 2.5 % six trials have no interval yet (2 / 64 = 3.1 %); eight have, and 100 % is wide enough for any.
    assert (single.sampling.trials, single.sampling.looks) == (8, (6, 8))
    assert single.sampling.reached_half_width is not None
    assert (cold.sampling.trials, cold.sampling.stopped) == (2, "fixed")
    windows = {trial.window_start_ns for m in run.measurements for trial in m.trials}
    assert kept and kept <= windows
    assert run.self_cost.recorded_us > 0
    assert "single_stream fp32: 8 trials" in again.stderr  # a line for each finished case where there is no terminal


@pytest.mark.slow
def test_a_store_that_fails_leaves_the_run_in_the_spool_and_says_so(
    weigh: Weigh, tiny_onnx: Path, tmp_path: Path, own_folders: Path
) -> None:
    (tmp_path / "no.sqlite").write_text("this is no database, and never was one" * 100)
    result = weigh(
        "run", str(tiny_onnx), *FAST, "--backend", "onnxruntime", "--store", f"sqlite:///{tmp_path}/no.sqlite"
    )
    assert result.returncode == 1
    assert no_traceback(result)
    assert "is measured but not stored" in result.stderr
    assert "`weigh push`" in " ".join(result.stderr.split())
    (entry,) = [p for p in (own_folders / "state" / "spool").iterdir() if not p.name.startswith(".")]
    assert os.listdir(own_folders / "state" / "runs") == []  # assembled again, it would be another record of that id
    sent = weigh("push")
    assert sent.returncode == 0, sent.stderr
    assert runs_in(own_folders) == [(entry.name, "complete")]


@pytest.mark.slow
def test_ctrl_c_while_the_run_is_stored_leaves_one_record_of_it(
    weigh: Weigh, tiny_onnx: Path, own_folders: Path
) -> None:
    assert weigh("db", "migrate").returncode == 0
    writer = sqlite3.connect(own_folders / "data" / "weighbridge.sqlite", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    process = start("run", str(tiny_onnx), *FAST, "--backend", "onnxruntime")
    spool = own_folders / "state" / "spool"
    wait_until(lambda: spool.is_dir() and any(not entry.name.startswith(".") for entry in spool.iterdir()))
    (run_id,) = os.listdir(spool)
    time.sleep(1.0)  # it opens the store and waits for the writer
    process.send_signal(signal.SIGINT)
    writer.rollback()
    writer.close()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Stopped by Ctrl-C. It waits in" in " ".join(errors.split())
    assert "Traceback" not in errors
    assert os.listdir(own_folders / "state" / "runs") == []
    sent = weigh("push")
    assert sent.returncode == 0, sent.stderr
    assert runs_in(own_folders) == [(run_id, "complete")]


def test_a_reader_that_hangs_up_does_not_keep_the_run_from_its_store(tiny_onnx: Path, own_folders: Path) -> None:
    process = start("run", str(tiny_onnx), *FAST, "--backend", "onnxruntime")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    assert [status for _, status in runs_in(own_folders)] == ["complete"]
    assert os.listdir(own_folders / "state" / "runs") == []


def test_a_record_that_cannot_be_written_is_refused_before_anything_is_measured(
    weigh: Weigh, tiny_onnx: Path, tmp_path: Path, own_folders: Path
) -> None:
    for place in (tmp_path, tmp_path / "absent" / "run.json"):
        result = weigh("run", str(tiny_onnx), "--json", str(place))
        assert result.returncode == 2
        assert f"The run record cannot be written to {place}" in " ".join(result.stderr.split())
        assert no_traceback(result)
    assert not (own_folders / "state" / "runs").exists()


@pytest.mark.slow
def test_a_state_folder_that_cannot_be_written_is_one_sentence(weigh: Weigh, tiny_onnx: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    result = weigh("run", str(tiny_onnx), *FAST, WEIGHBRIDGE_STATE=str(tmp_path / "state"))
    assert result.returncode == 1
    assert no_traceback(result)
    assert str(tmp_path / "state") in result.stderr


def test_json_on_standard_output_is_the_record_alone(weigh: Weigh, tiny_onnx: Path) -> None:
    result = weigh("run", str(tiny_onnx), *FAST, "--backend", "onnxruntime", "--no-store", "--json", "-")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["schema"] == "weighbridge/run/1"
