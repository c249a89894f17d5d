"""The folder of an unfinished run: finished trials survive, damaged ones are run again."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from harness.errors import UsageError, WeighbridgeError
from harness.runner.run_folder import RunFolder
from harness.runner.trial_process import Outcome

RUN = "3c53b7b0-3fb1-43a4-8fa8-a599b9ce2bf9"
OUTCOME = Outcome("ok", None, {"queries": 2}, {"latency_ns": b"\x01" * 16}, None, ("note",))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs", RUN, {"suite": "quick", "stored": False})


def test_a_trial_comes_back_as_it_was_kept(folder: RunFolder) -> None:
    folder.save("k-timing-0", OUTCOME)
    assert folder.load("k-timing-0") == OUTCOME
    assert folder.load("k-timing-1") is None


def test_half_written_and_damaged_trials_are_run_again(folder: RunFolder) -> None:
    folder.save("a", OUTCOME)
    folder.save("b", OUTCOME)
    (folder.path / "trials" / "a" / "outcome.json").write_text('{"status": "o')
    (folder.path / "trials" / "b" / "latency_ns").unlink()
    assert folder.load("a") is None
    assert folder.load("b") is None
    assert not (folder.path / "trials" / "a").exists()
    for key in ("a", "b"):
        folder.save(key, OUTCOME)
        assert folder.load(key) == OUTCOME


def test_the_request_comes_back(folder: RunFolder) -> None:
    opened, request = RunFolder.open(folder.path.parent, RUN)
    assert opened.path == folder.path
    assert (request["suite"], request["stored"]) == ("quick", False)


@pytest.mark.parametrize("run_id", ["nonsense", "../runs", str(uuid.uuid4()), ""])
def test_an_unknown_run_lists_those_that_are_there(folder: RunFolder, run_id: str) -> None:
    with pytest.raises(UsageError, match=f"Unfinished runs: {RUN}"):
        RunFolder.open(folder.path.parent, run_id)


def test_a_damaged_request_is_a_sentence(folder: RunFolder) -> None:
    (folder.path / "request.json").write_text("{")
    with pytest.raises(UsageError, match=r"cannot be read .* Start a new run\."):
        RunFolder.open(folder.path.parent, RUN)


def test_moving_to_another_identifier_takes_the_trials_along(folder: RunFolder) -> None:
    folder.save("a", OUTCOME)
    moved = folder.renamed(str(uuid.uuid4()))
    assert moved.load("a") == OUTCOME
    assert not folder.path.exists()


def test_an_empty_run_is_forgotten_and_one_with_trials_is_not(folder: RunFolder) -> None:
    folder.save("a", OUTCOME)
    folder.remove_if_empty()
    assert folder.path.exists()
    empty = RunFolder.create(folder.path.parent, str(uuid.uuid4()), {})
    empty.remove_if_empty()
    assert not empty.path.exists()


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path, folder: RunFolder) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WeighbridgeError, match=r"The run cannot be kept in .*set WEIGHBRIDGE_STATE"):
        RunFolder.create(tmp_path / "file", RUN, {})
    (folder.path / "trials").rmdir()
    with pytest.raises(WeighbridgeError, match=f"weigh run --resume {RUN}"):
        folder.save("a", OUTCOME)
