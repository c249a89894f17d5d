"""How a worker's death reads, and what it may see."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.runner.trial_process import death_of, run_worker, worker_environment
from harness.worker.job import Job

HOSTILE = """
import json, pathlib, sys
job = json.loads(pathlib.Path(sys.argv[1]).read_text())
print("\\x1b]0;title\\x07last", file=sys.stderr)
trial = {"schema": "weighbridge/trial/1", "trial_id": job["trial_id"], "status": "failed", "files": []}
pathlib.Path(job["out_dir"], "trial.json").write_text(json.dumps({**trial, "reason": "no tensor \\x1b[2Jx", "fix": ""}))
"""


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (-9, "The worker was killed by SIGKILL (out of memory?)."),
        (-11, "The worker crashed with a segmentation fault (SIGSEGV)."),
        (-6, "The worker was aborted by its runtime (SIGABRT)."),
        (-15, "The worker was ended by SIGTERM."),
        (-99, "The worker was ended by signal 99."),
        (3, "The worker ended with exit status 3 and left no result."),
        (0, "The worker ended with exit status 0 and left no result."),
    ],
)
def test_an_exit_status_is_a_sentence(code: int, sentence: str) -> None:
    assert death_of(code) == sentence


def test_runtimes_variables_pass_and_secrets_do_not(tmp_path: Path) -> None:
    parent = {
        "PATH": "/bin",
        "HOME": "/home/x",
        "OMP_NUM_THREADS": "2",
        "CUDA_VISIBLE_DEVICES": "0",
        "WEIGHBRIDGE_STORE": "postgresql://user:secret@db/x",
        "WEIGHBRIDGE_TOKEN": "secret",
        "PGPASSWORD": "secret",
        "GITHUB_TOKEN": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "Database_Url": "secret",
        "PYTHONPATH": "/somewhere",
    }
    environment = worker_environment(parent, tmp_path)
    assert "secret" not in " ".join(environment.values())
    assert environment == {
        "PATH": "/bin",
        "HOME": "/home/x",
        "OMP_NUM_THREADS": "2",
        "CUDA_VISIBLE_DEVICES": "0",
        "TMPDIR": str(tmp_path),
        "TEMP": str(tmp_path),
        "TMP": str(tmp_path),
    }


def test_a_workers_words_steer_no_terminal(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(HOSTILE)
    job = Job(trial_id="t", kind="timing", backend="onnxruntime", out_dir="", timeout_s=20)
    outcome = run_worker(script, Path(sys.executable), job, tmp_path / "work")
    assert (outcome.status, outcome.reason) == ("failed", "no tensor  [2Jx")
    assert outcome.last_words == "]0;title last"
